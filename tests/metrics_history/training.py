"""Six rounds of one track, as the trainer leaves them.

Promoted, refused, promoted, promoted and taken back, failed, and one that trains when the history ends.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from services.core.db import Transaction, as_json
from services.core.models import ContentRole, Json, RoundState, Subject
from services.trainer import gate
from services.trainer.recipes import files as recipe_files
from services.trainer.selection.held_out import HeldOut
from services.trainer.suites import records
from tests.metrics_history import figures
from tests.metrics_history.figures import ContentLoss, Held

TRACK = "demo"
THRESHOLD = 70
HELD_OUT, VALIDATION = 16, 8  # contents, set aside by the first round
RUNNING_STEP = 84


@dataclass(frozen=True)
class Planned:
    """A round to be written down."""

    number: int
    before: timedelta  # the moment of the history
    state: RoundState
    parent: int | None  # number of the round whose adapter it continues from
    gain: float = 0.0  # share of the base model's bits that its candidate saves
    solved: int = 11  # of HumanEval
    minutes: int = 52

    @property
    def name(self) -> str:
        return f"round-{self.number:04}"


ROUNDS = (
    Planned(1, timedelta(days=9), RoundState.PROMOTED, None, 0.074),
    Planned(2, timedelta(days=7), RoundState.REFUSED, 1, 0.0745),
    Planned(3, timedelta(days=4, hours=20), RoundState.PROMOTED, 1, 0.097, solved=12),
    Planned(4, timedelta(days=3), RoundState.PROMOTED, 3, 0.112, solved=11),
    Planned(5, timedelta(days=1), RoundState.FAILED, 3, minutes=25),
    Planned(6, timedelta(minutes=14), RoundState.OPEN, 3),
)
CRASHED = (
    "crashed 3 times; last: CUDA out of memory. Tried to allocate 1.53 GiB (GPU 0; 23.64 GiB total):"
    " lower BATCH_SIZE or MAX_LENGTH"
)


class Track:
    """Writes the rounds of the track, one after the other."""

    def __init__(self, transaction: Transaction, moment: datetime) -> None:
        self._tx = transaction
        self._moment = moment
        loaded = recipe_files.load(TRACK, {})
        changes = {"languages": None, "max_contents": 60, "general_suite": "humaneval", "replay_share": 0.2}
        self._recipe = loaded.model_copy(update=changes)
        self._rounds: dict[int, int] = {}  # number → id
        self._adapters: dict[int, int] = {}

    def fill(self) -> None:
        recipe = as_json(self._recipe.model_dump(mode="json"))
        self._tx.execute("ensure_track", track=TRACK, recipe=recipe)
        self._say(
            "UPDATE tracks SET token = 7, lease_holder = 'trainer-0:4711', created_at = %s,"
            " lease_expires_at = %s WHERE name = %s",
            self._moment - timedelta(days=10), self._moment + timedelta(seconds=18), TRACK,
        )  # fmt: skip
        for planned in ROUNDS:
            self._write(planned)
            if planned.number == 4:
                self._take_back()

    def _say(self, statement: str, *values: object) -> list[Any]:
        """Tests may say SQL directly: the services' named queries are theirs alone."""
        cursor = self._tx._cursor
        cursor.execute(statement, values)
        return list(cursor.fetchall()) if cursor.description else []

    def _write(self, planned: Planned) -> None:
        opened = self._moment - planned.before
        held = self._open(planned, opened)
        steps = {RoundState.FAILED: 36, RoundState.OPEN: RUNNING_STEP}.get(planned.state, figures.STEPS)
        self._log(planned, opened, steps)
        closed = opened + timedelta(minutes=planned.minutes)
        if planned.state is RoundState.FAILED:
            self._close(planned, closed, None, {"promoted": False, "reason": CRASHED})
        elif planned.state is not RoundState.OPEN:
            self._judge(planned, closed, held)

    def _open(self, planned: Planned, opened: datetime) -> list[Held]:
        """The round with its snapshot; what it is judged by."""
        chosen = self._chosen(opened)
        snapshot = hashlib.sha256(repr(chosen).encode()).hexdigest()
        held = [Held(row.id, row.bytes) for role, row in chosen if role is ContentRole.HELD_OUT]
        version = hashlib.sha256(repr(held).encode()).hexdigest()
        first = planned.number == 1
        told = HeldOut("cluster", None, version, len(held) // 2, 0, len(held) - len(held) // 2, 0)
        attempts = 3 if planned.state is RoundState.FAILED else 1
        round_id = self._say(
            "INSERT INTO rounds (track, number, recipe, parent_adapter_id, snapshot_hash, attempts,"
            " opened_at, held_out)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING id",
            TRACK, planned.number, as_json(self._told_recipe(planned.number)),
            self._adapters.get(planned.parent or 0), snapshot, attempts, opened, as_json(told.as_json()),
        )[0][0]  # fmt: skip
        self._rounds[planned.number] = round_id
        self._store(round_id, chosen)
        if first:
            for role, row in chosen:
                if role in (ContentRole.HELD_OUT, ContentRole.VALIDATION):
                    self._tx.execute(
                        "set_aside", track=TRACK, cluster_id=row.cluster_id, role=role, round_id=round_id
                    )
            anchors = [content.content_id for content in held[: len(held) // 2]]
            self._tx.execute("keep_anchors", track=TRACK, content_ids=anchors, round_id=round_id)
        return held

    def _told_recipe(self, number: int) -> Json:
        """From the third round on it learns more slowly: something to compare."""
        slower = {"learning_rate": 5e-4, "epochs": 2} if number >= 3 else {}
        return self._recipe.model_copy(update=slower).model_dump(mode="json")

    def _chosen(self, opened: datetime) -> list[tuple[ContentRole, Any]]:
        rows = self._say(
            "SELECT c.id, c.cluster_id, c.bytes, h.role AS aside,"
            "       EXISTS (SELECT FROM trained t WHERE t.track = %s AND t.content_id = c.id) AS learned"
            " FROM contents c LEFT JOIN held_out_clusters h ON h.track = %s AND h.cluster_id = c.cluster_id"
            " WHERE c.live AND c.score >= %s AND c.created_at <= %s ORDER BY c.score DESC, c.id",
            TRACK, TRACK, THRESHOLD, opened,
        )  # fmt: skip
        if any(row.aside for row in rows):
            aside = [(ContentRole(row.aside), row) for row in rows if row.aside]
        else:
            spread = rows[:: len(rows) // (HELD_OUT + VALIDATION)][: HELD_OUT + VALIDATION]
            aside = [
                (ContentRole.VALIDATION if place % 3 == 2 else ContentRole.HELD_OUT, row)
                for place, row in enumerate(spread)
            ]
        taken = {row.id for _, row in aside}
        fresh = [(ContentRole.TRAIN, row) for row in rows if row.id not in taken and not row.learned]
        again = [(ContentRole.REPLAY, row) for row in rows if row.id not in taken and row.learned][::6]
        return [*fresh, *aside, *again]

    def _store(self, round_id: int, chosen: Sequence[tuple[ContentRole, Any]]) -> None:
        ids = [row.id for _, row in chosen]
        places = {place.content_id: place for place in self._tx.all("places", content_ids=ids)}
        positions = dict.fromkeys(ContentRole, -1)
        rows = []
        for role, row in chosen:
            positions[role] += 1
            place = places[row.id]
            rows.append((round_id, row.id, str(role), positions[role], place.source, place.path))
        columns = ("round_id", "content_id", "role", "position", "source", "path")
        self._tx.copy("round_contents", columns, rows)
        self._tx.execute("record_round_files", round_id=round_id)
        self._tx.execute("record_round_sources", round_id=round_id)

    def _log(self, planned: Planned, opened: datetime, steps: int) -> None:
        round_id = self._rounds[planned.number]
        rows = [
            (round_id, step, kind, metrics, opened + timedelta(seconds=90 + 8 * step))
            for kind, step, metrics in figures.curve(planned.number, steps)
        ]
        self._tx.copy("progress", ("round_id", "step", "kind", "metrics", "logged_at"), rows)

    def _judge(self, planned: Planned, closed: datetime, held: Sequence[Held]) -> None:
        """Evaluations, suites, the gate's own verdict on them and, when promoted, the adapter."""
        gains = {Subject.BASE: 0.0, Subject.CANDIDATE: planned.gain}
        solved = {Subject.BASE: 11, Subject.CANDIDATE: planned.solved}
        if planned.parent is not None:
            before = next(each for each in ROUNDS if each.number == planned.parent)
            gains[Subject.CHAMPION], solved[Subject.CHAMPION] = before.gain, before.solved
        measured = figures.losses(held, gains, planned.number)
        round_id = self._rounds[planned.number]
        self._tx.copy(
            "evaluations",
            ("round_id", "subject", "content_id", "nats", "tokens", "bytes", "correct"),
            [
                (round_id, str(subject), one.content_id, one.nats, one.tokens, one.bytes, one.correct)
                for subject, all_of_it in measured.items()
                for one in all_of_it
            ],
        )
        for subject, gain in gains.items():
            for report in figures.reports(gain, solved[subject]).values():
                records.record(self._tx, round_id, subject, report)
        verdict = self._verdict(planned, measured)
        training = figures.training(planned.number, samples=960)
        self._close(planned, closed, training, verdict)
        if planned.state is RoundState.PROMOTED:
            self._publish(planned, closed, training, verdict)

    def _verdict(self, planned: Planned, measured: dict[Subject, list[ContentLoss]]) -> Json:
        against = Subject.CHAMPION if Subject.CHAMPION in measured else Subject.BASE
        code = [
            gate.Paired(str(new.content_id), old.nats, new.nats, new.bytes)
            for old, new in zip(measured[against], measured[Subject.CANDIDATE], strict=True)
        ]
        earlier = tuple(each.state is RoundState.PROMOTED for each in ROUNDS if each.number < planned.number)
        rule = gate.Rule(general_suite=None, seed=self._recipe.seed)
        evidence = gate.Evidence(code, against, None, gate.History(earlier), ("held out by cluster",))
        told = gate.decide(evidence, rule).as_json()
        assert told["promoted"] == (planned.state is RoundState.PROMOTED), told["reason"]
        bits = {
            str(subject): figures.bits_per_byte(measured[subject]) if subject in measured else None
            for subject in Subject
        }
        return {**told, "bits_per_byte": bits}

    def _close(self, planned: Planned, closed: datetime, training: Json | None, verdict: Json) -> None:
        self._say(
            "UPDATE rounds SET state = %s, closed_at = %s, training = %s, verdict = %s WHERE id = %s",
            planned.state, closed, None if training is None else as_json(training), as_json(verdict),
            self._rounds[planned.number],
        )  # fmt: skip

    def _publish(self, planned: Planned, closed: datetime, training: Json, verdict: Json) -> None:
        round_id = self._rounds[planned.number]
        manifest = self._manifest(planned, closed, training, verdict)
        adapter_id = self._say(
            "INSERT INTO adapters (track, round_id, directory, manifest, published_at, canary)"
            " VALUES (%s, %s, %s, %s, %s, %s) RETURNING id",
            TRACK, round_id, planned.name, as_json(manifest), closed,
            as_json({"passed": True, "reason": "it is what was judged", "nats": manifest["canary"]}),
        )[0][0]  # fmt: skip
        self._adapters[planned.number] = adapter_id
        self._say(
            "INSERT INTO exposures SELECT round_id, content_id, 1 + position %% 3, 380 * (1 + position %% 3)"
            " FROM round_contents WHERE round_id = %s AND role IN ('train', 'replay')",
            round_id,
        )
        self._move(planned.number, "promoted", "gate", verdict["reason"], closed, token=7)

    def _manifest(self, planned: Planned, closed: datetime, training: Json, verdict: Json) -> Json:
        names = ("adapter_config.json", "adapter_model.safetensors", "receipt.jsonl", "tokenizer.json")
        return {
            "track": TRACK,
            "round": planned.number,
            "kind": "adapter",
            "recipe": self._told_recipe(planned.number),
            "base_model": self._recipe.base_model,
            "base_revision": None,
            "parent": None if planned.parent is None else f"round-{planned.parent:04}",
            "snapshot_hash": hashlib.sha256(planned.name.encode()).hexdigest(),
            "metrics": {"training": training, "verdict": verdict, "assessments": {}},
            "canary": [1.91 - planned.gain, 2.13 - planned.gain],
            "greedy": [[312, 17, 4], [98, 5]],
            "created_at": closed.isoformat(timespec="seconds"),
            "files": {name: hashlib.sha256((planned.name + name).encode()).hexdigest() for name in names},
        }

    def _take_back(self) -> None:
        """A person was not content with the fourth round."""
        day = self._moment - timedelta(days=2, hours=20)
        self._move(3, "rolled_back", "mira", "completions of billing got shorter since round 4", day)
        self._move(4, "rejected", "mira", "completions of billing got shorter since round 4", day)
        self._move(3, "pinned", "mira", "until the release is out", day + timedelta(hours=1))
        self._move(3, "unpinned", "jonas", "released", day + timedelta(days=1))

    def _move(
        self, number: int, kind: str, actor: str, reason: str, at: datetime, token: int | None = None
    ) -> None:
        self._say(
            "INSERT INTO promotions (track, adapter_id, token, kind, actor, reason, promoted_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            TRACK, self._adapters[number], token, kind, actor, reason, at,
        )  # fmt: skip
        self._tx.execute("settle_trained", track=TRACK)
