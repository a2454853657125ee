"""Draws of tokens that belong to a row, not to the batch it happens to be in."""

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Draws:
    """A logits processor that leaves one token a row: the one drawn with that row's own numbers.

    transformers draws with one generator for a whole batch, so that what a row gets depends on its
    neighbours. Here each row brings its numbers, one a token, which pick from the row's distribution by
    the inverse of its cumulative sum.
    """

    def __init__(self, uniform: Sequence[Sequence[float]], temperature: float, top_p: float) -> None:
        """uniform: (R, tokens) numbers in [0, 1)."""
        self._uniform = torch.tensor(uniform, dtype=torch.float32)
        self._temperature, self._top_p = temperature, top_p
        self._step = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ARG002  transformers' signature
        """Scores (R, V): minus infinity but for the token drawn."""
        self._uniform = self._uniform.to(scores.device)
        drawn = choose(scores, self._uniform[:, self._step], self._temperature, self._top_p)
        self._step += 1
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn[:, None], 0.0)


class Recorded:
    """A logits processor that keeps the log-probability of the token that is left, step after step."""

    def __init__(self, chosen: Callable[[Any, Any], Any], temperature: float) -> None:
        """chosen: the processors whose likeliest token is taken; temperature: of the distribution."""
        self._chosen, self._temperature = chosen, temperature
        self._logprobs: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """As the others leave the scores (R, V)."""
        left = self._chosen(input_ids, scores)
        taken = left.argmax(dim=-1, keepdim=True)  # as `generate` and the graphs take it
        scores = scores.float() if self._temperature == 1 else scores.float() / self._temperature
        self._logprobs.append(scores.gather(1, taken).squeeze(1) - scores.logsumexp(dim=-1))
        return left

    @property
    def logprobs(self) -> Any:
        """(R, tokens) float32, on the model's device."""
        return torch.stack(self._logprobs, dim=1)


def choose(scores: Any, uniform: Any, temperature: float, top_p: float) -> Any:
    """Tokens (R,) int64 from scores (R, V) by numbers (R,) in [0, 1)."""
    mass = torch.softmax(scores.float() / temperature, dim=-1)
    order = None
    if top_p < 1:
        mass, order = mass.sort(dim=-1, descending=True, stable=True)
        mass = mass.where(mass.cumsum(-1) - mass < top_p, 0.0)
    heaped = mass.cumsum(-1)
    total = heaped[:, -1]
    wanted = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    place = torch.searchsorted(heaped, wanted[:, None], right=True)  # the first that is above it
    return (place if order is None else order.gather(1, place)).squeeze(1)
