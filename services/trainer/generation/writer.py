"""A causal LM that writes: what is put into its batch, a turn of writing, what has become of a row."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList

from services.trainer.generation import graphs, memory
from services.trainer.generation.batch import Batch, joined, prefill
from services.trainer.generation.graphs import Turns
from services.trainer.generation.request import Completion, Request
from services.trainer.generation.sampling import Chooser, Only
from services.trainer.samples.chance import draw
from services.trainer.samples.encoder import END_OF_DOCUMENT

TURN_TOKENS, TURN_TOKENS_ON_CPU = 16, 8  # a row that ends within a turn waits for the turn's end
TAIL_TOKENS = 4  # of a prompt, decoded with what follows: some tokenizers drop a text's first space


@dataclass
class Row:
    """One completion on its way."""

    place: tuple[int, int]  # number of the prompt, number of the sample
    prompt: Sequence[int]
    written: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)  # of what is written, where they are asked for


class Writer:
    """A model, and what a request asks of it."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        request: Request,
        memory_bytes: int | None,
        turn_tokens: int | None = None,
        turns: Turns | None = None,
    ) -> None:
        """model: the bare causal LM; memory_bytes None: what is free, see `memory.free_bytes`.

        turns: of this model, kept by whoever writes with it again and again.
        """
        self.model, self.tokenizer, self.request = model, tokenizer, request
        usual = TURN_TOKENS_ON_CPU if model.device.type == "cpu" else TURN_TOKENS
        self._turn = usual if turn_tokens is None else turn_tokens
        self._memory = memory.free_bytes(model) if memory_bytes is None else memory_bytes
        wants_graphs = request.graphs and model.device.type in graphs.DEVICES
        self._turns = (turns or Turns(model)) if wants_graphs else None
        if self._turns is not None and self._memory is not None:
            self._memory //= 2  # it has keys and values of its own
        self._ends = ends(model, tokenizer)
        self._pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def capacity(self, rows: Sequence[Row]) -> int:
        """How many rows fit that all become as long as the longest of these may."""
        tokens = max(len(row.prompt) for row in rows) + self.request.max_new_tokens + self._turn
        item_bytes = self.model.get_input_embeddings().weight.element_size()
        return memory.rows(self.model.config, item_bytes, tokens, self._memory)

    def admit(self, batch: Batch | None, rows: Sequence[Row]) -> Batch:
        """The batch with these rows behind its own. A prompt is read once for all its rows."""
        groups = [list(group) for _, group in groupby(rows, key=lambda row: row.place[0])]
        read = prefill(self.model, [group[0].prompt for group in groups], [len(group) for group in groups])
        return joined(read if batch is None else [batch, *read])

    def write(self, batch: Batch, rows: Sequence[Row]) -> None:
        """A turn: some tokens more in every row, and in the batch."""
        request = self.request
        most = request.max_new_tokens - min(len(row.written) for row in rows)
        tokens = min(self._turn, most)
        uniform = [self._uniform(row, tokens) for row in rows] if request.temperature > 0 else None
        choose = Chooser(uniform, request.temperature, request.top_p, recording=request.logprobs)
        new = self._turns.write(batch, tokens, choose, most) if self._turns is not None else None
        if new is None:
            new = self._generated(batch, tokens, choose)
        batch.ids = torch.cat([batch.ids, new], dim=1)
        batch.mask = torch.cat([batch.mask, torch.ones_like(new)], dim=1)
        for row, ids in zip(rows, new.tolist(), strict=True):
            row.written += ids
        if request.logprobs:
            for row, logprobs in zip(rows, choose.logprobs.tolist(), strict=True):
                row.logprobs += logprobs

    def _generated(self, batch: Batch, tokens: int, choose: Chooser) -> Any:
        """By transformers: the new tokens (R, at most `tokens`); the batch's cache has grown by them."""
        written = self.model.generate(
            input_ids=batch.ids,
            attention_mask=batch.mask,
            past_key_values=batch.cache,
            generation_config=GenerationConfig(
                max_new_tokens=tokens,
                do_sample=False,
                eos_token_id=sorted(self._ends),
                pad_token_id=self._pad,
            ),
            logits_processor=LogitsProcessorList([Only(choose)]),
        )
        return written[:, batch.width :]

    def completion(self, row: Row, *, at_once: bool) -> Completion | None:
        """What the row has become; None while it goes on. at_once: as far as it is."""
        ids = row.written[: self.request.max_new_tokens]
        end = next((at for at, token in enumerate(ids) if token in self._ends), None)
        is_full = len(ids) == self.request.max_new_tokens
        goes_on = end is None and not is_full and not at_once
        if goes_on and not self.request.looks_at_text:
            return None
        ended_by = None if end is None else ids[end]
        ids = ids[:end]
        text = self.text(row.prompt, ids)
        cut = self.request.ending(text)
        if goes_on and cut is None:
            return None
        finished = cut is not None or end is not None
        if not self.request.logprobs:
            return Completion(text[:cut], tuple(ids), finished, ended_by)
        if cut is not None:
            ids, ended_by = self._as_far_as_it_ends(row.prompt, ids), None
        logprobs = row.logprobs[: len(ids) + (ended_by is not None)]
        return Completion(text[:cut], tuple(ids), finished, ended_by, tuple(logprobs))

    def _as_far_as_it_ends(self, prompt: Sequence[int], ids: list[int]) -> list[int]:
        """Without the tokens behind the one that ends the text: a turn is written before it is looked at."""
        while ids and self.request.ending(self.text(prompt, ids[:-1])) is not None:
            ids = ids[:-1]
        return ids

    def _uniform(self, row: Row, tokens: int) -> list[float]:
        """The row's own numbers for its next tokens, the same in whatever turns it is written."""
        numbers = draw(self.request.seed, array("q", row.prompt).tobytes(), row.place[1])
        return [numbers.random() for _ in range(len(row.written) + tokens)][len(row.written) :]

    def text(self, prompt: Sequence[int], ids: Sequence[int]) -> str:
        """What is written after a prompt, as it stands behind it."""
        tail = list(prompt[-TAIL_TOKENS:])
        before, whole = self._decoded(tail), self._decoded([*tail, *ids])
        return whole[len(before) :] if whole.startswith(before) else self._decoded(ids)

    def _decoded(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a text: a turn's, a document's, and those that the model names."""
    config = getattr(model, "generation_config", None)
    named = getattr(config, "eos_token_id", None)
    found = {tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])}
    for number, token in tokenizer.added_tokens_decoder.items():
        if str(token) in END_OF_DOCUMENT:
            found.add(number)
    return frozenset(found - {None})
