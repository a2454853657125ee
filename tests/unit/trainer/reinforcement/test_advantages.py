"""Credit: over agents and turns, over tokens, within groups. Worked by hand, and for all numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.reinforcement.advantages import (
    explained_variance,
    gae,
    group_advantages,
    normalised,
    returns_to_go,
    token_advantages,
)
from tests.unit.trainer.reinforcement import naive

number = st.floats(-3, 3, width=32)
chains = st.lists(st.tuples(number, number), min_size=1, max_size=6)


def test_gae_over_two_agents_by_hand() -> None:
    """δ₁ = 1 − 0.6 = 0.4; δ₀ = 0.9·0.6 − 0.5 = 0.04; A₀ = 0.04 + 0.9·0.5·0.4 = 0.22."""
    found = gae(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.6]]), gamma=0.9, lam=0.5)
    torch.testing.assert_close(found, torch.tensor([[0.22, 0.4]]))


def test_gae_over_two_turns_by_hand() -> None:
    """The second turn's reward reaches the first turn's analyzer: γ = λ = 1, so the sum less the value."""
    rewards, values = torch.tensor([[0.0, 0.25, 0.0, 0.75]]), torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    found = gae(rewards, values, gamma=1.0, lam=1.0)
    torch.testing.assert_close(found, torch.tensor([[0.9, 0.8, 0.45, 0.35]]))


def test_the_analyzer_has_its_credit_in_every_episode_of_one_step() -> None:
    """The authors' advantages were [[1, 1], [0, 1], [0, 1]]: nothing for the analyzer after the first."""
    rewards = torch.tensor([[0.0, 1.0]] * 3)
    found = gae(rewards, torch.zeros(3, 2), gamma=1.0, lam=1.0)
    assert found.tolist() == [[1, 1], [1, 1], [1, 1]]


@given(chains, st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_gae_is_the_discounted_sum_of_surprises(
    chain: list[tuple[float, float]], gamma: float, lam: float
) -> None:
    """As defined."""
    rewards, values = zip(*chain, strict=True)
    found = gae(torch.tensor([rewards]), torch.tensor([values]), gamma, lam)
    expected = naive.gae(rewards, values, gamma, lam)
    torch.testing.assert_close(found, torch.tensor([expected]), atol=1e-4, rtol=1e-4)


@given(chains, st.integers(1, 4))
def test_what_fills_up_a_row_changes_nothing_before_it(chain: list[tuple[float, float]], more: int) -> None:
    """Episodes of different lengths stand in one table."""
    rewards, values = (torch.tensor([each]) for each in zip(*chain, strict=True))
    zeros = torch.zeros(1, more)
    filled = gae(torch.cat([rewards, zeros], 1), torch.cat([values, zeros], 1), 0.9, 0.8)
    torch.testing.assert_close(filled[:, : len(chain)], gae(rewards, values, 0.9, 0.8))


def test_returns_to_go_by_hand() -> None:
    """1 + 0.5·(0 + 0.5·4)."""
    found = returns_to_go(torch.tensor([[1.0, 0.0, 4.0]]), gamma=0.5)
    assert found.tolist() == [[2.0, 2.0, 4.0]]


@given(st.lists(number, min_size=2, max_size=6), number, number)
def test_tokens_have_what_gae_over_tokens_would_give_them(
    values: list[float], reward: float, after: float
) -> None:
    """One action of n tokens, γ = λ = 1 within it; what follows it is worth `after`."""
    by_definition = naive.gae([0.0] * (len(values) - 1) + [reward + after], values, 1.0, 1.0)
    returns = torch.tensor([reward + after])
    found = token_advantages(returns, torch.tensor(values), torch.zeros(len(values), dtype=torch.int64))
    torch.testing.assert_close(found, torch.tensor(by_definition), atol=1e-4, rtol=1e-4)


def test_groups_by_hand() -> None:
    """Less the mean, not divided; a group without variance and a group of one are skipped."""
    returns = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.5])
    found = group_advantages(returns, torch.tensor([0, 0, 0, 1, 1, 2]))
    torch.testing.assert_close(found.advantages[:3], torch.tensor([2 / 3, -1 / 3, -1 / 3]))
    assert found.kept.tolist() == [True, True, True, False, False, False]
    assert found.skipped == 2


@given(st.lists(st.tuples(number, st.integers(0, 3)), min_size=1, max_size=20))
def test_advantages_of_a_group_add_up_to_nothing(members: list[tuple[float, int]]) -> None:
    """Whatever the returns are."""
    returns = torch.tensor([value for value, _ in members])
    kinds = sorted({group for _, group in members})
    groups = torch.tensor([kinds.index(group) for _, group in members])
    found = group_advantages(returns, groups)
    for group in range(len(kinds)):
        assert float(found.advantages[groups == group].sum()) == pytest.approx(0, abs=1e-4)


def test_no_action_has_no_group() -> None:
    """A rollout where nothing may be learned."""
    found = group_advantages(torch.zeros(0), torch.zeros(0, dtype=torch.int64))
    assert (len(found.kept), found.skipped) == (0, 0)


@given(st.lists(number, min_size=2, max_size=20))
def test_normalised_advantages_have_mean_0_and_deviation_1_at_most(values: list[float]) -> None:
    """Over those that are learned from; 1 unless they hardly differ."""
    mask = torch.tensor([True] * len(values) + [False])
    given_ = torch.tensor([*values, 100.0])
    found = normalised(given_, mask)[mask]
    assert float(found.mean()) == pytest.approx(0, abs=1e-4)
    expected = min(1.0, float(given_[mask].std(correction=0)) / 0.1)
    assert float(found.std(correction=0)) == pytest.approx(expected, abs=1e-4)


def test_noise_of_a_rollout_where_all_failed_is_not_blown_up() -> None:
    """Advantages of a hundredth stay small."""
    found = normalised(torch.tensor([0.01, -0.01]), torch.tensor([True, True]))
    assert found.tolist() == pytest.approx([0.1, -0.1])


def test_explained_variance_by_hand() -> None:
    """All of it, none of it, and where there is none."""
    returns = torch.tensor([0.0, 1.0])
    assert explained_variance(returns, returns) == pytest.approx(1)
    assert explained_variance(torch.zeros(2), returns) == pytest.approx(0)
    assert explained_variance(returns, torch.ones(2)) is None
    assert math.isclose(explained_variance(torch.tensor([1.0, 0.0]), returns) or 0, -3, rel_tol=1e-6)
