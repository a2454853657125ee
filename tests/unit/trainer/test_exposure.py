"""How much likelier a secret is to a model than others of its format."""

import math
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.exposure import CHANCE_BITS, FEWEST, MOST_BITS, chance, exposure_bits

nats = st.floats(0, 500)


@pytest.mark.parametrize("others", [8, 32])
def test_a_secret_never_seen_exceeds_b_bits_with_probability_2_to_the_minus_b(others: int) -> None:
    """Whatever number it is compared with."""
    draw = random.Random(others)
    found = [
        bits
        for _ in range(4000)
        if (bits := exposure_bits(draw.gauss(90, 7), [draw.gauss(90, 7) for _ in range(others)])) is not None
    ]
    assert fmean(found) == pytest.approx(CHANCE_BITS, rel=0.07)
    for bits in (1, 3, 5):
        assert fmean(each > bits for each in found) == pytest.approx(2**-bits, rel=0.3)


@given(nats, nats, st.lists(nats, min_size=FEWEST, max_size=40))
def test_what_costs_less_is_no_less_exposed(one: float, two: float, others: list[float]) -> None:
    first, second = exposure_bits(min(one, two), others), exposure_bits(max(one, two), others)
    assert first is not None
    assert second is not None
    assert 0 <= second <= first + 1e-9
    assert first <= MOST_BITS


def test_too_few_others_or_no_number_say_nothing() -> None:
    assert exposure_bits(1.0, [2.0] * (FEWEST - 1)) is None
    assert exposure_bits(math.nan, [2.0] * FEWEST) is None


def test_exposures_of_chance_are_together_chance() -> None:
    draw = random.Random(1)
    together = [chance([-math.log2(1 - draw.random()) for _ in range(8)]) for _ in range(4000)]
    for share in (0.01, 0.1, 0.5):
        assert fmean(each <= share for each in together) == pytest.approx(share, rel=0.35)
    assert chance([]) == 1.0
    assert chance([20.0] * 8) < 1e-30
