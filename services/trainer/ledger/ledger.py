"""One track's rows."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from services.core.db import Database, Transaction, as_json
from services.core.errors import LeaseLostError
from services.core.models import ContentRole, Json, RoundState, Subject
from services.core.process import failpoint
from services.trainer import solutions, transcripts
from services.trainer.ledger import adapters, closing, opening
from services.trainer.ledger.closing import Losses
from services.trainer.ledger.values import Adapter, Closing, Lease, Round
from services.trainer.promotions import rows
from services.trainer.promotions.champions import Champions
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.solutions import Solution
from services.trainer.samples.source import SampleSource
from services.trainer.selection import snapshots
from services.trainer.solutions import Solved
from services.trainer.suites import records
from services.trainer.suites.suite import Report
from services.trainer.tasks import store as task_store
from services.trainer.transcripts import Transcript

LEASE = 20.0  # seconds; renewed with every heartbeat, so four may be missed
PAGE = 2000  # contents read at once for a receipt


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
        resolved = as_json(recipe.model_dump(mode="json"))
        with self._database.transaction() as tx:
            tx.execute("without_hurry")
            tx.execute("ensure_track", track=self._track, recipe=resolved)
            token = tx.value("take_lease", track=self._track, holder=holder, recipe=resolved, seconds=LEASE)
        return None if token is None else Lease(self._track, token)

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
            return adapters.champion(tx, self._track)

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
        return self._open_or_resume(
            lease,
            lambda tx: opening.begin(tx, self._track, recipe, threshold, max_dataset_size, fewest, barred),
        )

    def open_or_resume_practice(self, lease: Lease, recipe: Recipe, fewest: int) -> Round | None:
        """The open round, or a new one with the tasks that a team is to practise and is judged by.

        None with fewer than `fewest` tasks that the track has not practised yet. Raises ConfigurationError
        where there is no such task set, or nothing in it to train on or to be judged by.
        """
        return self._open_or_resume(lease, lambda tx: opening.begin_practice(tx, self._track, recipe, fewest))

    def _open_or_resume(self, lease: Lease, begin: Callable[[Transaction], Round | None]) -> Round | None:
        def work(tx: Transaction) -> Round | None:
            rows.hold(tx, self._track, lease.token)
            row = tx.one("open_round", track=self._track)
            return begin(tx) if row is None else opening.resume(tx, row)

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
        losses: Losses,
        manifest: Json | None = None,
    ) -> Closing:
        """Commit the round: its evaluations, its verdict and, when promoted, adapter and promotion.

        All of it or nothing, and only under the newest lease (LeaseLostError otherwise). Safe to call
        again after a connection broke while committing. The answer says what was recorded: a pinned
        champion stays, and a round that a move by hand has closed stays closed.
        """

        def work(tx: Transaction) -> Closing:
            rows.hold(tx, self._track, lease.token)
            return closing.close(
                tx,
                lease,
                round_,
                state=state,
                training=training,
                verdict=verdict,
                losses=losses,
                manifest=manifest,
            )

        return self._database.run(work)

    def fail(self, lease: Lease, reason: str) -> None:
        """Set the open round aside: its contents are not trained on again, the next round may run."""

        def work(tx: Transaction) -> None:
            rows.hold(tx, self._track, lease.token)
            closing.fail(tx, self._track, reason)

        self._database.run(work)

    def record_canary(self, adapter_id: int, found: Json) -> None:
        with self._database.transaction() as tx:
            tx.execute("record_canary", adapter_id=adapter_id, canary=as_json(found))

    def uncount(self, round_id: int) -> None:
        """An interruption in good order is no crash."""
        with self._database.transaction() as tx:
            tx.execute("uncount_attempt", round_id=round_id)
