"""The trainer's side of the ledger: lease, rounds, snapshots, commits. Every write is fenced."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.db import Database, Transaction, as_json
from services.core.errors import LeaseLostError
from services.core.models import ContentRole, Json, RoundState, Subject
from services.core.process import failpoint
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import SampleSource, Unit
from services.trainer.selection import MOST_SET_ASIDE, Candidate, Choice, choose

LEASE_VARIABLE = "RATCHET_LEASE"  # the fencing token, handed to the child in its environment
SET_ASIDE = (ContentRole.VALIDATION, ContentRole.HELD_OUT)
LEASE = 20.0  # seconds; renewed with every heartbeat, so four may be missed


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


@dataclass(frozen=True)
class Round:
    round_id: int
    number: int
    attempt: int
    parent: Adapter | None  # the champion it continues from
    snapshot_hash: str
    recipe: Recipe  # as it was when the round was opened

    @property
    def name(self) -> str:
        return f"round-{self.number:04}"


class Ledger:
    """One track's rows. Methods raise DatabaseUnavailableError when PostgreSQL is away for long."""

    def __init__(self, database: Database, track: str) -> None:
        self._database = database
        self._track = track

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

    def open_round(self) -> Any:
        """The unfinished round's row, or None."""
        with self._database.transaction() as tx:
            return tx.one("open_round", track=self._track)

    def champion(self) -> Adapter | None:
        with self._database.transaction() as tx:
            return self._champion(tx)

    def directories(self) -> set[str]:
        with self._database.transaction() as tx:
            return {row.directory for row in tx.all("adapter_directories", track=self._track)}

    def snapshot(self, round_id: int) -> dict[ContentRole, list[SampleSource]]:
        """The round's contents with their text, units and places, in order, by role."""

        def work(tx: Transaction) -> dict[ContentRole, list[SampleSource]]:
            contents: dict[ContentRole, list[SampleSource]] = {role: [] for role in ContentRole}
            for row in tx.all("snapshot", round_id=round_id):
                contents[ContentRole(row.role)].append(sample_source(row))
            return contents

        return self._database.run(work)

    # writing

    def open_or_resume(
        self, lease: Lease, recipe: Recipe, threshold: int, max_dataset_size: int
    ) -> Round | None:
        """The open round, or a new one with its snapshot; None when there is nothing to train on."""

        def work(tx: Transaction) -> Round | None:
            self._hold(tx, lease)
            row = tx.one("open_round", track=self._track)
            if row is not None:
                attempt = tx.value("start_attempt", round_id=row.id)
                parent = self._adapter(tx, row.parent_adapter_id)
                begun_with = Recipe.model_validate(row.recipe)
                return Round(row.id, row.number, attempt, parent, row.snapshot_hash, begun_with)
            choice = self._choose(tx, recipe, threshold, max_dataset_size)
            if not choice.of(ContentRole.TRAIN):
                return None
            return self._insert_round(tx, recipe, choice)

        opened = self._database.run(work)
        failpoint("round.after_open")
        return opened

    def record_progress(self, round_id: int, kind: str, step: int, metrics: Mapping[str, Any]) -> None:
        """One try only: a database that is away must not hold up a training step."""
        with self._database.transaction() as tx:
            tx.execute(
                "record_progress", round_id=round_id, kind=kind, step=step, metrics=as_json(dict(metrics))
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
    ) -> None:
        """Commit the round: its evaluations, its verdict and, when promoted, adapter and promotion.

        All of it or nothing, and only under the newest lease (LeaseLostError otherwise). Safe to call
        again after a connection broke while committing.
        """

        def work(tx: Transaction) -> None:
            self._hold(tx, lease)
            closed = tx.value(
                "close_round",
                round_id=round_.round_id,
                state=state,
                training=None if training is None else as_json(training),
                verdict=as_json(verdict),
            )
            if closed is None:
                return  # the commit that seemed lost had gone through
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
                    )
            if manifest is not None:
                self._promote(tx, lease, round_, manifest, verdict["reason"])

        self._database.run(work)

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

    def _choose(self, tx: Transaction, recipe: Recipe, threshold: int, max_dataset_size: int) -> Choice:
        """From the best candidates; from more when those that are held out leave too few to train on."""
        wanted = min(max_dataset_size, recipe.max_contents or max_dataset_size)
        set_aside = math.ceil((recipe.held_out_min + recipe.validation_min) / MOST_SET_ASIDE)
        most = max(2 * wanted, wanted + set_aside)  # so many that the minima can be held out of them
        replayable = self._replayable(tx, recipe, wanted)
        wanted -= min(len(replayable), int(wanted * recipe.replay_share))
        while True:
            read = self._candidates(tx, recipe, threshold, most)
            candidates = [candidate for each in read for candidate in each]
            past_roles = self._past_roles(tx, [*candidates, *replayable])
            choice = choose(candidates, past_roles, recipe, max_dataset_size, replayable)
            barred = {cluster for cluster, roles in past_roles.items() if len(roles) > 1}
            barred |= {c.cluster_id for role, c in choice.contents if role in SET_ASIDE}
            if all(
                len(each) < most or sum(c.cluster_id not in barred for c in each) >= wanted for each in read
            ):
                return choice
            most *= 2

    def _candidates(
        self, tx: Transaction, recipe: Recipe, threshold: int, most: int
    ) -> list[list[Candidate]]:
        """The best `most`; where the recipe weighs languages, of each of them and of the others together."""
        asked: dict[str, Any] = {"track": self._track, "threshold": threshold, "most": most}
        if recipe.language_weights is None:
            rows = tx.all("candidates", **asked)
            return [[Candidate(row.content_id, bytes(row.sha256), row.cluster_id, row.score) for row in rows]]
        tx.execute("without_hurry")  # a language that is rare is looked for far down
        named = sorted(set(recipe.language_weights) - {"*"})
        groups = [
            tx.all("candidates_in_languages", languages=[name], among=True, **asked)
            for name in named
            if recipe.language_weights[name]
        ]
        if recipe.language_weights.get("*"):
            groups.append(tx.all("candidates_in_languages", languages=named, among=False, **asked))
        return [
            [Candidate(r.content_id, bytes(r.sha256), r.cluster_id, r.score, r.language) for r in rows]
            for rows in groups
        ]

    def _replayable(self, tx: Transaction, recipe: Recipe, wanted: int) -> list[Candidate]:
        """What may be replayed, as drawn: more than enough, since some may be held out by now."""
        if not recipe.replay_share:
            return []
        tx.execute("without_hurry")  # all that was ever learned is drawn from
        most = 2 * math.ceil(wanted * recipe.replay_share)
        return [
            Candidate(row.content_id, bytes(row.sha256), row.cluster_id, row.score)
            for row in tx.all("replayable", track=self._track, most=most)
        ]

    def _past_roles(self, tx: Transaction, candidates: Sequence[Candidate]) -> dict[int, set[ContentRole]]:
        clusters = list({candidate.cluster_id for candidate in candidates})
        roles: dict[int, set[ContentRole]] = {}
        for row in tx.all("cluster_roles", track=self._track, clusters=clusters):
            roles.setdefault(row.cluster_id, set()).add(ContentRole(row.role))
        return roles

    def _insert_round(self, tx: Transaction, recipe: Recipe, choice: Choice) -> Round:
        parent = self._champion(tx)
        row = tx.one(
            "insert_round",
            track=self._track,
            recipe=as_json(recipe.model_dump(mode="json")),
            parent=None if parent is None else parent.adapter_id,
            snapshot_hash=choice.hash,
        )
        positions: dict[ContentRole, int] = dict.fromkeys(ContentRole, -1)
        ids = [candidate.content_id for _, candidate in choice.contents]
        places = {place.content_id: place for place in tx.all("places", content_ids=ids)}
        rows = []
        for role, candidate in choice.contents:
            positions[role] += 1
            _, *place = places.get(candidate.content_id) or (None, None, None)
            rows.append((row.id, candidate.content_id, str(role), positions[role], *place))
        tx.copy("round_contents", ("round_id", "content_id", "role", "position", "source", "path"), rows)
        for cluster_id, role in sorted(choice.newly_set_aside.items()):
            tx.execute("set_aside", track=self._track, cluster_id=cluster_id, role=role, round_id=row.id)
        return Round(row.id, row.number, 1, parent, choice.hash, recipe)

    def _promote(self, tx: Transaction, lease: Lease, round_: Round, manifest: Json, reason: str) -> None:
        tx.execute("mark_trained", track=self._track, round_id=round_.round_id)
        adapter_id = tx.value(
            "insert_adapter",
            track=self._track,
            round_id=round_.round_id,
            directory=round_.name,
            manifest=as_json(manifest),
        )
        tx.execute("promote", track=self._track, adapter_id=adapter_id, token=lease.token, reason=reason)

    def _champion(self, tx: Transaction) -> Adapter | None:
        row = tx.one("champion", track=self._track)
        return None if row is None else Adapter(row.id, row.directory, row.manifest)

    def _adapter(self, tx: Transaction, adapter_id: int | None) -> Adapter | None:
        if adapter_id is None:
            return None
        row = tx.one("adapter", adapter_id=adapter_id)
        return Adapter(row.id, row.directory, row.manifest)


def sample_source(row: Any) -> SampleSource:
    """From a row with a content's text, units and place."""
    units = tuple(Unit(sys.intern(kind), *rest) for kind, *rest in row.units or ())
    return SampleSource(
        row.content_id, bytes(row.sha256), row.language, row.text, row.score, units, row.source, row.path
    )
