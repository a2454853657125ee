"""Ability elsewhere without running anything: what the solutions of a benchmark cost the model.

`humaneval-loss` is bits per byte of HumanEval's canonical solutions, each after its prompt, as plain text
whatever the recipe's samples are; a file of the folder of benchmarks gives the same as `NAME-loss`. It
moves with pass@1 but needs no sandbox, takes seconds, and has no noise of sampling.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from services.trainer import evaluate
from services.trainer.engine.compute import Compute
from services.trainer.evaluate import ContentLoss
from services.trainer.packing import pack
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.sample import Sample
from services.trainer.suites.formats import Task
from services.trainer.suites.suite import Score

SUFFIX = "-loss"
ROW_TOKENS = 2048  # of solutions packed together; a longer task has a row of its own
ROWS_AT_ONCE = 4  # on a GPU; a CPU gains nothing by it and needs a gigabyte more


@dataclass(frozen=True)
class Item:
    """A task's solution behind its prompt."""

    task: Task
    sample: Sample

    @property
    def key(self) -> str:
        """SHA-256 of all that decides the loss but the weights."""
        about = [list(self.sample.ids), self.sample.code_start, self.sample.code_end]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def items(tasks: Sequence[Task], tokenizer: Any) -> list[Item]:
    """Each as the tokens of its prompt and those of its solution, of which the latter count."""
    encoder = Encoder(tokenizer)
    prompts = encoder.plain([task.asked for task in tasks])
    solutions = encoder.plain([task.continuation for task in tasks])
    made = []
    for number, (task, prompt, solution) in enumerate(zip(tasks, prompts, solutions, strict=True)):
        start = len(encoder.begin) + len(prompt)
        ids = [*encoder.begin, *prompt, *solution]
        size = len(task.continuation.encode())
        made.append(Item(task, Sample(number, ids, start, start, len(ids), size)))
    return made


def measure(
    compute: Compute,
    asked: Sequence[Item],
    *,
    pad_id: int,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """Nats of each solution, weighed by its bytes; batched as held-out losses are."""
    if not asked:
        return []
    longest = max(ROW_TOKENS, *(len(item.sample.ids) for item in asked))
    found = evaluate.losses(
        compute,
        pack([item.sample for item in asked], longest),
        rows_at_once=ROWS_AT_ONCE if next(compute.model.parameters()).is_cuda else 1,
        pad_id=pad_id,
        longest=longest,
        on_rows=on_done,
    )
    by_number = {each.content_id: each for each in found}
    return [_score(item, by_number[item.sample.content_id]) for item in asked]


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """Bits per byte, perplexity of a token and share of tokens predicted, over all solutions together."""
    losses = [
        ContentLoss(0, score.value, score.detail["tokens"], int(score.weight), score.detail["correct"])
        for score in scores
    ]
    return {
        "bits_per_byte": evaluate.bits_per_byte(losses),
        "perplexity": evaluate.perplexity(losses),
        "token_accuracy": evaluate.token_accuracy(losses),
    }


def _score(item: Item, loss: ContentLoss) -> Score:
    detail = {"tokens": loss.tokens, "correct": loss.correct}
    return Score(item.key, item.task.name, item.task.name, "nats", loss.nats, float(loss.bytes), detail)
