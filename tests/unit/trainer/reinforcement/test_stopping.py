"""Collapse: what counts as one, and what does not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.reinforcement.stopping import Watch, collapse


def watched(rewards, kls=None, episodes=32):
    watch = Watch()
    for number, reward in enumerate(rewards):
        watch = watch.seen(reward, episodes, 0.1 if kls is None else kls[number])
    return watch


def test_a_team_near_its_base_that_earns_goes_on():
    assert collapse(watched([0.2, 0.3, 0.4]), 0.2, 1.0) is None


def test_far_from_the_base_is_a_collapse():
    assert "1.2 nats a token, above max_reference_kl 1" in collapse(watched([0.5]), 1.2, 1.0)


@pytest.mark.parametrize("kl", [math.nan, math.inf])
def test_a_distance_that_is_no_number_is_a_collapse(kl):
    assert collapse(watched([0.5]), kl, 1.0) == f"the KL to the base is {kl}"


def test_nothing_earned_any_more_with_a_rising_distance_is_a_collapse():
    assert "no episode of the last 64" in collapse(watched([0.4, 0.4, 0.0, 0.0]), 0.3, 1.0)


def test_nothing_earned_at_the_same_distance_is_none():
    assert collapse(watched([0.4, 0.4, 0.0, 0.0]), 0.1, 1.0) is None


def test_nothing_earned_for_a_while_where_little_is_earned_is_bad_luck():
    assert collapse(watched([0.01, 0.01, 0.0, 0.0]), 0.3, 1.0) is None


def test_nothing_earned_ever_is_no_collapse():
    assert collapse(watched([0.0] * 100), 0.9, 1.0) is None


@given(st.lists(st.floats(0, 1), max_size=20))
def test_episodes_are_counted_once(rewards):
    watch = watched(rewards)
    assert watch.episodes + watch.barren == 32 * len(rewards)
    assert watch.rewarded == pytest.approx(32 * sum(rewards))
