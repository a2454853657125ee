"""Receipts of rounds in a real ledger: they say what its rows say, and go on saying it."""

import datetime
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from services.cli import environment
from services.cli.asking.locate import PathError
from services.cli.environment import Environment
from services.cli.learned import receipt as command
from services.cli.learned import which_adapters
from services.core.db import Database
from services.core.errors import ReceiptError
from services.core.models import ContentRole, RoundState
from services.core.target import Target
from services.trainer import publish
from services.trainer.ledger import Lease, Ledger, Round
from services.trainer.promotions.champions import Champions
from services.trainer.promotions.line import By
from services.trainer.receipts import reading, verifying, writing
from services.trainer.receipts.exposure import Exposure
from services.trainer.receipts.lines import Content
from services.trainer.recipes.recipe import Recipe
from tests.integration.cli.conftest import variables
from tests.integration.trainer.test_ledger import texts
from tests.integration.trainer.test_round import rows

ME = By("me", "because")


@dataclass
class Life:
    """A track whose rounds train on five contents each and publish a folder with a receipt."""

    database: Database
    adapters: Path
    name: str = "traced"
    unseen: set[int] = field(default_factory=set)  # contents that no step reaches

    def __post_init__(self) -> None:
        fields: dict[str, Any] = {"held_out_min": 2, "validation_min": 1, "replay_share": 0.4}
        self.recipe = Recipe(name=self.name, base_model="./model", **fields)
        self.ledger = Ledger(self.database, self.name)
        lease = self.ledger.take(self.recipe, "a trainer")
        assert lease is not None
        self.lease: Lease = lease
        self.dir = self.adapters / self.name
        self.champions = Champions(self.database, self.name, self.dir)

    def open(self) -> Round:
        opened = self.ledger.open_or_resume(self.lease, self.recipe, 70, 5)
        assert opened is not None
        return opened

    def round(self, opened: Round | None = None) -> Path:
        """The folder of what it published."""
        opened = opened or self.open()
        snapshot = self.ledger.snapshot(opened.round_id)
        exposures = {}
        for role in (ContentRole.TRAIN, ContentRole.REPLAY):
            for each in snapshot[role]:
                exposures[each.content_id] = exposure = Exposure()
                exposure.add(1, 11, 40, times=0 if each.content_id in self.unseen else 3)
        training = writing.Training(steps=6, is_counted=True, exposures=exposures, planted={})
        parent = None if opened.parent is None else self.dir / opened.parent.directory
        manifest = {
            "track": self.name, "round": opened.number, "recipe": self.recipe.model_dump(mode="json"),
            "base_model": self.recipe.base_model, "base_revision": None, "parent": parent and parent.name,
            "snapshot_hash": opened.snapshot_hash,
            "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }  # fmt: skip
        counted: list[tuple[int, int, int]] = []

        def write(folder: Path) -> None:
            counted[:] = writing.write(folder, self.ledger, opened, manifest, parent, training)

        published = publish.publish(self.dir, opened.name, write, manifest)
        self.ledger.record_exposures(opened.round_id, counted)
        self.ledger.record_exposures(opened.round_id, counted)  # an attempt that was begun again
        self.ledger.close(
            self.lease, opened, state=RoundState.PROMOTED, training={},
            verdict={"promoted": True, "reason": "better", "low": 0.01}, losses={}, manifest=published,
        )  # fmt: skip
        self.champions.follow()
        return self.dir / opened.name


@pytest.fixture
def life(database: Database, store: Callable[[list[str]], None], tmp_path: Path) -> Life:
    store(texts(60))
    return Life(database, tmp_path / "adapters")


@pytest.fixture
def here(target: Target, tmp_path: Path) -> Environment:
    named = {
        **variables(target, tmp_path / "ingest", tmp_path / "home"),
        "ADAPTERS_DIR": str(tmp_path / "adapters"),
    }
    return environment.read(named, project=tmp_path)


def contents_of(folder: Path) -> list[Content]:
    found: list[Content] = []
    reading.read(folder, found.append)
    return found


def learned(database: Database, round_number: int = 1, most: int = 1) -> list[Any]:
    """Contents that a round was trained on, with the file that each lies in."""
    return rows(
        database,
        "SELECT c.id, encode(c.sha256, 'hex') AS sha256, f.path FROM round_contents rc"
        " JOIN contents c ON c.id = rc.content_id JOIN files f ON f.content_id = c.id"
        f" WHERE rc.round_id = {round_number} AND rc.role = 'train' ORDER BY rc.position LIMIT {most}",
    )


def which(database: Database, asked: str, tmp_path: Path) -> dict[str, Any]:
    with database.transaction() as tx:
        found = which_adapters.contents_of(tx, asked, tmp_path / "ingest", tmp_path)
        return which_adapters.answered(tx, found)


def told(answer: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(each["adapter"], each["how"], each["champion"]) for each in answer["adapters"]]


# what a receipt says


def test_a_receipt_says_exactly_what_the_snapshot_is(life: Life) -> None:
    """The same contents in the same roles and order, with the bytes that count: none more, none less."""
    life.round()
    folder = life.round()
    recorded = rows(
        life.database,
        "SELECT rc.role, encode(c.sha256, 'hex') AS sha256, rc.judged FROM round_contents rc"
        " JOIN contents c ON c.id = rc.content_id WHERE rc.round_id = 2"
        " ORDER BY array_position(ARRAY['train', 'validation', 'held_out', 'replay'], rc.role), rc.position",
    )
    assert "replay" in {row.role for row in recorded}
    assert [(each.role, each.sha256, each.judged) for each in contents_of(folder)] == [
        (row.role, row.sha256, row.judged and tuple(tuple(span) for span in row.judged)) for row in recorded
    ]


def test_its_digest_is_in_the_ledger_and_the_chain_leads_to_the_base_model(life: Life) -> None:
    life.round()
    receipt, chain = verifying.verify(life.round())
    (first, second) = rows(life.database, "SELECT receipt FROM adapters ORDER BY id")
    assert [(link.adapter, link.receipt) for link in chain.links] == [
        ("round-0002", second.receipt), ("round-0001", first.receipt), ("base", None)
    ]  # fmt: skip
    assert receipt.sha256 == second.receipt


def test_times_seen_are_in_the_receipt_and_in_the_ledger(life: Life) -> None:
    """Of what was to be learned, also of what no step reached; of nothing that it was judged by."""
    opened = life.open()
    life.unseen = {learned(life.database)[0].id}
    found = contents_of(life.round(opened))
    recorded = rows(
        life.database,
        "SELECT encode(c.sha256, 'hex') AS sha256, e.seen, e.tokens FROM exposures e"
        " JOIN contents c ON c.id = e.content_id",
    )
    assert {each.sha256: (each.seen, each.tokens) for each in found if each.is_learned} == {
        row.sha256: (row.seen, row.tokens) for row in recorded
    }
    assert sorted({row.seen for row in recorded}) == [0, 3]
    assert {each.seen for each in found if not each.is_learned} == {None}


def test_a_receipt_names_every_place_as_it_was_when_the_round_was_opened(life: Life) -> None:
    """Two files of two repositories; afterwards one moves and the other's repository is read again."""
    with life.database.transaction() as tx:
        run = tx._cursor.execute
        run("UPDATE sources SET commit_id = 'aaaa', licence = 'MIT', kind = 'git'")
        run("INSERT INTO sources (name, kind, commit_id) VALUES ('fork', 'git', 'bbbb')")
        run(
            "INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id, commit_id)"
            " SELECT 2, 'copy/' || path, 1, 1, content_id, 'cccc' FROM files"
        )
    opened = life.open()
    before = {row.sha256: row.path for row in learned(life.database, most=50) if "copy" not in row.path}
    with life.database.transaction() as tx:
        tx._cursor.execute("UPDATE files SET path = 'moved/' || path")
        tx._cursor.execute("UPDATE sources SET commit_id = 'dddd', licence = 'GPL-3.0'")
    folder = life.round(opened)
    receipt = reading.read(folder)
    assert {each.name: (each.commit, each.licence) for each in receipt.sources.values()} == {
        "fork": ("bbbb", None), "repo": ("aaaa", "MIT")
    }  # fmt: skip
    for each in contents_of(folder):
        if each.sha256 in before:
            path = before[each.sha256]
            assert each.files == (("fork", f"copy/{path}", "cccc"), ("repo", path))


def test_a_round_that_was_opened_by_an_older_version_has_a_receipt(life: Life) -> None:
    """Without the places that nobody wrote down."""
    opened = life.open()
    with life.database.transaction() as tx:
        tx._cursor.execute("DELETE FROM round_files")
        tx._cursor.execute("DELETE FROM round_sources")
    folder = life.round(opened)
    verifying.verify(folder)
    assert {each.files for each in contents_of(folder)} == {()}


def test_the_trainer_may_do_all_of_it(
    role_target: Callable[[str], Target], life: Life, tmp_path: Path
) -> None:
    """With the rights that its role has."""
    life.ledger.release(life.lease)
    database = Database(role_target("ratchet_trainer"), application="test")
    try:
        verifying.verify(Life(database, tmp_path / "others").round())
    finally:
        database.close()


# the commands


def test_the_command_says_it_in_words_and_as_json(
    life: Life, here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    life.round()
    folder = life.round()
    for asked in ("traced", "traced/round-0002", "round-0002", str(folder), str(life.dir / "current")):
        command.run(here, asked, verify=True, path=None, prove=None, as_json=False)
        said = capsys.readouterr().out
        assert "traced/round-0002: trained on 5 contents (3 new, 2 replayed)" in said
        assert "chain: round-0002 → round-0001 → base" in said
    command.run(here, "traced", verify=True, path=None, prove=None, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["contents"]["replay"] == 2
    assert document["chain"][-1] == {"adapter": "base", "receipt": None}
    assert [each["learned"] for each in document["sources"]] == [5]


def test_the_command_needs_no_database(
    life: Life, here: Environment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = life.round()
    nowhere = environment.read({"DATABASE_URL": "postgresql://x:y@127.0.0.1:1/z"}, project=tmp_path)
    command.run(nowhere, str(folder), verify=True, path=None, prove=None, as_json=False)
    assert "verified: every file of the adapter" in capsys.readouterr().out


def test_the_contents_of_a_path_are_listed(
    life: Life, here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """By source and path, or by path alone."""
    life.round()
    (content,) = learned(life.database)
    for pattern in (f"repo/{content.path[:20]}*", f"{content.path[:20]}*.py"):
        command.run(here, "traced", verify=False, path=pattern, prove=None, as_json=False)
        assert (
            f"{content.sha256}  repo/{content.path}  train, seen 3 times, lines 1–11"
            in capsys.readouterr().out
        )
    command.run(here, "traced", verify=False, path="*.rs", prove=None, as_json=True)
    assert json.loads(capsys.readouterr().out)["matches"] == []


def test_a_line_is_proven_without_the_others(
    life: Life, here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """The proof and the root are enough; another line has no such proof."""
    from services.trainer.receipts import merkle

    root = reading.read(life.round()).root
    (content,) = learned(life.database)
    command.run(here, "traced", verify=False, path=None, prove=content.sha256, as_json=False)
    proof = json.loads(capsys.readouterr().out)
    beside = [bytes.fromhex(digest) for digest in proof["beside"]]
    line = proof["line"].encode()
    assert merkle.proven_root(line, proof["index"], proof["size"], beside) == bytes.fromhex(root)
    other = line.replace(b'"seen":3', b'"seen":1')
    assert merkle.proven_root(other, proof["index"], proof["size"], beside) != bytes.fromhex(root)
    with pytest.raises(ReceiptError, match="has no content or task with the SHA-256 00"):
        command.run(here, "traced", verify=False, path=None, prove="00", as_json=False)


def test_what_is_no_adapter_is_said_to_be_none(life: Life, here: Environment, tmp_path: Path) -> None:
    (life.dir / "round-0003").mkdir(parents=True)
    for asked, message in (
        ("nothing", "nothing is no published adapter; expected TRACK, TRACK/round-0001 below"),
        ("traced", "traced has no champion: name a round of it"),
        (str(tmp_path), "is no published adapter"),
    ):
        with pytest.raises(ReceiptError, match=message):
            command.run(here, asked, verify=False, path=None, prove=None, as_json=False)


def test_a_round_that_two_tracks_have_is_to_be_named_with_its_track(life: Life, here: Environment) -> None:
    folder = life.round()
    shutil.copytree(folder, life.dir.parent / "other" / folder.name)
    with pytest.raises(ReceiptError, match="more than once: name one of other/round-0001, traced/round-0001"):
        command.run(here, "round-0001", verify=False, path=None, prove=None, as_json=False)


# which adapters have learned from something


def test_an_adapter_is_found_by_content_path_and_source(life: Life, tmp_path: Path) -> None:
    life.round()
    (content,) = learned(life.database)
    for asked in (content.sha256, f"repo/{content.path}", "repo", "repo/"):
        assert told(which(life.database, asked, tmp_path)) == [("traced/round-0001", "directly", True)]
    assert which(life.database, content.sha256, tmp_path)["adapters"][0]["seen"] == 3


def test_what_continues_from_such_an_adapter_has_inherited_it(life: Life, tmp_path: Path) -> None:
    """And the champion is the one that is champion now, also after a rollback."""
    life.recipe = life.recipe.model_copy(update={"replay_share": 0.0})
    for _ in range(3):
        life.round()
    (content,) = learned(life.database, 2)
    answer = which(life.database, content.sha256, tmp_path)
    assert told(answer) == [
        ("traced/round-0002", "directly", False),
        ("traced/round-0003", "inherited", True),
    ]
    assert answer["adapters"][1]["via"] == "traced/round-0002"
    life.champions.roll_back(ME, "round-0001")
    assert [each[2] for each in told(which(life.database, content.sha256, tmp_path))] == [False, False]
    life.champions.settle_trained()
    life.round()  # continues from the first: it inherits nothing of the second
    assert "traced/round-0004" not in {
        each[0] for each in told(which(life.database, content.sha256, tmp_path)) if each[1] == "inherited"
    }


def test_an_earlier_content_of_a_path_is_found_also_under_its_old_name(life: Life, tmp_path: Path) -> None:
    """The file was trained on, then edited and renamed."""
    life.round()
    (content,) = learned(life.database)
    with life.database.transaction() as tx:
        run = tx._cursor.execute
        run(
            "UPDATE files SET content_id = (SELECT id FROM contents WHERE id NOT IN"
            f" (SELECT content_id FROM round_contents) LIMIT 1) WHERE content_id = {content.id}"
        )
        run(f"UPDATE files SET path = 'new.py', renamed_from = path WHERE path = '{content.path}'")
    for asked in ("repo/new.py", f"repo/{content.path}"):
        assert told(which(life.database, asked, tmp_path)) == [("traced/round-0001", "directly", True)]


def test_a_folder_stands_for_what_lies_in_it(life: Life, tmp_path: Path) -> None:
    with life.database.transaction() as tx:
        tx._cursor.execute("UPDATE files SET path = 'src/' || path")
    life.round()
    assert told(which(life.database, "repo/src", tmp_path)) == [("traced/round-0001", "directly", True)]


def test_what_no_step_reached_was_not_trained_on(life: Life, tmp_path: Path) -> None:
    """Nor was what a round was judged by; both are said."""
    opened = life.open()
    first, *_ = learned(life.database, most=5)
    life.unseen = {first.id}
    life.round(opened)
    assert told(which(life.database, first.sha256, tmp_path)) == []
    (held_out, *_) = rows(
        life.database,
        "SELECT encode(c.sha256, 'hex') AS sha256 FROM round_contents rc"
        " JOIN contents c ON c.id = rc.content_id WHERE rc.role = 'held_out'",
    )
    answer = which(life.database, held_out.sha256, tmp_path)
    assert (told(answer), answer["judged_by"]) == ([], 1)
    assert list(which_adapters.lines(answer))[1:] == [
        "1 of the contents were set aside by some round, to be judged by"
    ]


def test_a_round_under_way_is_named(life: Life, tmp_path: Path) -> None:
    life.open()
    (content,) = learned(life.database)
    answer = which(life.database, content.sha256, tmp_path)
    assert (answer["under_way"], answer["adapters"]) == (["traced/round-0001"], [])


def test_an_adapter_from_before_receipts_is_found_by_the_ledger(life: Life, tmp_path: Path) -> None:
    """How often is not known."""
    life.round()
    with life.database.transaction() as tx:
        tx._cursor.execute("DELETE FROM exposures")
        tx._cursor.execute("""UPDATE adapters SET manifest = '{"files": {}}'""")
    (content,) = learned(life.database)
    (adapter,) = which(life.database, content.sha256, tmp_path)["adapters"]
    assert (adapter["how"], adapter["seen"], adapter["receipt"]) == ("directly", None, None)


def test_what_was_never_stored_is_said_so(life: Life, tmp_path: Path) -> None:
    for asked in ("0" * 64, "repo/no.py", "no-such-source", "./no.py"):
        with pytest.raises(PathError, match="was ever stored"):
            which(life.database, asked, tmp_path)


def test_a_file_of_ones_own_is_found_by_its_text(life: Life, tmp_path: Path) -> None:
    life.round()
    (content,) = learned(life.database)
    (text,) = rows(life.database, f"SELECT text FROM contents WHERE id = {content.id}")
    (tmp_path / "mine.py").write_text(text.text)
    assert told(which(life.database, "./mine.py", tmp_path)) == [("traced/round-0001", "directly", True)]
