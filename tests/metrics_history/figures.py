"""What a training logs and measures: curves, held-out losses, suites; the same for the same round."""

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.core.models import Json, Subject
from services.trainer.suites.suite import Report, Score

STEPS, LOG_EVERY, EVALUATE_EVERY = 240, 2, 24
PEAK_RATE = 1e-3
BITS_PER_BYTE = 0.79  # of the base model on the held-out code
TASKS, COMPLETIONS = 48, 24
COMPLETION = "completion"


@dataclass(frozen=True)
class ContentLoss:
    """As services/trainer/evaluate.py has it, which imports torch."""

    content_id: int
    nats: float
    tokens: int
    bytes: int
    correct: int


@dataclass(frozen=True)
class Held:
    """A held-out content."""

    content_id: int
    bytes: int


def curve(number: int, steps: int) -> Iterator[tuple[str, int, Json]]:
    """Kind, step and figures of round `number` up to a step, as the training loop logs them."""
    dice = random.Random(number)
    for step in range(0, steps + 1, LOG_EVERY):
        if step:
            yield "train", step, _train(dice, number, step)
        if step and step % EVALUATE_EVERY == 0:
            bits = 0.715 - 0.008 * number + 0.10 * math.exp(-step / 60) + dice.uniform(-0.002, 0.002)
            yield "eval", step, {"eval_loss": round(bits * 2.31, 5), "bits_per_byte": round(bits, 5)}


def _train(dice: random.Random, number: int, step: int) -> Json:
    warm = 0.1 * STEPS
    rate = PEAK_RATE * min(
        step / warm, 0.5 + 0.5 * math.cos(math.pi * max(0.0, step - warm) / (STEPS - warm))
    )
    return {
        "loss": round(1.05 - 0.03 * number + 0.9 * math.exp(-step / 40) + dice.uniform(-0.08, 0.08), 5),
        "learning_rate": rate,
        "grad_norm": round(0.35 + 1.4 * math.exp(-step / 30) + dice.uniform(0, 0.15), 4),
        "epoch": round(step / STEPS, 4),
        "micro_batch": 2,
        "tokens_per_s": round(845 + dice.uniform(-30, 30), 1),
        "input_stall": round(dice.uniform(0.001, 0.02), 4),
        "memory_bytes": float(2_412_000_000 + 1_000_000 * (step // 24)),
    }


def training(number: int, samples: int) -> Json:
    """As services/trainer/engine/figures.py's Training writes it."""
    points = [figures for kind, _, figures in curve(number, STEPS) if kind == "eval"]
    best = min(range(len(points)), key=lambda index: points[index]["eval_loss"])
    losses = [figures["loss"] for kind, _, figures in curve(number, STEPS) if kind == "train"]
    tokens = STEPS * 4 * 420
    return {
        "train_loss": sum(losses[-12:]) / 12,
        "eval_loss": points[best]["eval_loss"],
        "bits_per_byte": points[best]["bits_per_byte"],
        "steps": STEPS,
        "total_steps": STEPS,
        "best_step": EVALUATE_EVERY * (best + 1),
        "weights_step": EVALUATE_EVERY * (best + 1),
        "samples": samples,
        "tokens": tokens,
        "seconds": tokens / 845.0,
        "tokens_per_s": 845.0,
        "stopped_early": False,
        "micro_batch": 2,
        "ran_out_of_memory": 0,
        "rollbacks": 1 if number == 3 else 0,
        "skipped_batches": 1 if number == 3 else 0,
        "left_out": [71] if number == 3 else [],
        "processes": [[0, 1]],
        "input_stall": 0.0093,
        "peak_memory_bytes": 2_421_000_000,
    }


def losses(
    held: Sequence[Held], gains: Mapping[Subject, float], number: int
) -> dict[Subject, list[ContentLoss]]:
    """Losses of each model; gains: the share of the base model's bits that it saves."""
    found: dict[Subject, list[ContentLoss]] = {}
    for subject, gain in gains.items():
        found[subject] = []
        for content in held:
            of_content = random.Random(content.content_id)
            bits = BITS_PER_BYTE * of_content.uniform(0.85, 1.15) * (1 - gain)
            noise = random.Random(f"{content.content_id} {subject} {number}").gauss(0, 0.004)
            nats = content.bytes * bits * math.log(2) * (1 + (noise if gain else 0.0))
            tokens = max(1, content.bytes * 10 // 33)
            correct = int(tokens * (0.62 + gain / 2))
            found[subject].append(ContentLoss(content.content_id, nats, tokens, content.bytes, correct))
    return found


def bits_per_byte(measured: Sequence[ContentLoss]) -> float:
    return sum(one.nats for one in measured) / math.log(2) / sum(one.bytes for one in measured)


def reports(gain: float, solved: int) -> dict[str, Report]:
    """HumanEval with so many of its tasks solved, and completions of held-out functions."""
    tasks = tuple(
        Score(_digest(f"HumanEval/{n}"), f"HumanEval/{n}", f"HumanEval/{n}", "pass@1",
              float(n * 7 % TASKS < solved), detail={"completion": f"    return {n}\n"})
        for n in range(TASKS)
    )  # fmt: skip
    items = tuple(
        Score(_digest(f"completion {n}"), f"src/python/{n % 7}/part_{n:03}.py:{8 + n}", f"part_{n}", metric,
              value, detail={"written": "return sorted(each)", "expected": "return sorted(each)"})
        for n in range(COMPLETIONS)
        for metric, value in (
            ("exact_match", float(n * 5 % COMPLETIONS < COMPLETIONS * (0.25 + gain))),
            ("edit_similarity", min(1.0, 0.55 + gain + n % 5 / 20)),
        )
    )  # fmt: skip
    exact = [score.value for score in items if score.metric == "exact_match"]
    similar = [score.value for score in items if score.metric == "edit_similarity"]
    means = {"exact_match": sum(exact) / len(exact), "edit_similarity": sum(similar) / len(similar)}
    return {
        "humaneval": Report("humaneval", _digest("humaneval"), tasks, 184.2, 0, {"pass@1": solved / TASKS}),
        COMPLETION: Report(COMPLETION, _digest(COMPLETION), items, 41.7, 0, means),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
