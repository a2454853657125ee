"""One way of running an adapter beside another."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.parity import measuring
from services.trainer.parity.measuring import Run

IDS = st.lists(st.lists(st.integers(0, 9), max_size=8).map(tuple), min_size=1, max_size=6).map(tuple)


@given(IDS, st.lists(st.floats(-9, 0), max_size=9).map(tuple))
def test_a_way_beside_itself_is_the_same(
    written: tuple[tuple[int, ...], ...], nats: tuple[float, ...]
) -> None:
    """In every answer and in every token."""
    run = Run(written, nats)
    leg = measuring.compare("full", run, run, 100)
    assert (leg.exact_match, leg.first_difference) == (1, None)
    assert leg.max_log_prob_difference in (None, 0.0)
    assert leg.bits_per_byte_difference == 0


@given(IDS, IDS)
def test_the_first_difference_is_behind_a_common_beginning(
    ours: tuple[tuple[int, ...], ...], theirs: tuple[tuple[int, ...], ...]
) -> None:
    """And there only where not all answers are the same."""
    number = min(len(ours), len(theirs))
    a, b = ours[:number], theirs[:number]
    leg = measuring.compare_written("trained", a, b)
    assert (leg.first_difference is None) == (leg.same == leg.prompts)
    if leg.first_difference is not None:
        at = leg.first_difference
        assert any(x[:at] == y[:at] and x != y for x, y in zip(a, b, strict=True))


def test_a_worse_way_costs_more_bits() -> None:
    """Positive: the other way's less the judged way's."""
    judged, other = Run(((1,),), (-1.0, -1.0)), Run(((2,),), (-1.5, -2.0))
    leg = measuring.compare("merged", judged, other, 3)
    assert leg.max_log_prob_difference == pytest.approx(1.0)
    assert leg.bits_per_byte_difference == pytest.approx(1.5 / math.log(2) / 3)
    assert (leg.same, leg.first_difference) == (0, 0)


class Letters:
    """A tokenizer of one token a letter; 0 is special."""

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        return "".join(chr(96 + token) for token in ids if token)


def test_a_servers_text_is_held_against_the_tokens() -> None:
    """Special tokens aside; of a difference, the tokens before it."""
    leg = measuring.compare_texts("served", Letters(), [(1, 2, 3, 0), (1, 2, 3)], ["abc", "abx"])
    assert (leg.same, leg.prompts, leg.first_difference) == (1, 2, 2)
