"""Draws by a row's own numbers."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.generation.sampling import Draws, choose

V = 12


@given(st.integers(0, 2**20), st.floats(0, 1, exclude_max=True, width=32), st.floats(0.1, 1))
def test_what_is_drawn_lies_in_the_nucleus(seed: int, number: float, top_p: float) -> None:
    scores = torch.randn(1, V, generator=torch.Generator().manual_seed(seed)) * 3
    scores[0, seed % V] = -torch.inf
    drawn = int(choose(scores, torch.tensor([number]), 0.7, top_p))
    mass = torch.softmax(scores[0] / 0.7, -1)
    above = float(mass[mass > mass[drawn]].sum())
    assert mass[drawn] > 0
    assert above < top_p + 1e-5


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0]])
    numbers = (torch.arange(10_000) + 0.5) / 10_000
    drawn = choose(scores.expand(10_000, 3), numbers, 2.0, 1.0)
    found = drawn.bincount(minlength=3) / 10_000
    torch.testing.assert_close(found, torch.softmax(scores[0] / 2.0, -1), atol=1e-3, rtol=0)


def test_a_row_draws_by_its_next_number_at_each_step() -> None:
    scores = torch.zeros(2, 4)
    draws = Draws([[0.1, 0.9], [0.6, 0.3]], 1.0, 1.0)
    assert [draws(None, scores).argmax(1).tolist() for _ in range(2)] == [[0, 2], [3, 1]]
