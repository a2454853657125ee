"""A team learns by rewards alone: 287 thousand parameters, real updates, programs run in the real sandbox.

See tests/toy_team.py for the task and bench/marl_learning.py for the ways of learning. All draws are seeded;
rewards are of fresh draws, whose standard error is 0.03.
"""

from collections.abc import Iterator
from functools import cache

import pytest
import torch

from bench.marl_learning import ARMS, RESUMED, Learned, Learner, learner

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def team(_one_thread) -> Iterator[Learner]:
    with learner() as made:
        yield made


@pytest.fixture(scope="module")
def learned(team):
    """`learned("appo")`: what became of that arm, trained once."""

    @cache
    def of(name: str) -> Learned:
        return team.learn(ARMS[name])

    return of


@pytest.mark.parametrize("algorithm", ["appo", "tppo", "grpo"])
def test_a_team_learns_what_it_is_rewarded_for(learned, algorithm):
    found = learned(algorithm)
    assert 0.15 < found.before < 0.32
    assert found.after > 0.45


def test_without_the_analyzer_learning_less_is_reached(learned):
    """A plan that is right 36 times of 100 lets no coder be right more often."""
    assert learned("analyzer_frozen").after < min(0.4, learned("appo").after - 0.1)


def test_a_frozen_analyzer_stays_as_it_was(learned):
    assert "kl_reference/analyzer" not in learned("analyzer_frozen").iterations[-1].update


def test_too_high_a_learning_rate_is_caught_by_the_distance_to_the_base(learned):
    training = learned("too_fast").training
    assert training.collapsed
    assert "above max_reference_kl" in str(training.stopped_why)


def test_after_a_collapse_the_team_is_as_good_as_it_was(learned):
    found = learned("too_fast")
    assert found.after > found.before - 0.1


def test_a_resumed_training_ends_with_the_very_weights(team):
    assert team.resume_weight_diff(RESUMED, RESUMED.iterations // 2) == 0.0
