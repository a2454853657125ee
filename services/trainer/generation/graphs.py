"""Turns over keys and values that stay where they are, so that on a GPU a token's step is one CUDA graph.

A step of transformers' `generate` is hundreds of small kernels which Python starts one after the other; on a
fast GPU that takes longer than they do, however many rows there are. A captured step is started at once.
What a turn finds is the same but for rounding: the sums of attention run over columns that are masked too.
"""

import logging
import math
from collections.abc import Callable
from typing import Any

import torch
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from services.trainer.generation.batch import Batch

DEVICES: tuple[str, ...] = ("cuda",)  # where there are graphs
ROWS, COLUMNS = 16, 256  # that buffers are rounded up to, so that a graph serves many turns
SPARE = 4  # times as many rows as there are: beyond that smaller buffers are made
WARM_STEPS = 3  # before a capture: lazy initialisations, Triton's kernels, cuBLAS' workspaces
ROUNDING = 0.02  # of the largest logit: more between a step and its graph is no rounding
log = logging.getLogger(__name__)
Choose = Callable[[Any], Any]  # logits (R, V) → tokens (R,)


class Turns:
    """Writes turns of one model; buffers, and the graphs over them, are kept for the next ones.

    Whoever writes with the same model again and again keeps this, and nothing is captured any more; weights
    may change meanwhile as long as they stay where they are.
    """

    def __init__(self, model: Any) -> None:
        """model: the bare causal LM, in evaluation and without gradients for as long as this is used."""
        self._model = model
        self._kept: list[Steps] = []
        self._works = True

    def write(self, batch: Batch, tokens: int, choose: Choose, most: int | None = None) -> Any | None:
        """So many tokens more for every row, (R, tokens); the batch's cache has grown by as many.

        most: how many may come in all, for which room is made at once. None, and nothing has changed, where
        it cannot be done: for a cache that is more than keys and values, and where the model's step cannot
        be captured, which is said once.
        """
        if not (self._works and batch.is_plain):
            return None
        try:
            steps = self._ready(batch, tokens, tokens if most is None else most)
        except torch.OutOfMemoryError:
            self.forget()
            raise
        except (RuntimeError, ValueError, TypeError) as exc:  # the many ways in which a capture fails
            self.forget()
            self._works = False
            log.warning("no CUDA graph of this model (%s: %s): writing without", type(exc).__name__, exc)
            return None
        return steps.write(batch, tokens, choose)

    def forget(self) -> bool:
        """Give the memory back; whether there was any."""
        kept, self._kept = self._kept, []
        return bool(kept)

    def _ready(self, batch: Batch, tokens: int, most: int) -> "Steps":
        """The fewest rows of steps that the batch fits, and has room to grow in."""
        rows, columns = len(batch.ids), batch.width + tokens
        for steps in self._kept:
            if rows <= steps.rows <= SPARE * max(rows, ROWS) and columns <= steps.columns:
                return steps
        rows, columns = _up(rows, ROWS), _up(batch.width + most, COLUMNS)
        self._kept = [steps for steps in self._kept if steps.rows > rows or steps.columns > columns]
        try:
            steps = self._made(batch, rows, columns)
        except torch.OutOfMemoryError:
            if not self._kept:
                raise
            self.forget()
            torch.cuda.empty_cache()
            steps = self._made(batch, rows, columns)
        self._kept = sorted([*self._kept, steps], key=lambda each: each.rows * each.columns)
        return steps

    def _made(self, batch: Batch, rows: int, columns: int) -> "Steps":
        steps = Steps(self._model, batch, rows, columns)
        if batch.ids.is_cuda:
            steps.capture(batch)
        return steps


class Steps:
    """One token after another, for as many rows and columns as there is room for.

    All that a step reads and writes lies in the same place each time. Rows that nobody uses attend to their
    first column, for the softmax of nothing is no number.
    """

    def __init__(self, model: Any, batch: Batch, rows: int, columns: int) -> None:
        device = batch.ids.device
        self.rows, self.columns = rows, columns
        self._model = model
        self._ids = torch.zeros(rows, 1, dtype=torch.int64, device=device)
        self._positions = torch.zeros(rows, 1, dtype=torch.int64, device=device)
        self._column = torch.zeros(1, dtype=torch.int64, device=device)  # the token's
        self._mask = torch.zeros(rows, 1, 1, columns, dtype=torch.bool, device=device)
        self._layers = [_Layer(layer, rows, columns, self._column) for layer in batch.cache.layers]
        self._cache = Cache(layers=self._layers)
        self._logits: Any = None  # (rows, V), what the model computes them in
        self._graph: Any = None

    def capture(self, batch: Batch) -> None:
        """Make a graph of a step. Raises RuntimeError where that fails or the graph says something else."""
        self._begin(batch)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_STEPS):
                self._begin(batch)
                self._logits = self._step()
        torch.cuda.current_stream().wait_stream(side)
        expected = self._logits[: len(batch.ids)].float()
        self._begin(batch)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._logits = self._step()
        self._begin(batch)
        graph.replay()
        found = self._logits[: len(batch.ids)].float()
        apart = float((found - expected).abs().max() / expected.abs().max())
        if not apart <= ROUNDING:
            raise RuntimeError(f"its logits are {apart:.1%} away from those of a step without")
        self._graph = graph

    def write(self, batch: Batch, tokens: int, choose: Choose) -> Any:
        """The tokens (R, tokens); no sum, no comparison, nothing waits for the device in between."""
        rows, before = batch.ids.shape[0], batch.width - 1
        self._begin(batch)
        new = []
        for _ in range(tokens):
            if self._graph is None:
                self._logits = self._step()
            else:
                self._graph.replay()
            new.append(choose(self._logits[:rows]))
            self._ids[:rows, 0] = new[-1]
        for layer, fixed in zip(batch.cache.layers, self._layers, strict=True):
            added = slice(before, before + tokens)
            layer.keys = torch.cat([layer.keys, fixed.keys[:rows, :, added]], dim=2)
            layer.values = torch.cat([layer.values, fixed.values[:rows, :, added]], dim=2)
        return torch.stack(new, dim=1)

    def _begin(self, batch: Batch) -> None:
        """Before the first step: the batch's last tokens are to be read, all others are."""
        rows, before = batch.ids.shape[0], batch.width - 1
        self._ids[:rows] = batch.ids[:, -1:]
        self._positions[:rows] = batch.mask.sum(dim=1, keepdim=True) - 1
        self._column.fill_(before)
        self._mask.zero_()
        self._mask[rows:, :, :, 0] = True
        self._mask[:rows, 0, 0, :before] = batch.mask[:, :-1].bool()
        for layer, fixed in zip(batch.cache.layers, self._layers, strict=True):
            fixed.keys[:rows, :, :before] = layer.keys
            fixed.values[:rows, :, :before] = layer.values

    def _step(self) -> Any:
        """The logits (rows, V) of the next tokens; ready for the one after."""
        self._mask.index_fill_(3, self._column, True)
        logits = self._model(
            input_ids=self._ids,
            attention_mask=self._mask,
            position_ids=self._positions,
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]
        self._positions.add_(1)
        self._column.add_(1)
        return logits


class _Layer(DynamicLayer):  # type: ignore[misc]
    """Keys and values (rows, K, columns, D) that stay in their place; a step puts in one column."""

    def __init__(self, like: DynamicLayer, rows: int, columns: int, column: Any) -> None:
        super().__init__()
        self.dtype, self.device = like.keys.dtype, like.keys.device
        self.keys, self.values = (
            torch.zeros(rows, each.shape[1], columns, each.shape[3], dtype=each.dtype, device=each.device)
            for each in (like.keys, like.values)
        )
        self.is_initialized = True
        self._column = column

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """All columns, those of the step's tokens (rows, K, 1, D) among them."""
        self.keys.index_copy_(2, self._column, key_states)
        self.values.index_copy_(2, self._column, value_states)
        return self.keys, self.values


def _up(number: int, to: int) -> int:
    return math.ceil(number / to) * to
