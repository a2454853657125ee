"""Draws by a row's own numbers."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.generation.sampling import PIECE, Chooser, Only, draw_from

V = 12


def choose(scores: torch.Tensor, numbers: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    return Chooser(numbers[:, None].tolist(), temperature, top_p)(scores)


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
    chooser = Chooser([[0.1, 0.9], [0.6, 0.3]], 1.0)
    assert [chooser(scores).tolist() for _ in range(2)] == [[0, 2], [3, 1]]


@given(st.integers(0, 2**20), st.integers(1, 3 * PIECE), st.floats(0, 1, exclude_max=True, width=32))
def test_a_vocabulary_of_any_size_is_drawn_from_as_by_one_sum(seed: int, width: int, number: float) -> None:
    """In float64, where sums round so little that no way of adding makes another token of it."""
    generator = torch.Generator().manual_seed(seed)
    mass = torch.rand(1, width, generator=generator, dtype=torch.float64) ** 8
    mass[torch.rand(1, width, generator=generator) < 0.5] = 0
    mass[0, seed % width] = 0.1
    wanted = torch.tensor([number], dtype=torch.float64)
    drawn = int(draw_from(mass, wanted))
    heaped = mass[0].cumsum(-1)
    assert mass[0, drawn] > 0
    assert heaped[drawn] >= number * heaped[-1] * (1 - 1e-12)
    assert heaped[drawn] - mass[0, drawn] <= number * heaped[-1] * (1 + 1e-12)


@given(st.integers(0, 2**20), st.sampled_from([0.0, 1 - 2**-24]))
def test_what_cannot_be_is_never_drawn(seed: int, number: float) -> None:
    """At the ends of the numbers, and whatever a sum rounds to."""
    generator = torch.Generator().manual_seed(seed)
    mass = torch.rand(4, 5 * PIECE, generator=generator) ** 8
    mass[torch.rand(mass.shape, generator=generator) < 0.9] = 0
    mass[:, PIECE + 5] = 1e-6
    drawn = draw_from(mass, torch.full((4,), number))
    assert (mass.gather(1, drawn[:, None]) > 0).all()


def test_what_is_written_down_is_the_log_probability_of_the_token() -> None:
    """At the temperature, without top-p; also of the likeliest token."""
    scores = torch.tensor([[0.0, 1.0, 2.0, -1.0]])
    for uniform, temperature in (([[0.4]], 2.0), (None, 0.0)):
        chooser = Chooser(uniform, temperature, 0.5, recording=True)
        token = int(chooser(scores))
        expected = torch.log_softmax(scores / (temperature or 1.0), -1)[0, token]
        torch.testing.assert_close(chooser.logprobs, expected.view(1, 1))


def test_a_processor_leaves_the_token_that_was_chosen() -> None:
    left = Only(Chooser([[0.9]], 1.0))(None, torch.zeros(1, 4))
    assert left.tolist() == [[-torch.inf, -torch.inf, -torch.inf, 0.0]]
