"""Surrogates, the estimate of a KL, the critic's loss, and log-probabilities in chunks."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.reinforcement import logprobs, losses
from services.trainer.reinforcement.critic import ValueHead, value_loss
from services.trainer.reinforcement.losses import Actions, Clip

CLIP = Clip(0.2, 0.28)
log_ratios = st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=8)


def token_loss(difference: float, advantage: float) -> tuple[float, float]:
    """Loss of one token, and its slope."""
    new = torch.tensor([difference], requires_grad=True)
    found = losses.token_surrogate(new, torch.zeros(1), torch.tensor([advantage]), CLIP)
    found.loss.backward()
    return found.loss.item(), new.grad.item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.27, 1.0, -1.27, -1.27),
        (1.5, 1.0, -1.28, 0.0),  # more likely than high allows: nothing more to gain
        (0.5, 1.0, -0.5, -0.5),  # good and rarer: it is made more likely, however far it is
        (0.5, -1.0, 0.8, 0.0),
        (1.5, -1.0, 1.5, 1.5),
    ],
)
def test_a_ratio_is_clipped_where_there_is_nothing_to_gain(
    ratio: float, advantage: float, loss: float, slope: float
) -> None:
    """PPO's minimum, with the two ends of the range apart (DAPO)."""
    assert token_loss(math.log(ratio), advantage) == pytest.approx((loss, slope), abs=1e-6)


@given(log_ratios)
def test_an_action_of_one_token_is_that_token(values: list[float]) -> None:
    """APPO and TPPO agree there, in both modes."""
    new, count = torch.tensor(values), len(values)
    advantages = torch.linspace(-1, 1, count)
    by_token = losses.token_surrogate(new, torch.zeros(count), advantages, CLIP)
    for by_mean in (True, False):
        actions = Actions(torch.arange(count), torch.ones(count), by_mean=by_mean)
        by_action = losses.action_surrogate(new, torch.zeros(count), advantages, CLIP, actions)
        for one, other in zip(by_token, by_action, strict=True):
            torch.testing.assert_close(one, other)


def test_the_ratio_of_an_action_is_of_the_sum_or_of_the_mean() -> None:
    """Two tokens, each 10 % more likely: 1.21, or 1.1."""
    new = torch.full((2,), math.log(1.1))
    for by_mean, ratio in ((False, 1.21), (True, 1.1)):
        actions = Actions(torch.zeros(2, dtype=torch.int64), torch.tensor([2.0]), by_mean=by_mean)
        found = losses.action_surrogate(new, torch.zeros(2), torch.ones(1), CLIP, actions)
        assert float(found.ratios) == pytest.approx(ratio)


def test_ratios_outside_the_range_are_counted() -> None:
    """On both sides."""
    new = torch.log(torch.tensor([0.7, 1.0, 1.27, 1.3]))
    assert int(losses.token_surrogate(new, torch.zeros(4), torch.ones(4), CLIP).clipped) == 2


@given(st.floats(-8, 8, width=32), st.floats(-8, 8, width=32))
def test_the_kl_of_a_token_is_never_negative(new: float, other: float) -> None:
    """And 0 where both agree."""
    assert float(losses.kl(torch.tensor(new), torch.tensor(other))) >= 0
    assert float(losses.kl(torch.tensor(new), torch.tensor(new))) == 0


def test_the_kl_is_right_on_average() -> None:
    """Over what the policy would write, for two policies over five tokens."""
    generator = torch.Generator().manual_seed(0)
    new, other = (0.5 * torch.randn(2, 5, generator=generator)).log_softmax(-1)
    exact = (new.exp() * (new - other)).sum()
    torch.testing.assert_close((new.exp() * losses.kl(new, other)).sum(), exact, atol=1e-5, rtol=1e-4)


def test_one_token_is_not_the_whole_kl() -> None:
    """Six nats apart: a straight line from three on, of a slope that pulls back but does not explode."""
    new = torch.tensor([-6.0], requires_grad=True)
    found = losses.kl(new, torch.zeros(1)).sum()
    found.backward()
    assert found.item() == pytest.approx(math.exp(3) - 4 + 3 * (math.exp(3) - 1))
    assert float(new.grad) == pytest.approx(1 - math.exp(3))


@pytest.mark.parametrize("error", [-20.0, -11.0, -3.0, 0.0, 3.0, 11.0, 20.0])
def test_huber_is_linear_on_both_sides(error: float) -> None:
    """The authors' is 0 for large negative errors."""
    found = value_loss(torch.tensor([error]), torch.tensor([error]), torch.zeros(1), delta=10.0, clip=None)
    expected = error**2 / 2 if abs(error) <= 10 else 10 * (abs(error) - 5)
    assert float(found) == pytest.approx(expected)


def test_a_value_gains_nothing_beyond_its_clip() -> None:
    """From 0 towards 1, by 0.2 at a time; in the wrong direction it pays in full."""
    values = torch.tensor([0.1, 0.5, -0.5], requires_grad=True)
    loss = value_loss(values, torch.zeros(3), torch.ones(3), delta=10.0, clip=0.2)
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([0.9**2 / 2, 0.8**2 / 2, 1.5**2 / 2])
    assert values.grad.tolist() == pytest.approx([-0.9, 0.0, -1.5])


def test_a_value_head_begins_at_0_and_can_learn() -> None:
    """From features of any scale and type, without a global generator."""
    state = torch.random.get_rng_state()
    head = ValueHead(32, seed=1)
    assert torch.equal(state, torch.random.get_rng_state())
    features = (1000 * torch.randn(3, 32, generator=torch.Generator().manual_seed(2))).bfloat16()
    values = head(features)
    assert values.tolist() == [0, 0, 0]
    assert values.dtype is torch.float32
    values.sum().backward()
    assert float(head.out.grad.abs().max()) > 0
    again = ValueHead(32, seed=1).state_dict()
    assert all(torch.equal(one, again[name]) for name, one in head.state_dict().items())


def states() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    hidden, weight = torch.randn(7, 16, generator=generator), torch.randn(50, 16, generator=generator)
    return hidden, weight, torch.randint(50, (7,), generator=generator)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_chunks_are_the_whole(temperature: float, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log-probabilities, entropies and gradients of both as from whole logits."""
    monkeypatch.setattr(logprobs, "LOGITS_BYTES", rows * 4 * logprobs.COPIES * 50)
    hidden, weight, targets = states()
    first, second = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    found = logprobs.token_logprobs(first, weight, targets, temperature, learn_entropy=True)
    logs = (second @ weight.T / temperature).log_softmax(-1)
    expected = logs.gather(1, targets[:, None]).squeeze(1), -(logs.exp() * logs).sum(-1)
    wanted = torch.linspace(-1, 2, 7)
    for pair, inputs in ((found, first), (expected, second)):
        ((pair[0] * wanted).sum() + 0.3 * (pair[1] * wanted.flip(0)).sum()).backward()
        assert inputs.grad is not None
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(first.grad, second.grad, atol=1e-5, rtol=1e-4)


def test_an_entropy_that_is_only_told_has_no_gradient() -> None:
    """It costs the backward pass nothing."""
    hidden, weight, targets = states()
    found, entropy = logprobs.token_logprobs(hidden.requires_grad_(), weight, targets)
    assert found.requires_grad
    assert not entropy.requires_grad


def test_logits_of_a_whole_batch_are_never_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither forward nor backward makes a tensor of N × V numbers."""
    rows = 4
    monkeypatch.setattr(logprobs, "LOGITS_BYTES", rows * 4 * logprobs.COPIES * 500)
    hidden, weight = torch.randn(64, 8, requires_grad=True), torch.randn(500, 8)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            made = func(*args, **(kwargs or {}))
            for each in made if isinstance(made, tuple) else (made,):
                if isinstance(each, torch.Tensor):
                    largest = max(largest, each.numel())
            return made

    with Watch():
        found, _ = logprobs.token_logprobs(hidden, weight, torch.zeros(64, dtype=torch.int64))
        found.sum().backward()
    assert largest == 500 * 8  # the weight, transposed; a chunk has 4 × 500
