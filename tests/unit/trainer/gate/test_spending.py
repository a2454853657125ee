"""What a track's looks may cost."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.gate import History
from services.trainer.gate.spending import FIRST_SHARE, level, share

ALPHA = 0.05
histories = st.lists(st.booleans(), max_size=60).map(tuple)


def levels(promoted: tuple[bool, ...]) -> list[float]:
    """Of every look of a track, the one to come last."""
    return [level(History(promoted[:looks]), ALPHA) for looks in range(len(promoted) + 1)]


def test_a_sequence_spends_what_it_has() -> None:
    assert math.fsum(share(turn) for turn in range(1, 1000)) == pytest.approx(999 / 1000)


@given(st.integers(0, 500))
def test_looks_in_vain_spend_no_more_than_the_first_wealth(looks: int) -> None:
    """So a track without effect is promoted with probability alpha at most, however the looks depend."""
    assert math.fsum(levels((False,) * looks)) <= FIRST_SHARE * ALPHA


@given(histories)
def test_wealth_never_runs_into_debt(promoted: tuple[bool, ...]) -> None:
    """At every look: spent so far ≤ first wealth + earned by the promotions before it."""
    spent = earned = 0.0
    wealth = FIRST_SHARE * ALPHA
    for look, was_promoted in enumerate((*promoted, False)):
        spent += level(History(promoted[:look]), ALPHA)
        assert spent <= wealth + earned + 1e-12
        if was_promoted:
            earned += ALPHA if earned else (1 - FIRST_SHARE) * ALPHA


@given(histories)
def test_false_promotions_stay_a_small_part(promoted: tuple[bool, ...]) -> None:
    """LORD++'s invariant: the levels sum to alpha times the promotions at most, one at the least."""
    assert math.fsum(levels(promoted)) <= ALPHA * max(1, sum(promoted)) + 1e-12


@given(histories)
def test_every_look_has_a_level(promoted: tuple[bool, ...]) -> None:
    assert all(0 < each < ALPHA for each in levels(promoted))


def test_a_promotion_gives_power_back() -> None:
    in_vain = level(History((False,) * 20), ALPHA)
    assert level(History((False,) * 19 + (True,)), ALPHA) > 100 * in_vain
