"""The moves of a champion by hand, on a real PostgreSQL and real folders."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core.db import Database
from services.core.errors import ConfigurationError, LeaseLostError, PromotionError, PublishError
from services.core.models import RoundState
from services.trainer import publish, seals
from services.trainer.ledger import Closing, Lease, Ledger, Round
from services.trainer.promotions.champions import Champions
from services.trainer.promotions.line import By, Kind, Line, Move, Published
from services.trainer.recipes.recipe import Recipe
from tests import tiny_adapter
from tests.integration.trainer import corpus
from tests.integration.trainer.test_ledger import texts
from tests.integration.trainer.test_round import rows

ME = By("me", "because")
VERDICT = {"promoted": True, "reason": "better", "low": 0.01}


class Life:
    """A track whose rounds train on five contents each and publish a folder with one file."""

    def __init__(self, database: Database, adapters: Path, name: str = "moved") -> None:
        self.database = database
        self.recipe = Recipe(name=name, base_model="./model", held_out_min=2, validation_min=1)
        self.ledger = Ledger(database, name)
        lease = self.ledger.take(self.recipe, "a trainer")
        assert lease is not None
        self.lease: Lease = lease
        self.dir = adapters / name
        self.champions = Champions(database, name, self.dir)

    def open(self) -> Round:
        opened = self.ledger.open_or_resume(self.lease, self.recipe, 70, 5)
        assert opened is not None
        return opened

    def close(self, opened: Round, state: RoundState = RoundState.PROMOTED) -> Closing:
        manifest = None
        if state is RoundState.PROMOTED:
            manifest = publish.publish(
                self.dir, opened.name, lambda folder: tiny_adapter.make(folder, opened.number),
                {"track": self.recipe.name},
            )  # fmt: skip
        closing = self.ledger.close(
            self.lease, opened, state=state, training={},
            verdict=VERDICT if manifest else {**VERDICT, "promoted": False, "reason": "no better"},
            losses={}, manifest=manifest,
        )  # fmt: skip
        self.champions.follow()
        return closing

    def round(self) -> str:
        opened = self.open()
        self.close(opened)
        return opened.name

    @property
    def current(self) -> str | None:
        link = self.dir / publish.CURRENT
        return str(link.readlink()) if link.is_symlink() else None

    def trained(self) -> set[int]:
        return {row.round_id for row in rows(self.database, "SELECT DISTINCT round_id FROM trained")}

    def learned(self) -> set[int]:
        """The rounds in the champion, told from the ledger alone."""
        champion, numbers = self.champions.line().champion, set()
        parents = {row.id: row for row in rows(self.database, "SELECT * FROM rounds")}
        of_adapter = {
            row.id: row.round_id for row in rows(self.database, "SELECT id, round_id FROM adapters")
        }
        at = None if champion is None else champion.adapter_id
        while at is not None:
            numbers.add(of_adapter[at])
            at = parents[of_adapter[at]].parent_adapter_id
        return numbers


@pytest.fixture
def life(database: Database, store: Callable[[list[str]], None], tmp_path: Path) -> Life:
    store(texts(60))
    return Life(database, tmp_path)


def test_a_rollback_brings_the_champion_before_back(life: Life) -> None:
    """`current`, the ledger and what counts as learned, with its row."""
    first, second = life.round(), life.round()
    moved = life.champions.roll_back(ME)
    life.champions.settle_trained()
    assert (moved.before, moved.champion, life.current) == (second, first, first)
    assert life.trained() == life.learned() == {1}
    champion = life.ledger.champion()
    assert champion is not None
    assert champion.directory == first
    (*_, row) = rows(life.database, "SELECT * FROM promotions ORDER BY id")
    assert (row.kind, row.actor, row.reason, row.token) == ("rolled_back", "me", "because", None)


def test_what_only_a_rolled_back_adapter_learned_can_be_trained_on_again(life: Life) -> None:
    """By the very next round; what the champion knows stays out, and what is forgotten is not new."""
    life.round()
    life.round()
    life.champions.roll_back(ME)
    life.champions.settle_trained()
    assert corpus.differences(life.database) == []
    offered = {
        row.content_id for row in rows(life.database, "SELECT content_id FROM backlog WHERE NOT is_new")
    }
    forgotten = rows(life.database, "SELECT content_id FROM round_contents WHERE round_id=2 AND role='train'")
    assert {row.content_id for row in forgotten} <= offered
    third = life.open()
    assert third.parent is not None
    assert third.parent.directory == "round-0001"


def test_a_rollback_that_was_cut_short_is_settled_before_the_next_round(life: Life) -> None:
    """The move is committed, `trained` is not settled: the next round sees to it."""
    life.round()
    life.round()
    life.champions.roll_back(ME)
    assert life.trained() == {1, 2}
    life.open()
    assert life.trained() == {1}


def test_rollbacks_go_on_to_the_base_model(life: Life) -> None:
    """Without a champion there is no `current`, and a round begins afresh."""
    life.round()
    life.round()
    life.champions.roll_back(ME)
    assert life.champions.roll_back(ME).champion is None
    assert (life.current, life.ledger.champion()) == (None, None)
    with pytest.raises(PromotionError, match="nothing to roll back"):
        life.champions.roll_back(ME)
    assert life.open().parent is None
    assert life.trained() == set()


def test_an_earlier_champion_or_the_base_can_be_named(life: Life) -> None:
    names = [life.round() for _ in range(3)]
    assert life.champions.roll_back(ME, names[0]).champion == names[0]
    life.champions.promote(names[2], ME)
    assert life.champions.roll_back(ME).champion == names[0]
    life.champions.promote(names[2], ME)
    assert life.champions.roll_back(ME, "base").champion is None


def test_an_adapter_that_is_not_there_is_answered_with_the_nearest_names(life: Life) -> None:
    life.round()
    with pytest.raises(PromotionError, match="has no adapter round-001: did you mean round-0001"):
        life.champions.promote("round-001", ME)
    with pytest.raises(PromotionError, match="is the champion of moved already"):
        life.champions.promote("round-0001", ME)


def test_damaged_files_are_never_promoted(life: Life) -> None:
    first, _ = life.round(), life.round()
    (life.dir / first / "adapter_model.safetensors").write_text("damaged")
    for move in (life.champions.promote, lambda name, by: life.champions.roll_back(by, name)):
        with pytest.raises(PublishError, match="changed: do not use it"):
            move(first, ME)
    assert life.current == "round-0002"


def test_a_rejected_champion_goes_back_to_the_nearest_whole_one(life: Life) -> None:
    """One that is damaged is passed over. What was rejected is nobody's target again."""
    names = [life.round() for _ in range(3)]
    (life.dir / names[1] / "adapter_model.safetensors").write_text("damaged")
    moved = life.champions.reject(names[2], ME)
    assert moved.kinds == (Kind.ROLLED_BACK, Kind.REJECTED)
    assert moved.champion == life.current == names[0]
    for move in (life.champions.promote, life.champions.reject):
        with pytest.raises(PromotionError, match="rejected"):
            move(names[2], ME)


def test_rounds_do_not_move_a_pinned_champion(life: Life) -> None:
    """A candidate that passes is published and recorded; promoting it by hand is possible."""
    first = life.round()
    life.champions.pin(By("me", "release week"))
    opened = life.open()
    closing = life.close(opened)
    assert closing.state is RoundState.REFUSED
    assert "pinned by me (release week)" in closing.reason
    assert life.current == first
    assert life.trained() == {1}
    life.champions.promote(opened.name, ME)
    life.champions.settle_trained()
    assert life.trained() == {1, 2}
    life.champions.unpin(ME)
    assert life.close(life.open()).state is RoundState.PROMOTED
    with pytest.raises(PromotionError, match="is not pinned"):
        life.champions.unpin(ME)


def test_an_adapter_can_be_pinned_by_name(life: Life) -> None:
    first, _ = life.round(), life.round()
    assert life.champions.pin(ME, first).kinds == (Kind.PROMOTED, Kind.PINNED)
    assert life.current == first


def test_a_round_under_way_does_not_outlive_its_champion(life: Life) -> None:
    """Its candidate was compared with another one: it commits nothing, and its contents wait."""
    life.round()
    life.round()
    opened = life.open()
    assert life.champions.roll_back(ME).closed_round == 3
    closing = life.close(opened)
    assert closing.state is RoundState.REFUSED
    assert "moved to round-0001 by me" in closing.reason
    assert life.current == "round-0001"
    assert life.ledger.directories() == {"round-0001", "round-0002"}
    assert corpus.differences(life.database) == []
    again = life.open()
    assert (again.number, again.parent and again.parent.directory) == (4, "round-0001")


def test_a_commit_and_a_move_by_hand_wait_for_one_another(life: Life) -> None:
    """The move begins while the commit holds the track: it sees the round's champion and looks again."""
    life.round()
    opened = life.open()
    failed: list[Exception] = []

    def move() -> None:
        try:
            life.champions.roll_back(ME)
        except PromotionError as exc:
            failed.append(exc)

    with life.database.transaction() as tx:
        tx.execute("hold_track", track="moved")
        hand = threading.Thread(target=move)
        hand.start()
        corpus_wait(life.database)
        tx.execute(
            "record_move",
            track="moved",
            kind="rolled_back",
            adapter_id=None,
            token=None,
            actor="x",
            reason="y",
        )
    hand.join(60)
    assert "at this moment" in str(failed[0])
    assert life.ledger.champion() is None
    assert opened.number == 2


def corpus_wait(database: Database) -> None:
    """Until somebody waits for a lock."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    deadline = time.monotonic() + 60
    while not rows(database, waiting) and time.monotonic() < deadline:
        time.sleep(0.02)


def test_an_old_lease_moves_nothing(life: Life) -> None:
    life.round()
    with pytest.raises(LeaseLostError):
        life.champions.roll_back(By("canary", "damaged", token=life.lease.token - 1))
    assert life.current == "round-0001"


def test_a_track_that_is_not_there_is_answered_with_those_that_are(life: Life) -> None:
    with pytest.raises(ConfigurationError, match="no track other; tracks: moved"):
        Champions(life.database, "other", life.dir).follow()


def test_a_promotion_that_was_taken_back_earns_no_wealth(life: Life) -> None:
    """The gate's history: looks in order, with those that the champion stands on."""
    life.round()
    life.close(life.open(), RoundState.REFUSED)
    life.round()
    assert life.ledger.history() == (True, False, True)
    life.champions.roll_back(ME)
    assert life.ledger.history() == (True, False, False)


def test_moves_are_never_changed_or_deleted(life: Life) -> None:
    life.round()
    for statement in ("UPDATE promotions SET reason = ''", "DELETE FROM promotions"):
        with pytest.raises(Exception, match="append-only"), life.database.transaction() as tx:
            tx._cursor.execute(statement)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.sampled_from(["round", "refuse", "back", "base", "promote", "reject", "open"]), max_size=9
    )
)
def test_whatever_is_moved_the_ledger_knows_what_the_champion_learned(
    events: list[str], life_of: Callable[[], Life]
) -> None:
    """`current`, `trained` and the backlog follow the champion; a move that cannot be changes nothing."""
    life = life_of()
    for event in events:
        happen(life, event)
        champion = life.champions.line().champion
        assert life.current == (None if champion is None else champion.directory)
        of_track = f"track = '{life.recipe.name}'"
        trained = {
            row.round_id for row in rows(life.database, f"SELECT round_id FROM trained WHERE {of_track}")
        }
        assert trained == life.learned()
    assert corpus.differences(life.database) == []


@pytest.fixture
def life_of(database: Database, store: Callable[[list[str]], None], tmp_path: Path) -> Callable[[], Life]:
    store(texts(60))
    numbers = iter(range(1000))
    return lambda: Life(database, tmp_path, f"track-{next(numbers)}")


def happen(life: Life, event: str) -> None:
    names = [each.directory for each in life.champions.line().adapters]
    try:
        match event:
            case "round":
                life.round()
            case "refuse":
                life.close(life.open(), RoundState.REFUSED)
            case "open":
                life.open()
            case "back":
                life.champions.roll_back(ME)
            case "base":
                life.champions.roll_back(ME, "base")
            case "promote" if names:
                life.champions.promote(names[len(names) // 2], ME)
            case "reject" if names:
                life.champions.reject(names[-1], ME)
    except PromotionError:
        pass
    life.champions.settle_trained()


def test_a_rollback_undoes_a_promotion_by_hand() -> None:
    """Back to the champion before it, not to the one its round began from."""
    adapters = tuple(Published(n, f"round-{n:04}") for n in range(1, 5))
    moves = [
        Move(Kind.PROMOTED, 1),
        Move(Kind.PROMOTED, 2),
        Move(Kind.ROLLED_BACK, 1),
        Move(Kind.PROMOTED, 3),
    ]
    line = Line(adapters, (*moves, Move(Kind.PINNED, 3), Move(Kind.PROMOTED, 2)))
    assert line.champions() == [None, 1, 3, 2]
    assert [each and each.adapter_id for each in line.earlier] == [3, 1, None]
    assert line.pin is not None


def rot(folder: Path) -> None:
    """What a seal cannot see: the disk gives back another byte than it was given."""
    with (folder / "adapter_model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    seals.seal(folder, seals.state(folder))


def test_a_champion_that_turns_out_damaged_is_rejected(life: Life) -> None:
    """A move goes by the seal; what reads the files through afterwards goes back one further."""
    names = [life.round() for _ in range(3)]
    assert life.champions.examine(ME) is None
    rot(life.dir / names[1])
    assert life.champions.roll_back(ME).champion == names[1]
    moved = life.champions.examine(ME)
    assert moved is not None
    assert (moved.before, moved.champion, life.current) == (names[1], names[0], names[0])
    assert life.champions.examine(ME) is None
    (*_, row) = rows(life.database, "SELECT actor, reason FROM promotions ORDER BY id")
    assert "adapter_model.safetensors is changed" in row.reason
