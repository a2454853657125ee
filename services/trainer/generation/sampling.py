"""Tokens from scores: the likeliest, or one drawn with numbers that belong to a row, not to its batch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import pad

PIECE = 1024  # of a vocabulary, summed up by itself


class Chooser:
    """Chooses a token a row, step after step, and writes its log-probability down where that is asked for.

    transformers draws with one generator for a whole batch, so that what a row gets depends on its
    neighbours. Here each row brings its numbers, one a token, which pick from the row's distribution by
    the inverse of its cumulative sum.
    """

    def __init__(
        self,
        uniform: Sequence[Sequence[float]] | None,
        temperature: float,
        top_p: float = 1.0,
        *,
        recording: bool = False,
    ) -> None:
        """uniform: (R, tokens) numbers in [0, 1); None, or temperature 0: the likeliest token."""
        draws = uniform is not None and temperature > 0
        self._uniform = torch.tensor(uniform, dtype=torch.float32) if draws else None
        self._temperature, self._top_p = temperature or 1.0, top_p
        self._recorded: list[Any] | None = [] if recording else None
        self._step = 0

    def __call__(self, scores: Any) -> Any:
        """Tokens (R,) int64 from scores (R, V)."""
        if self._uniform is None and self._recorded is None:
            return scores.argmax(dim=-1)
        scores = scores.float() if self._temperature == 1 else scores.float() / self._temperature
        normaliser = scores.logsumexp(-1, keepdim=True)
        if self._uniform is None:
            tokens = scores.argmax(dim=-1)
        else:
            self._uniform = self._uniform.to(scores.device)
            mass = (scores - normaliser).exp_()
            tokens = draw_from(mass, self._uniform[:, self._step], self._top_p)
        self._step += 1
        if self._recorded is not None:
            self._recorded.append((scores.gather(1, tokens[:, None]) - normaliser).squeeze(1))
        return tokens

    @property
    def logprobs(self) -> Any:
        """(R, tokens) float32, at the temperature and without top-p, on the model's device."""
        assert self._recorded is not None
        return torch.stack(self._recorded, dim=1)


class Only:
    """A logits processor of transformers that leaves a chooser's token alone."""

    def __init__(self, choose: Chooser) -> None:
        self._choose = choose

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ARG002  transformers' signature
        """Scores (R, V): minus infinity but for the token chosen."""
        return torch.full_like(scores, -torch.inf).scatter_(1, self._choose(scores)[:, None], 0.0)


def draw_from(mass: Any, uniform: Any, top_p: float = 1.0) -> Any:
    """Tokens (R,) int64 from their probabilities (R, V) by numbers (R,) in [0, 1)."""
    if top_p == 1:
        return _inverse(mass, uniform)
    mass, order = mass.sort(dim=-1, descending=True, stable=True)
    mass = mass.where(mass.cumsum(-1) - mass < top_p, 0.0)
    return order.gather(1, _inverse(mass, uniform)[:, None]).squeeze(1)


def _inverse(mass: Any, uniform: Any) -> Any:
    """Where the cumulative sum of a row (R, V) first is above its number's share of the whole.

    By pieces: a GPU sums a row up from left to right in one block of threads, which for a vocabulary takes
    longer than any other step of a small model. Pieces are summed side by side, and only the one in which
    the token is from left to right.
    """
    rows, width = mass.shape
    pieces = pad(mass, (0, -width % PIECE)).view(rows, -1, PIECE)
    ends = pieces.sum(-1).cumsum(-1)  # (R, V / PIECE)
    total = ends[:, -1]
    wanted = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))[:, None]
    piece = torch.searchsorted(ends, wanted, right=True)  # the first that ends above it
    before = pad(ends, (1, 0)).gather(1, piece)
    inside = pieces.gather(1, piece[:, :, None].expand(rows, 1, PIECE)).squeeze(1).cumsum(-1)
    place = torch.searchsorted(inside, wanted - before, right=True)
    last = (inside < inside[:, -1:]).sum(-1, keepdim=True)  # with a mass; the two ways of summing round apart
    return (piece * PIECE + torch.minimum(place, last)).squeeze(1)
