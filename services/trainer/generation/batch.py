"""Rows that are being written: tokens and masks side by side, padded on the left, and what was computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

PREFILL_TOKENS = 16_384  # that go through the model at once before anything is written


@dataclass
class Batch:
    """R rows of L tokens; keys and values of all but the last of them."""

    ids: Any  # (R, L) int64
    mask: Any  # (R, L) int64: 1 for tokens, 0 for what fills up a row on its left
    cache: Any  # transformers' Cache of L - 1 tokens

    @property
    def width(self) -> int:
        return int(self.ids.shape[1])

    @property
    def is_plain(self) -> bool:
        """Whether the cache is keys and values of every token alone, so that it can be cut and joined."""
        return all(type(layer) is DynamicLayer for layer in self.cache.layers)

    def keep(self, rows: Sequence[int]) -> None:
        """These rows alone; columns that no row uses any more go."""
        chosen = torch.tensor(rows, device=self.ids.device)
        self.ids, self.mask = self.ids[chosen], self.mask[chosen]
        self.cache.batch_select_indices(chosen)
        unused = int(self.mask.argmax(dim=1).min())
        if unused and self.is_plain:
            self._shift(-unused)

    def widen(self, width: int) -> None:
        """To so many columns, filled up on the left."""
        if width > self.width:
            self._shift(width - self.width)

    def _shift(self, columns: int) -> None:
        """Columns put on the left, or with a number below 0 taken away there."""
        self.ids, self.mask = pad(self.ids, (columns, 0)), pad(self.mask, (columns, 0))
        for layer in self.cache.layers:
            layer.keys = pad(layer.keys, (0, 0, columns, 0))  # (R, K, L - 1, D)
            layer.values = pad(layer.values, (0, 0, columns, 0))


def prefill(model: Any, prompts: Sequence[Sequence[int]], repeats: Sequence[int]) -> list[Batch]:
    """The causal LM has read the prompts, each once; the rows are each prompt `repeats` times over."""
    made, start = [], 0
    while start < len(prompts):
        width = max(2, *(len(prompt) for prompt in prompts[start:]))
        end = start + max(1, PREFILL_TOKENS // width)
        made.append(_read(model, prompts[start:end], repeats[start:end]))
        start = end
    return made


def joined(batches: Sequence[Batch]) -> Batch:
    """The rows of all of them in order; more than one only of plain caches."""
    first, *others = batches
    if not others:
        return first
    width = max(each.width for each in batches)
    for each in batches:
        each.widen(width)
    first.ids = torch.cat([each.ids for each in batches])
    first.mask = torch.cat([each.mask for each in batches])
    for number, layer in enumerate(first.cache.layers):
        layer.keys = torch.cat([each.cache.layers[number].keys for each in batches])
        layer.values = torch.cat([each.cache.layers[number].values for each in batches])
    return first


def _read(model: Any, prompts: Sequence[Sequence[int]], repeats: Sequence[int]) -> Batch:
    width = max(2, *(len(prompt) for prompt in prompts))
    ids = torch.tensor([[0] * (width - len(each)) + list(each) for each in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(each)) + [1] * len(each) for each in prompts])
    mask = mask.to(model.device)
    cache = DynamicCache(config=model.config)
    before = mask[:, :-1]
    model.base_model(
        input_ids=ids[:, :-1],
        attention_mask=before,
        position_ids=(before.cumsum(-1) - 1).clamp(min=0),
        past_key_values=cache,
        use_cache=True,
    )
    rows = torch.arange(len(prompts)).repeat_interleave(torch.tensor(repeats)).to(model.device)
    cache.batch_select_indices(rows)
    return Batch(ids[rows], mask[rows], cache)
