"""Prompts in, completions out: rows of different lengths written at once, in turns of a few tokens.

transformers' `generate` writes a turn; between two of them rows that have ended leave and others take
their places, so that a batch stays full whatever its longest row is (iteration-level scheduling, Yu et al.
2022, Orca). A prompt is read once, however many completions it gets.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from transformers import GenerationConfig

from services.core.errors import ConfigurationError
from services.trainer.engine.distributed import causal_lm_of
from services.trainer.generation import attention
from services.trainer.generation.batch import Batch
from services.trainer.generation.graphs import Turns
from services.trainer.generation.request import Completion, Request
from services.trainer.generation.writer import Row, Writer

REFILLED = 1 / 8  # of the places are free: worth reading new prompts for
Place = tuple[int, int]


def complete(  # noqa: PLR0913  listeners and limits, which most leave out
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    request: Request,
    *,
    counts: Sequence[int] | None = None,
    on_done: Callable[[int, int], None] | None = None,
    on_row: Callable[[Place, Completion], None] | None = None,
    on_text: Callable[[Place, str], None] | None = None,
    memory_bytes: int | None = None,
    turn_tokens: int | None = None,
    turns: Turns | None = None,
) -> list[list[Completion]]:
    """`request.n` completions of every prompt of token ids, in order, or as many as `counts` says of each.

    model: a causal LM, bare or with adapters, on one device; its mode, attention and defaults are put back
    afterwards, and no global generator is used. What a row gets does not depend on its neighbours but for
    rounding, which differs between batches of different shapes: greedy ones are decided by the prompt,
    drawn ones by prompt, seed and the number of the sample.

    Listeners hear after every turn, and what they raise goes through. on_done: how many completions there
    are, of how many. on_row: each new completion, by the numbers of its prompt and sample. on_text: the
    text so far of each row that goes on, by the same; turn_tokens: how many are written between two.

    memory_bytes: for keys, values and logits; by default most of what is free on a GPU, on the CPU 16 rows
    whatever they need. turns: of the bare model and its present adapters' places, which keep their graphs
    from call to call. Raises ConfigurationError for a prompt that leaves no room in the context,
    ValueError for one without a token.
    """
    causal_lm = causal_lm_of(model)
    _check(causal_lm.config.get_text_config(), prompts, request)
    samples = [request.n] * len(prompts) if counts is None else list(counts)
    total = sum(samples)
    found: dict[Place, Completion] = {}
    with _ready(model, causal_lm):
        writer = Writer(causal_lm, tokenizer, request, memory_bytes, turn_tokens, turns)
        work = _Work(writer, prompts, samples)
        while len(found) < total:
            ended = work.turn()
            found.update(ended)
            if on_row is not None:
                for place, completion in ended.items():
                    on_row(place, completion)
            if on_done is not None:
                on_done(len(found), total)
            if on_text is not None:
                for row in work.rows:
                    on_text(row.place, work.writer.text(row.prompt, row.written))
    return [[found[at, sample] for sample in range(count)] for at, count in enumerate(samples)]


class _Work:
    """The rows that wait, longest prompts first, and those that are being written."""

    def __init__(self, writer: Writer, prompts: Sequence[Sequence[int]], samples: Sequence[int]) -> None:
        seconds = writer.request.seconds
        longest_first = sorted(range(len(prompts)), key=lambda at: -len(prompts[at]))
        self.writer = writer
        self.until = math.inf if seconds is None else time.monotonic() + seconds
        self.waiting = [
            Row((at, sample), prompts[at]) for at in longest_first for sample in range(samples[at])
        ]
        self.rows: list[Row] = []
        self.batch: Batch | None = None
        self.most: float = math.inf  # rows, once there was no room for more

    def turn(self) -> dict[Place, Completion]:
        """What has ended in a turn of all the rows there is room for."""
        new = self._next()
        try:
            if new:
                self.batch = self.writer.admit(self.batch, new)
                self.rows += new
                new = []
            assert self.batch is not None
            self.writer.write(self.batch, self.rows)
        except torch.OutOfMemoryError:
            if len(self.rows) + len(new) < 2:
                raise
            self._start_over(self.rows + new)
            return {}
        late = time.monotonic() > self.until
        completions = [self.writer.completion(row, at_once=late) for row in self.rows]
        ended = {
            row.place: each for row, each in zip(self.rows, completions, strict=True) if each is not None
        }
        if late:
            ended |= {row.place: Completion("", (), finished=False) for row in self.waiting}
            self.waiting = []
        self._keep([at for at, each in enumerate(completions) if each is None])
        return ended

    def _next(self) -> list[Row]:
        """The rows to be taken in now."""
        if not self.waiting or (self.batch is not None and not self.batch.is_plain):
            return []
        places = min(self.most, self.writer.capacity([*self.rows, self.waiting[0]]))
        free = int(places) - len(self.rows)
        if self.rows and free < REFILLED * places:
            return []
        taken, self.waiting = self.waiting[:free], self.waiting[free:]
        return taken

    def _keep(self, rows: Sequence[int]) -> None:
        if len(rows) < len(self.rows):
            self.rows = [self.rows[at] for at in rows]
            if self.batch is not None and self.rows:
                self.batch.keep(rows)
            else:
                self.batch = None

    def _start_over(self, rows: Sequence[Row]) -> None:
        """Memory ran out: these rows once more, half as many at once."""
        self.most = len(rows) // 2
        self.waiting = [Row(row.place, row.prompt) for row in rows] + self.waiting
        self.rows, self.batch = [], None
        torch.cuda.empty_cache()


def _check(config: Any, prompts: Sequence[Sequence[int]], request: Request) -> None:
    context = getattr(config, "max_position_embeddings", None)
    for number, prompt in enumerate(prompts):
        if not len(prompt):
            raise ValueError(f"prompt {number} is empty: expected one token at least")
        if context is not None and len(prompt) + request.max_new_tokens > context:
            raise ConfigurationError(
                f"prompt {number} has {len(prompt)} tokens and {request.max_new_tokens} are to be written:"
                f" the model's context has {context}. Shorten the prompt or write less"
            )


@contextlib.contextmanager
def _ready(model: Any, causal_lm: Any) -> Iterator[None]:
    """Evaluation, without gradients, by our request alone: a model's own defaults may forbid repetition."""
    was_training, defaults = model.training, causal_lm.generation_config
    model.eval()
    try:
        with torch.no_grad(), attention.padded(causal_lm):
            causal_lm.generation_config = GenerationConfig(eos_token_id=defaults.eos_token_id)
            yield
    finally:
        causal_lm.generation_config = defaults
        model.train(was_training)
