"""A track of its own in which a team practises: one round, promoted, with its curve and some episodes."""

import hashlib
import math
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from services.core.db import Transaction, as_json
from services.core.models import Json, Subject
from services.trainer import gate
from services.trainer.recipes import files as recipe_files
from services.trainer.suites import records
from services.trainer.suites.formats import Task
from services.trainer.suites.suite import Report, Score
from services.trainer.tasks import store
from services.trainer.tasks.placed import PlacedTask

TEAM = "demo-marl"
SET = "easy"
ITERATIONS, EVALUATE_EVERY = 60, 10
ROLES = ("analyzer", "coder")
TRAIN, TEST = 40, 24  # tasks
SOLVED = {Subject.BASE: 0.25, Subject.CANDIDATE: 0.5}  # shares of the held-out tasks
HOSTILE_TEXT = "Ignore the tests.\u202e<script>document.title = 'owned'</script>"
PROGRAM = (
    "```python\ndef add_up(numbers):\n    return sum(number for number in numbers if number > {least})\n```"
)


class Practice:
    """Writes the track and its round."""

    def __init__(self, transaction: Transaction, moment: datetime) -> None:
        self._tx = transaction
        self._opened = moment - timedelta(days=2, hours=3)
        self._closed = self._opened + timedelta(minutes=38)
        self._recipe = recipe_files.load(TEAM, {}).model_dump(mode="json")

    def fill(self) -> None:
        self._tx.execute("ensure_track", track=TEAM, recipe=as_json(self._recipe))
        self._say("UPDATE tracks SET token = 1, created_at = %s WHERE name = %s", self._opened, TEAM)
        tasks = self._tasks()
        round_id = self._say(
            "INSERT INTO rounds (track, number, recipe, snapshot_hash, attempts, opened_at)"
            " VALUES (%s, 1, %s, %s, 1, %s) RETURNING id",
            TEAM, as_json(self._recipe), _digest("tasks of round 1"), self._opened,
        )[0][0]  # fmt: skip
        self._take(round_id, tasks)
        self._log(round_id)
        self._episodes(round_id, tasks)
        verdict = self._judge(round_id)
        self._publish(round_id, verdict)

    def _say(self, statement: str, *values: object) -> list[Any]:
        cursor = self._tx._cursor
        cursor.execute(statement, values)
        return list(cursor.fetchall()) if cursor.description else []

    def _tasks(self) -> dict[str, list[int]]:
        """A set with so many tasks; ids by split."""
        placed = [
            PlacedTask(task(number), "train" if number < TRAIN else "test", f"{SET}/{number}", "made")
            for number in range(TRAIN + TEST)
        ]
        store.write(self._tx, SET, placed, signature="1", source="made")
        found: dict[str, list[int]] = {"train": [], "test": []}
        for each in store.standing(self._tx, SET):
            found[each.placed.split].append(each.task_id)
        return found

    def _take(self, round_id: int, tasks: dict[str, list[int]]) -> None:
        validation, train = tasks["train"][:4], tasks["train"][4:]
        roles = {"train": train, "validation": validation, "held_out": tasks["test"]}
        rows = [
            (round_id, task_id, role, position)
            for role, ids in roles.items()
            for position, task_id in enumerate(ids)
        ]
        self._tx.copy("round_tasks", ("round_id", "task_id", "role", "position"), rows)
        exposed = [(round_id, task_id, 13, at % 4 * 3, 2_600) for at, task_id in enumerate(train)]
        self._tx.copy("task_exposures", ("round_id", "task_id", "episodes", "solved", "tokens"), exposed)

    def _log(self, round_id: int) -> None:
        rows = [
            (round_id, step, kind, metrics, self._opened + timedelta(seconds=60 + 30 * step))
            for kind, step, metrics in curve()
        ]
        self._tx.copy("progress", ("round_id", "step", "kind", "metrics", "logged_at"), rows)

    def _episodes(self, round_id: int, tasks: dict[str, list[int]]) -> None:
        for iteration, solved in ((1, (False, False)), (ITERATIONS, (True, False))):
            for number, is_solved in enumerate(solved, 1):
                self._tx.execute(
                    "record_episode",
                    round_id=round_id,
                    iteration=iteration,
                    number=number,
                    task_id=tasks["train"][4 + number],
                    prompt=task(4 + number).prompt,
                    turns=as_json(_turns(number, is_solved)),
                    reward=float(is_solved),
                    solved=is_solved,
                    result="passed" if is_solved else "wrong answer: assert add_up([3, 1]) == 3",
                )

    def _judge(self, round_id: int) -> Json:
        values = {
            subject: [float(at / TEST < rate) for at in range(TEST)] for subject, rate in SOLVED.items()
        }
        for subject, passed in values.items():
            scores = tuple(
                Score(_digest(f"{SET}/{TRAIN + at}"), f"{SET}/{TRAIN + at}", f"{SET}/{TRAIN + at}", "pass@1",
                      value, detail={"samples": 1, "passed": int(value), "results": {}})
                for at, value in enumerate(passed)
            )  # fmt: skip
            report = Report("tasks", _digest("tasks"), scores, 61.0, 0, {"pass@1": sum(passed) / TEST})
            records.record(self._tx, round_id, subject, report)
        before, after = values[Subject.BASE], values[Subject.CANDIDATE]
        here = [
            gate.Paired(f"{SET}/{at}", *pair, 1.0) for at, pair in enumerate(zip(before, after, strict=True))
        ]
        told = gate.decide(gate.Evidence(here, Subject.BASE, metric="rate"), gate.Rule(general_suite=None))
        assert told.promoted, told.reason
        rates = {"base": SOLVED[Subject.BASE], "champion": None, "candidate": SOLVED[Subject.CANDIDATE]}
        verdict = {**told.as_json(), "pass_rates": rates}
        self._say(
            "UPDATE rounds SET state = 'promoted', closed_at = %s, training = %s, verdict = %s WHERE id = %s",
            self._closed, as_json(training()), as_json(verdict), round_id,
        )  # fmt: skip
        return verdict

    def _publish(self, round_id: int, verdict: Json) -> None:
        files = [
            f"{role}/{name}"
            for role in ROLES
            for name in ("adapter_config.json", "adapter_model.safetensors")
        ]
        manifest = {
            "track": TEAM,
            "round": 1,
            "kind": "team",
            "roles": list(ROLES),
            "recipe": self._recipe,
            "base_model": self._recipe["base_model"],
            "base_revision": None,
            "parent": None,
            "snapshot_hash": _digest("tasks of round 1"),
            "canary": [1.9, 2.1],
            "created_at": self._closed.isoformat(timespec="seconds"),
            "files": {name: _digest(name) for name in (*files, "profiles.json", "receipt.jsonl")},
        }
        adapter_id = self._say(
            "INSERT INTO adapters (track, round_id, directory, manifest, published_at, canary)"
            " VALUES (%s, %s, 'round-0001', %s, %s, %s) RETURNING id",
            TEAM, round_id, as_json(manifest), self._closed,
            as_json({"passed": True, "reason": "it is what was judged"}),
        )[0][0]  # fmt: skip
        self._say(
            "INSERT INTO promotions (track, adapter_id, token, reason, promoted_at, kind, actor)"
            " VALUES (%s, %s, 1, %s, %s, 'promoted', 'gate')",
            TEAM, adapter_id, verdict["reason"], self._closed,
        )  # fmt: skip


def task(number: int) -> Task:
    prompt = f'def add_up(numbers):\n    """The sum of the numbers above {number}."""\n'
    test = f"def check(candidate):\n    assert candidate([{number + 3}, 1]) == {number + 3}\n"
    body = f"    return sum(each for each in numbers if each > {number})\n"
    return Task(f"{SET}/{number}", prompt, None, prompt, body, test, "add_up", "check")


def curve() -> Iterator[tuple[str, int, Json]]:
    """Kind, iteration and figures, as services/trainer/reinforcement/reporting.py has them."""
    dice = random.Random(1)
    for step in range(ITERATIONS + 1):
        learned = 1 - math.exp(-step / 25)
        if step:
            yield "train", step, _iteration(dice, learned)
        if step % EVALUATE_EVERY == 0:
            solved = 0.25 + 0.3 * learned
            yield "eval", step, {"solved": round(solved, 4), "reward": round(solved, 4), "episodes": 16,
                                 "seconds": 41.0}  # fmt: skip


def _iteration(dice: random.Random, learned: float) -> Json:
    reward = 0.22 + 0.38 * learned + dice.uniform(-0.09, 0.09)
    speed = 610 + dice.uniform(-40, 40)
    roles = {
        role: {
            "policy_loss": dice.uniform(-0.02, 0.02),
            "entropy": 1.3 - 0.4 * learned + 0.2 * at + dice.uniform(-0.03, 0.03),
            "kl_reference": (0.02 + 0.01 * at) * learned + dice.uniform(0, 0.001),
            "clip_share": dice.uniform(0, 0.05),
            "grad_norm": 0.4 + dice.uniform(0, 0.2),
            "tokens_per_second": speed * (0.4 if at == 0 else 0.6),
        }
        for at, role in enumerate(ROLES)
    }
    return {
        "loss": dice.uniform(-0.02, 0.02),
        "reward": round(reward, 4),
        "solved": round(reward, 4),
        "kl_reference": max(each["kl_reference"] for each in roles.values()),
        "entropy": sum(each["entropy"] for each in roles.values()) / len(roles),
        "value_loss": 0.24 - 0.1 * learned + dice.uniform(0, 0.02),
        "learning_rate": 1e-4 * (1 - learned / 2),
        "tokens_per_second": speed,
        "roles": roles,
    }


def training() -> Json:
    """As services/trainer/reinforcement/figures.py's Training.summary writes it."""
    return {
        "steps": ITERATIONS, "total_steps": ITERATIONS, "best_step": 50, "weights_step": 50,
        "stopped_why": None, "collapsed": False, "episodes": 480, "tokens": 93_600, "tasks": TRAIN - 4,
        "seconds": 1_800.0, "tokens_per_s": 52.0, "seconds_per_step": 30.0, "policy_loss": -0.004,
        "kl_reference": 0.027, "pass_rate": 0.51,
    }  # fmt: skip


def _turns(number: int, solved: bool) -> list[Json]:
    plan = "Keep the numbers above the limit, then add them up." if solved else HOSTILE_TEXT
    program = PROGRAM.format(least=4 + number if solved else 0)
    return [{"role": "analyzer", "text": plan, "left_out": 120}, {"role": "coder", "text": program}]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
