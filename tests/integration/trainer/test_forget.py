"""Forgetting on a real PostgreSQL and real folders: what goes, what stays, wherever it was cut short."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core.db import Database, as_json
from services.core.errors import ForgetError, PromotionError
from services.core.settings import Settings
from services.trainer import withdrawn
from services.trainer.forgetting import course, passages, steps, withdrawing
from services.trainer.forgetting.found import Found
from services.trainer.forgetting.steps import Forgetting
from services.trainer.forgetting.target import find
from services.trainer.forgetting.words import Policy, State
from services.trainer.promotions.line import By
from tests.integration.trainer import corpus
from tests.integration.trainer.test_ledger import texts
from tests.integration.trainer.test_promotions import Life
from tests.integration.trainer.test_round import rows

ME = By("me", "because")
MARKER = "zxqj_forgotten_marker"
EVERY_COLUMN = """
    SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c
    JOIN information_schema.tables t USING (table_schema, table_name)
    WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'
      AND c.data_type IN ('text', 'jsonb', 'json', 'bytea', 'character varying', 'ARRAY')
"""


class Here:
    """A track of two rounds, settings that point below a folder, and a way to forget."""

    def __init__(self, life: Life, folder: Path) -> None:
        self.life = life
        self.database = life.database
        self.settings = Settings(
            ratchet_home=folder / "home",
            adapters_dir=life.dir.parent,
            checkpoints_dir=folder / "checkpoints",
            logs_dir=folder / "logs",
            cache_dir=folder / "cache",
        )

    def look(self, asked: str, policy: Policy = Policy.REFUSE, *, everywhere: bool = False) -> Found:
        with self.database.transaction() as tx:
            return course.look(tx, asked, policy, everywhere=everywhere)

    def begin(self, asked: str, policy: Policy = Policy.REFUSE, **options: Any) -> Forgetting:
        everywhere = options.pop("everywhere", False)
        looked = self.look(asked, policy, everywhere=everywhere)
        return course.begin(self.database, looked, "me", "asked to", options)

    def go_on(self, begun: Forgetting) -> Forgetting:
        erased = course.carry_on(self.database, self.settings, begun, None, lambda _line: None)
        return course.conclude(self.database, self.settings, erased, None)

    def forget(self, asked: str, policy: Policy = Policy.REFUSE, **options: Any) -> Forgetting:
        return self.go_on(self.begin(asked, policy, **options))

    def ids(self, table: str) -> set[int]:
        return {row.content_id for row in rows(self.database, f"SELECT content_id FROM {table}")}

    def path_of_round(self, number: int, role: str = "train") -> str:
        """A file that a round has in this role, as it is asked for."""
        (row, *_) = rows(
            self.database,
            "SELECT f.path FROM round_contents rc JOIN files f USING (content_id)"
            " JOIN rounds r ON r.id = rc.round_id"
            f" WHERE r.number = {number} AND rc.role = '{role}' ORDER BY f.path",
        )
        return f"repo/{row.path}"


@pytest.fixture
def here(database: Database, store: Callable[[list[str]], None], tmp_path: Path) -> Here:
    store([text.replace("argument", f"argument_{MARKER}") for text in texts(40)])
    life = Life(database, tmp_path)
    life.round()
    life.round()
    return Here(life, tmp_path)


def tables_with(database: Database, needle: str) -> list[str]:
    """Every column of every table in which the needle stands, as text or as bytes."""
    found = []
    for table, column, kind in rows(database, EVERY_COLUMN):
        as_text = f"encode({column}, 'escape')" if kind == "bytea" else f"{column}::text"
        if rows(database, f"SELECT FROM {table} WHERE strpos({as_text}, '{needle}') > 0 LIMIT 1"):
            found.append(f"{table}.{column}")
    return found


def content_of(database: Database, asked: str) -> Any:
    (row,) = rows(
        database,
        "SELECT c.* FROM contents c JOIN files f ON f.content_id = c.id"
        f" WHERE f.path = '{asked.removeprefix('repo/')}'",
    )
    return row


def test_it_says_what_would_go_and_touches_nothing(here: Here) -> None:
    """Files, texts, bytes; the adapter that learned it, the one that inherits it, and who serves instead."""
    path = here.path_of_round(1)
    before = rows(here.database, "SELECT sum(xmin::text::bigint) FROM contents")
    told = here.look(path).as_json()
    assert (told["files"], told["contents"], told["clusters"], told["shared"]) == (1, 1, 1, 0)
    assert told["bytes"] == content_of(here.database, path).bytes
    learned = [(each["directory"], each["contents"], each["is_champion"]) for each in told["adapters"]]
    assert learned == [("round-0001", 1, False), ("round-0002", 0, True)]
    assert told["refuges"] == {"moved": None}
    assert rows(here.database, "SELECT sum(xmin::text::bigint) FROM contents") == before
    assert rows(here.database, "SELECT * FROM forgettings") == []


def test_the_champion_gives_way_to_its_last_clean_ancestor(here: Here) -> None:
    """`current` moves, what only the withdrawn round learned is new again, and nothing else is."""
    path = here.path_of_round(2)
    done = here.forget(path)
    assert done.state is State.DONE
    assert here.life.current == "round-0001"
    assert here.life.trained() == here.life.learned() == {1}
    others = rows(
        here.database, "SELECT content_id FROM round_contents WHERE round_id = 2 AND role = 'train'"
    )
    new = {row.content_id for row in rows(here.database, "SELECT content_id FROM backlog WHERE is_new")}
    assert {row.content_id for row in others} - new == {row.content_id for row in others} & {
        row.content_id for row in rows(here.database, "SELECT content_id FROM forgotten_contents")
    }
    assert corpus.differences(here.database) == []
    (*_, move) = rows(here.database, "SELECT * FROM promotions ORDER BY id")
    assert (move.kind, move.actor) == ("rolled_back", "forget")
    assert here.life.ledger.retrains()


def test_what_the_first_round_learned_takes_every_adapter_along(here: Here) -> None:
    here.forget(here.path_of_round(1))
    assert here.life.current is None
    assert here.life.trained() == set()
    marked = rows(here.database, "SELECT contents FROM tainted_adapters ORDER BY adapter_id")
    assert [row.contents for row in marked] == [1, 0]


def test_the_next_round_trains_from_there_on_what_is_left(here: Here) -> None:
    path = here.path_of_round(2)
    gone = content_of(here.database, path)
    here.forget(path)
    opened = here.life.open()
    assert opened.parent is not None
    assert opened.parent.directory == "round-0001"
    taken = rows(here.database, f"SELECT content_id FROM round_contents WHERE round_id = {opened.round_id}")
    assert gone.id not in {row.content_id for row in taken}
    assert not here.life.ledger.retrains()
    here.life.close(opened)
    assert here.life.current == opened.name


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    number=st.sampled_from([1, 2]),
    role=st.sampled_from(["train", "validation", "held_out"]),
    whole=st.booleans(),
)
def test_no_table_holds_the_text(here: Here, number: int, role: str, whole: bool) -> None:
    """Whatever role it had: not as text, JSON or bytes, in no table there is."""
    left = rows(here.database, "SELECT FROM contents WHERE live")
    if not left:
        return
    try:
        path = here.path_of_round(number, role)
    except ValueError:  # all files of this kind are gone
        return
    content = content_of(here.database, path)
    needle = content.text.split("(")[0].removeprefix("def ") + "("
    with here.database.transaction() as tx:
        corpus.run(
            tx, "INSERT INTO units VALUES (%(id)s, 0, 'function', %(name)s, 0, 1, 1, 1, 0)",
            id=content.id, name=needle,
        )  # fmt: skip
        corpus.run(
            tx,
            "INSERT INTO suite_reports VALUES (%(r)s, 'candidate', %(s)s, 'v', 1, '{}', 1, 0);"
            " INSERT INTO suite_scores VALUES"
            " (%(r)s, 'candidate', %(s)s, 'i', 'exact_match', 'n', 'g', 1, 1, %(detail)s)",
            r=number,
            s=f"s{content.id}",
            detail=as_json({"kind": "line", "written": needle, "answer": needle}),
        )
        corpus.run(
            tx, "INSERT INTO claims (source_id, entries, files) VALUES (1, %(e)s, 1)", e=needle.encode()
        )  # fmt: skip
    assert {"contents.text", "units.name", "suite_scores.detail", "claims.entries"} <= set(
        tables_with(here.database, needle)
    )
    here.forget("repo" if whole else path)
    assert tables_with(here.database, needle) == []
    if whole:
        assert tables_with(here.database, MARKER) == []
    (kept,) = rows(here.database, f"SELECT * FROM contents WHERE id = {content.id}")
    assert (kept.text, kept.live, bytes(kept.sha256)) == ("", False, bytes(content.sha256))


def test_an_adapter_that_learned_it_can_never_be_the_champion(here: Here) -> None:
    """Not by promoting, rolling back or pinning, and not past the code either."""
    here.forget(here.path_of_round(2))
    champions = here.life.champions
    for move in (
        lambda: champions.promote("round-0002", ME),
        lambda: champions.roll_back(ME, "round-0002"),
        lambda: champions.pin(ME, "round-0002"),
    ):
        with pytest.raises(PromotionError, match="has learned what was forgotten since"):
            move()
    for statement in (
        "INSERT INTO promotions (track, kind, adapter_id, reason) VALUES ('moved', 'promoted', 2, 'x')",
        "INSERT INTO rounds (track, number, recipe, parent_adapter_id, snapshot_hash)"  # noqa: ISC004
        " VALUES ('moved', 9, '{}', 2, '')",
    ):
        with (
            pytest.raises(psycopg2.errors.RaiseException, match="has learned what forgetting 1 took back"),
            here.database.transaction() as tx,
        ):
            corpus.run(tx, statement)


def test_a_pin_on_an_adapter_that_learned_it_ends(here: Here) -> None:
    here.life.champions.pin(ME)
    here.forget(here.path_of_round(2))
    assert here.life.champions.line().pin is None
    assert here.life.current == "round-0001"


def test_with_warn_adapters_are_marked_and_serve_on(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    path = here.path_of_round(2)
    done = here.forget(path, Policy.WARN)
    assert done.found["refuges"] == {}
    assert (here.life.current, here.life.trained()) == ("round-0002", {1, 2})
    here.life.champions.roll_back(ME)
    here.life.champions.promote("round-0002", ME)
    assert "has learned what was forgotten since" in caplog.text
    assert rows(here.database, "SELECT count(*) AS blank FROM contents WHERE text = ''")[0].blank == 1


def test_an_open_round_that_trains_on_it_is_closed_and_its_checkpoints_go(here: Here) -> None:
    opened = here.life.open()
    folder = here.settings.checkpoints_dir / "moved" / opened.name
    folder.mkdir(parents=True)
    done = here.forget(here.path_of_round(3))
    (row,) = rows(here.database, "SELECT * FROM rounds WHERE number = 3")
    assert (row.state, row.verdict["promoted"]) == ("refused", False)
    assert "forgetting 1 of repo/" in row.verdict["reason"]
    assert not folder.exists()
    assert here.life.current == "round-0002"
    assert here.life.ledger.closed_for(opened.round_id) == float("inf")
    assert done.found["open_rounds"] == [{"track": "moved", "number": 3}]
    assert corpus.differences(here.database) == []


def test_a_text_that_another_file_holds_stays_unless_everywhere(here: Here) -> None:
    path = here.path_of_round(1)
    content = content_of(here.database, path)
    with here.database.transaction() as tx:
        corpus.run(tx, "INSERT INTO sources (name) VALUES ('other')")
        corpus.run(
            tx,
            "INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id)"
            " SELECT id, 'copy.py', 1, 0, %(id)s FROM sources WHERE name = 'other'",
            id=content.id,
        )
    looked = here.look(path)
    assert (len(looked.contents), looked.shared, looked.holders) == (0, 1, ("other/copy.py",))
    assert looked.adapters == ()
    here.forget(path, everywhere=True)
    reasons = rows(here.database, "SELECT reason FROM files WHERE reason IS NOT NULL")
    assert [row.reason for row in reasons] == ["forgotten", "forgotten"]
    assert here.life.current is None


def test_an_earlier_version_goes_with_its_file(here: Here) -> None:
    """A file was trained on and then edited: what it held then is forgotten, too."""
    path = here.path_of_round(1)
    content = content_of(here.database, path)
    with here.database.transaction() as tx:
        corpus.add(tx, 1)
        corpus.run(
            tx,
            "UPDATE files SET content_id = (SELECT max(id) FROM contents) WHERE content_id = %(id)s;"
            " UPDATE contents SET live = false WHERE id = %(id)s",
            id=content.id,
        )
    looked = here.look(path)
    assert content.id in looked.content_ids
    assert [each.is_earlier for each in looked.contents if each.content_id == content.id] == [True]
    here.forget(path)
    assert here.life.current is None


class CutShortError(Exception):
    """The process dies here."""


@pytest.mark.parametrize("point", ["forget.after_move", "forget.withdrawn", "forget.probed", "forget.done"])
def test_cut_short_anywhere_it_is_taken_up_and_ends_the_same(
    here: Here, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = here.path_of_round(2)
    opened = here.life.open()

    def die(name: str) -> None:
        if name == point:
            raise CutShortError(name)

    for module in (steps, withdrawing):
        monkeypatch.setattr(module, "failpoint", die)
    with pytest.raises(CutShortError):
        here.forget(path)
    monkeypatch.undo()
    assert here.life.current != "round-0002" or point == "forget.after_move"
    with here.database.transaction() as tx:
        begun = course.unfinished(tx, find(tx, path))
    if point == "forget.done":
        assert begun is None
    else:
        assert begun is not None
        assert here.go_on(begun).state is State.DONE
    (closed,) = rows(here.database, f"SELECT state FROM rounds WHERE id = {opened.round_id}")
    assert (closed.state, here.life.current, here.life.trained()) == ("refused", "round-0001", {1})
    assert (
        rows(here.database, "SELECT count(*) AS moves FROM promotions WHERE actor = 'forget'")[0].moves == 1
    )
    assert corpus.differences(here.database) == []


def test_remembering_lifts_the_marks_and_not_the_erasure(here: Here) -> None:
    path = here.path_of_round(2)
    content = content_of(here.database, path)
    here.forget(path)
    assert "forgetting 1" in (withdrawn.reason(here.life.dir, "round-0002") or "")
    assert withdrawn.reason(here.life.dir, "round-0001") is None
    forgetting, files = course.undo(here.database, here.settings, path)
    assert (forgetting.forgetting_id, files) == (1, 1)
    assert withdrawn.reason(here.life.dir, "round-0002") is None
    here.life.champions.promote("round-0002", ME)
    assert rows(here.database, f"SELECT text FROM contents WHERE id = {content.id}")[0].text == ""
    with pytest.raises(ForgetError, match="is not forgotten"):
        course.undo(here.database, here.settings, path)
    with pytest.raises(ForgetError, match="were lifted before"):
        course.undo(here.database, here.settings, "1")


def test_what_is_forgotten_is_not_forgotten_again(here: Here) -> None:
    path = here.path_of_round(2)
    here.forget(path)
    with pytest.raises(ForgetError, match="is forgotten already, by forgetting 1"):
        here.forget(path)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("repos", "there is no source 'repos': did you mean repo?"),
        ("repo/nowhere.py", "repo has no 'nowhere.py' and never had: for example"),
        ("", "there is no source ''"),
    ],
)
def test_what_is_unknown_names_the_nearest(here: Here, asked: str, said: str) -> None:
    with pytest.raises(ForgetError) as raised:
        here.look(asked)
    assert said in str(raised.value)


def test_a_folder_is_all_that_lies_below_it(here: Here) -> None:
    with here.database.transaction() as tx:
        corpus.run(tx, "UPDATE files SET path = 'src/' || path WHERE id <= 3")
        corpus.run(tx, "UPDATE files SET path = 'srcs/' || path WHERE id = 4")
    assert here.look("repo/src").files == here.look("repo/src/").files == 3
    assert here.look("repo").files == 40


def test_one_forgets_at_a_time(here: Here) -> None:
    with here.database.exclusive(steps.LOCK), pytest.raises(ForgetError, match="is under way"):
        steps.exclusively(here.database, lambda: None)


@pytest.mark.parametrize("role", ["ratchet_trainer", "ratchet_processor", "ratchet_metrics"])
def test_no_service_may_forget(role_target: Callable[[str], Any], role: str) -> None:
    database = Database(role_target(role), application="test")
    try:
        with pytest.raises(ForgetError, match=f"{role} may not forget"), database.transaction() as tx:
            steps.require_owner(tx)
    finally:
        database.close()


def test_passages_are_the_owners_alone_and_gone_at_the_end(here: Here) -> None:
    begun = here.begin(here.path_of_round(2))

    def measure(models: Any, _manifest: Any, sampled: Any) -> list[dict[str, Any]]:
        asked.append((models, sampled))
        return [{"adapter": model and model.name, "passages": 1, "extracted": 1} for model in models]

    asked: list[Any] = []
    erased = course.carry_on(here.database, here.settings, begun, measure, lambda _line: None)
    path = passages.path_of(here.settings, erased)
    assert path.stat().st_mode & 0o777 == 0o600
    assert MARKER in path.read_text()
    done = course.conclude(here.database, here.settings, erased, measure)
    assert not path.exists()
    assert list(path.parent.iterdir()) == []
    found = done.extraction["moved"]
    assert (found["before"]["adapter"], found["base"]["adapter"]) == ("round-0002", None)
    assert found["after"]["adapter"] == "round-0001"
    assert [[model and model.name for model in models] for models, _ in asked] == [
        [None, "round-0002"], ["round-0001"],
    ]  # fmt: skip


def test_a_model_that_cannot_be_measured_keeps_no_text_here(here: Here) -> None:
    def measure(*_: Any) -> Any:
        raise MemoryError("no room")

    begun = here.begin(here.path_of_round(2))
    erased = course.carry_on(here.database, here.settings, begun, measure, lambda _line: None)
    done = course.conclude(here.database, here.settings, erased, measure)
    assert (done.state, done.extraction["moved"]) == (State.DONE, {"problem": "MemoryError: no room"})


def test_adapters_are_deleted_when_asked_and_never_the_champion(here: Here) -> None:
    here.forget(here.path_of_round(2), delete_adapters=True)
    assert {each.name for each in here.life.dir.glob("[cr]*")} == {"current", "round-0001"}


def test_the_event_names_the_track(here: Here) -> None:
    here.forget(here.path_of_round(2))
    (event,) = rows(here.database, "SELECT * FROM events WHERE kind = 'source.forgotten'")
    assert (event.track, event.payload["adapters"]) == ("moved", ["moved/round-0002"])
