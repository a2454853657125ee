"""The trainer's side of the ledger: lease, rounds, snapshots, commits. Every write is fenced."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.core.db import Database, Transaction, as_json
from services.core.errors import LeaseLostError
from services.core.models import ContentRole, Json, RoundState, Subject
from services.core.process import failpoint
from services.trainer import promotions, snapshots, solutions, transcripts
from services.trainer.held_out import HeldOut
from services.trainer.promotions import By, Champions, Kind, Move
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement, section
from services.trainer.samples.solutions import Solution
from services.trainer.samples.source import SampleSource
from services.trainer.selection import Choice
from services.trainer.snapshots import Selection
from services.trainer.solutions import Offered, Solved
from services.trainer.suites import records
from services.trainer.suites.suite import Report
from services.trainer.tasks import store as task_store
from services.trainer.transcripts import Transcript

LEASE_VARIABLE = "RATCHET_LEASE"  # the fencing token, handed to the child in its environment
ANY_NUMBER_VARIABLE = "RATCHET_ANY_NUMBER"  # set for the child: a round may begin with nothing new
OLDER = {"planted_secrets": 0}  # what a round that was opened by an older version does
LEASE = 20.0  # seconds; renewed with every heartbeat, so four may be missed
PAGE = 2000  # contents read at once for a receipt


@dataclass(frozen=True)
class Lease:
    """The right to train a track. The token grows with every lease: an older one commits nothing."""

    track: str
    token: int


@dataclass(frozen=True)
class Adapter:
    adapter_id: int
    directory: str  # below the track's folder
    manifest: Json
    canary: Json | None = None  # what it found after promotion; None: it was not asked yet


@dataclass(frozen=True)
class Round:
    round_id: int
    number: int
    attempt: int
    parent: Adapter | None  # the champion it continues from
    snapshot_hash: str
    recipe: Recipe  # as it was when the round was opened
    held_out: HeldOut | None = None  # what it is judged by; None: it was opened by an older version

    @property
    def name(self) -> str:
        return f"round-{self.number:04}"


@dataclass(frozen=True)
class Closing:
    """How a round was closed in the end."""

    state: RoundState
    reason: str


class Ledger:
    """One track's rows. Methods raise DatabaseUnavailableError when PostgreSQL is away for long."""

    def __init__(self, database: Database, track: str) -> None:
        self._database = database
        self._track = track

    @property
    def database(self) -> Database:
        return self._database

    # the lease

    def take(self, recipe: Recipe, holder: str) -> Lease | None:
        """The lease, or None while another trainer holds it."""

        def work(tx: Transaction) -> Lease | None:
            resolved = as_json(recipe.model_dump(mode="json"))
            tx.execute("without_hurry")
            tx.execute("ensure_track", track=self._track, recipe=resolved)
            token = tx.value("take_lease", track=self._track, holder=holder, recipe=resolved, seconds=LEASE)
            return None if token is None else Lease(self._track, token)

        with self._database.transaction() as tx:
            return work(tx)

    def renew(self, lease: Lease) -> None:
        """Raises LeaseLostError when another trainer has the track now."""
        with self._database.transaction() as tx:
            if tx.value("renew_lease", track=self._track, token=lease.token, seconds=LEASE) is None:
                raise LeaseLostError(f"another trainer has taken the track {self._track}")

    def release(self, lease: Lease) -> None:
        with self._database.transaction() as tx:
            tx.execute("release_lease", track=self._track, token=lease.token)

    # looking

    def count_new(self, threshold: int, most: int) -> int:
        """How many contents that fit the track's recipe no round has had; counting stops at `most`."""
        with self._database.transaction() as tx:
            return int(tx.value("count_new_contents", track=self._track, threshold=threshold, most=most))

    def count_new_tasks(self, task_set: str, most: int) -> int:
        """How many tasks of the set no round of the track has practised; counting stops at `most`."""
        with self._database.transaction() as tx:
            return task_store.count_new(tx, self._track, task_set, most)

    def retrains(self) -> bool:
        """Whether its champion was left for what it had learned, and no round has begun since."""
        with self._database.transaction() as tx:
            return bool(tx.value("retrains", track=self._track))

    def history(self) -> tuple[bool, ...]:
        """Of each measured verdict of the track, in order, whether its candidate is in the champion."""
        with self._database.transaction() as tx:
            return tuple(row.promoted for row in tx.all("gate_history", track=self._track))

    def closed_for(self, round_id: int) -> float:
        """Seconds since the round was closed; 0 while it is open."""
        with self._database.transaction() as tx:
            return float(tx.value("closed_for", round_id=round_id) or 0.0)

    def open_round(self) -> Any:
        """The unfinished round's row, or None."""
        with self._database.transaction() as tx:
            return tx.one("open_round", track=self._track)

    def champion(self) -> Adapter | None:
        with self._database.transaction() as tx:
            return self._champion(tx)

    def champions(self, track_dir: Path) -> Champions:
        """The moves of the track's champion, and of `current` in its folder."""
        return Champions(self._database, self._track, track_dir)

    def directories(self) -> set[str]:
        with self._database.transaction() as tx:
            return {row.directory for row in tx.all("adapter_directories", track=self._track)}

    def snapshot(self, round_id: int) -> dict[ContentRole, list[SampleSource]]:
        """The round's contents with their text, units and places, in order, by role."""
        return self._database.run(lambda tx: snapshots.read(tx, round_id))

    def tasks(self, round_id: int) -> dict[ContentRole, list[task_store.StoredTask]]:
        """What a team practises in the round and is judged by, in order, by role."""
        return self._database.run(lambda tx: task_store.read(tx, round_id))

    def solutions(self, round_id: int) -> list[Solution]:
        """The programs of reinforcement rounds in the round's snapshot, in order."""
        return self._database.run(lambda tx: solutions.read(tx, round_id))

    # for the receipt of what was trained on

    def contents_by_role(self, round_id: int) -> dict[ContentRole, int]:
        """How many contents of the round have which role."""
        rows = self._database.run(lambda tx: tx.all("receipt_counts", round_id=round_id))
        return {ContentRole(row.role): row.contents for row in rows}

    def sources_of(self, round_id: int) -> list[Any]:
        """The sources of its contents, as they were when it was opened."""
        return self._database.run(lambda tx: tx.all("receipt_sources", round_id=round_id))

    def contents_of(self, round_id: int, role: ContentRole) -> Iterator[Any]:
        """Its contents in that role, in order, without their texts; read a page at a time."""
        after = -1

        def page(tx: Transaction) -> list[Any]:
            return tx.all("receipt_contents", round_id=round_id, role=role, after=after, most=PAGE)

        while rows := self._database.run(page):
            yield from rows
            after = rows[-1].position

    def record_exposures(self, round_id: int, exposures: Iterable[tuple[int, int, int]]) -> None:
        """Content, times seen, tokens; in place of what an earlier attempt recorded."""
        counted = [(round_id, *each) for each in exposures]

        def work(tx: Transaction) -> None:
            tx.execute("forget_exposures", round_id=round_id)
            tx.copy("exposures", ("round_id", "content_id", "seen", "tokens"), counted)

        self._database.run(work)

    def record_solutions_seen(self, round_id: int, seen: Mapping[int, int]) -> None:
        """Solution → times that it was in a step."""
        self._database.run(lambda tx: solutions.record_seen(tx, round_id, seen))

    def record_task_exposures(self, round_id: int, exposures: Sequence[task_store.TaskExposure]) -> None:
        """How often each task was practised, in place of what an earlier attempt recorded."""
        self._database.run(lambda tx: task_store.record_exposures(tx, round_id, exposures))

    # writing

    def open_or_resume(
        self, lease: Lease, recipe: Recipe, threshold: int, max_dataset_size: int, fewest: int = 1,
        barred: Collection[bytes] = (),
    ) -> Round | None:  # fmt: skip
        """The open round, or a new one with its snapshot; None when there is nothing to train on.

        Nor when there are fewer than `fewest` contents that no source has too many of. `barred` are tasks
        whose solutions are not trained on, by the SHA-256 of what they ask.
        """

        def begin(tx: Transaction) -> Round | None:
            tx.execute("settle_trained", track=self._track)  # a move by hand may have been cut short
            offered = solutions.offered(tx, self._track, recipe, max_dataset_size, barred)
            most = solutions.room(recipe, max_dataset_size, len(offered))
            choice = Selection(tx, self._track, recipe, threshold, most).choice()
            if not choice.is_worth_a_round(min(fewest, most)):
                return None
            return self._insert_round(tx, recipe, choice, offered)

        return self._open_or_resume(lease, begin)

    def open_or_resume_practice(self, lease: Lease, recipe: Recipe, fewest: int) -> Round | None:
        """The open round, or a new one with the tasks that a team is to practise and is judged by.

        None with fewer than `fewest` tasks that the track has not practised yet. Raises ConfigurationError
        where there is no such task set, or nothing in it to train on or to be judged by.
        """
        asked = section(recipe)

        def begin(tx: Transaction) -> Round | None:
            if task_store.count_new(tx, self._track, asked.tasks, fewest) < fewest:
                return None
            return self._insert_practice(tx, recipe, asked)

        return self._open_or_resume(lease, begin)

    def _open_or_resume(self, lease: Lease, begin: Callable[[Transaction], Round | None]) -> Round | None:
        def work(tx: Transaction) -> Round | None:
            self._hold(tx, lease)
            row = tx.one("open_round", track=self._track)
            if row is None:
                return begin(tx)
            attempt = tx.value("start_attempt", round_id=row.id)
            parent = self._adapter(tx, row.parent_adapter_id)
            begun_with = Recipe.model_validate({**OLDER, **row.recipe})
            held_out = None if row.held_out is None else HeldOut(**row.held_out)
            return Round(row.id, row.number, attempt, parent, row.snapshot_hash, begun_with, held_out)

        opened = self._database.run(work)
        failpoint("round.after_open")
        return opened

    def record_progress(self, round_id: int, kind: str, step: int, metrics: Mapping[str, Any]) -> None:
        """One try only: a database that is away must not hold up a training step."""
        with self._database.transaction() as tx:
            tx.execute(
                "record_progress", round_id=round_id, kind=kind, step=step, metrics=as_json(dict(metrics))
            )

    def record_suites(self, round_id: int, subject: Subject, reports: Iterable[Report]) -> None:
        """What a model of the round scored, in place of what an earlier attempt recorded."""

        def work(tx: Transaction) -> None:
            for report in reports:
                records.record(tx, round_id, subject, report)

        self._database.run(work)

    def keep_solutions(self, round_id: int, solved: Sequence[Solved]) -> int:
        """Programs of a reinforcement round that passed; how many of them are new. One try only."""
        with self._database.transaction() as tx:
            return solutions.store(tx, round_id, solved)

    def record_episodes(self, round_id: int, iteration: int, told: Sequence[Transcript]) -> None:
        """Episodes of a reinforcement round, for its page. One try only."""
        with self._database.transaction() as tx:
            transcripts.store(tx, round_id, iteration, told)

    def record_samples(self, round_id: int, samples: Sequence[Any]) -> None:
        """Samples as the model saw them (shown_samples.ShownSample), for the round's page. One try only."""
        with self._database.transaction() as tx:
            for number, sample in enumerate(samples, 1):
                tx.execute(
                    "record_sample",
                    round_id=round_id,
                    number=number,
                    contents=list(sample.contents),
                    kind=sample.kind,
                    tokens=sample.tokens,
                    learned=sample.learned,
                    runs=as_json(sample.runs_as_json()),
                )

    def close(
        self,
        lease: Lease,
        round_: Round,
        *,
        state: RoundState,
        training: Json | None,
        verdict: Json,
        losses: Mapping[Subject, Sequence[Any]],
        manifest: Json | None = None,
    ) -> Closing:
        """Commit the round: its evaluations, its verdict and, when promoted, adapter and promotion.

        All of it or nothing, and only under the newest lease (LeaseLostError otherwise). Safe to call
        again after a connection broke while committing. The answer says what was recorded: a pinned
        champion stays, and a round that a move by hand has closed stays closed.
        """

        def work(tx: Transaction) -> Closing:
            self._hold(tx, lease)
            pin = None if manifest is None else promotions.line(tx, self._track).pin
            recorded, outcome = verdict, state
            if pin is not None:
                outcome = RoundState.REFUSED
                recorded = {**verdict, "promoted": False, "reason": _pinned(round_, verdict["reason"], pin)}
            closed = tx.value(
                "close_round",
                round_id=round_.round_id,
                state=outcome,
                training=None if training is None else as_json(training),
                verdict=as_json(recorded),
            )
            if closed is None:  # the commit that seemed lost had gone through, or the champion was moved
                row = tx.one("round_outcome", round_id=round_.round_id)
                return Closing(RoundState(row.state), row.reason)
            for subject, items in losses.items():
                for item in items:
                    tx.execute(
                        "record_evaluation",
                        round_id=round_.round_id,
                        subject=subject,
                        content_id=item.content_id,
                        nats=item.nats,
                        tokens=item.tokens,
                        bytes=item.bytes,
                        correct=item.correct,
                    )
            if manifest is not None:
                adapter_id = self._register(tx, round_, manifest)
                if pin is None:
                    self._promote(tx, lease, adapter_id, verdict["reason"])
            return Closing(outcome, recorded["reason"])

        return self._database.run(work)

    def fail(self, lease: Lease, reason: str) -> None:
        """Set the open round aside: its contents are not trained on again, the next round may run."""

        def work(tx: Transaction) -> None:
            self._hold(tx, lease)
            row = tx.one("open_round", track=self._track)
            if row is not None:
                verdict = as_json({"promoted": False, "reason": reason})
                tx.execute(
                    "close_round", round_id=row.id, state=RoundState.FAILED, training=None, verdict=verdict
                )

        self._database.run(work)

    def record_canary(self, adapter_id: int, found: Json) -> None:
        with self._database.transaction() as tx:
            tx.execute("record_canary", adapter_id=adapter_id, canary=as_json(found))

    def uncount(self, round_id: int) -> None:
        """An interruption in good order is no crash."""
        with self._database.transaction() as tx:
            tx.execute("uncount_attempt", round_id=round_id)

    # inside a transaction

    def _hold(self, tx: Transaction, lease: Lease) -> None:
        if tx.value("hold_token", track=self._track, token=lease.token) is None:
            raise LeaseLostError(
                f"another trainer has taken the track {self._track}: token {lease.token} commits nothing"
            )

    def _insert_round(
        self, tx: Transaction, recipe: Recipe, choice: Choice, offered: Sequence[Offered]
    ) -> Round:
        parent = self._champion(tx)
        learned = sum(len(choice.of(role)) for role in (ContentRole.TRAIN, ContentRole.REPLAY))
        solved = solutions.share(offered, recipe, learned)
        snapshot_hash = solutions.snapshot_hash(choice.digest(), solved)
        row = tx.one(
            "insert_round",
            track=self._track,
            recipe=as_json(recipe.model_dump(mode="json")),
            parent=None if parent is None else parent.adapter_id,
            snapshot_hash=snapshot_hash,
            held_out=as_json(choice.held_out.as_json()),
        )
        snapshots.store(tx, self._track, row.id, choice)
        solutions.store_snapshot(tx, row.id, solved)
        return Round(row.id, row.number, 1, parent, snapshot_hash, recipe, choice.held_out)

    def _insert_practice(self, tx: Transaction, recipe: Recipe, asked: Reinforcement) -> Round:
        """With other tasks of the set each time, where it has more than a round takes."""
        parent = self._champion(tx)
        number = tx.value("next_number", track=self._track)
        choice = task_store.choose(tx, self._track, asked, seed=recipe.seed + number)
        row = tx.one(
            "insert_round",
            track=self._track,
            recipe=as_json(recipe.model_dump(mode="json")),
            parent=None if parent is None else parent.adapter_id,
            snapshot_hash=choice.hash,
            held_out=None,
        )
        task_store.store_snapshot(tx, row.id, choice)
        return Round(row.id, row.number, 1, parent, choice.hash, recipe)

    def _register(self, tx: Transaction, round_: Round, manifest: Json) -> int:
        """Enter what was published; its id."""
        return int(
            tx.value(
                "insert_adapter",
                track=self._track,
                round_id=round_.round_id,
                directory=round_.name,
                manifest=as_json(manifest),
            )
        )

    def _promote(self, tx: Transaction, lease: Lease, adapter_id: int, reason: str) -> None:
        by = By("gate", reason, lease.token)
        promotions.record(tx, self._track, Kind.PROMOTED, adapter_id, by)
        tx.execute("settle_trained", track=self._track)

    def _champion(self, tx: Transaction) -> Adapter | None:
        row = tx.one("champion", track=self._track)
        return None if row is None else Adapter(row.id, row.directory, row.manifest, row.canary)

    def _adapter(self, tx: Transaction, adapter_id: int | None) -> Adapter | None:
        if adapter_id is None:
            return None
        row = tx.one("adapter", adapter_id=adapter_id)
        return Adapter(row.id, row.directory, row.manifest)


def _pinned(round_: Round, reason: str, pin: Move) -> str:
    """Why a candidate that passed the gate is not the champion."""
    return (
        f"{reason}; but the champion is pinned by {pin.actor} ({pin.reason}):"
        f" `ratchet promote {round_.name}` makes this one the champion"
    )
