"""How good a state is: a value head on the frozen base's hidden states, and the loss it learns by."""

import torch
from torch.nn.functional import huber_loss, linear, relu, rms_norm

WIDTHS = (1024, 512)  # as the authors': h → 1024 → 512 → 1


class ValueHead(torch.nn.Module):
    """A perceptron without biases, in float32, that begins at 0 everywhere.

    Its features are the last hidden states of the base with adapters off: they do not change while a team
    is trained, and are computed once a rollout. Their scale differs from base to base, so that they are
    brought to a mean square of 1.
    """

    def __init__(self, hidden_size: int, seed: int) -> None:
        """The same seed, the same head; no global generator is used."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        sizes = (hidden_size, *WIDTHS)
        for number, (inputs, outputs) in enumerate(zip(sizes, WIDTHS, strict=False)):
            drawn = torch.randn(outputs, inputs, generator=generator) * (2 / inputs) ** 0.5  # He et al. 2015
            self.register_parameter(f"hidden_{number}", torch.nn.Parameter(drawn))
        self.out = torch.nn.Parameter(torch.zeros(1, WIDTHS[-1]))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """(N, hidden_size) in any type → (N,) float32."""
        states = rms_norm(features.float(), features.shape[-1:])
        for number in range(len(WIDTHS)):
            states = relu(linear(states, self.get_parameter(f"hidden_{number}")))
        return linear(states, self.out).squeeze(-1)


def value_loss(
    values: torch.Tensor, before: torch.Tensor, returns: torch.Tensor, delta: float, clip: float | None
) -> torch.Tensor:
    """Huber loss (1964) of each value against its return (N,), linear beyond `delta` on both sides.

    before: the values at the rollout; clip: how far from them a value may move with profit, so that the
    larger of the loss of the value and of the clipped value counts (Schulman et al.'s PPO baselines). None:
    as far as it likes.
    """
    loss = huber_loss(values, returns, reduction="none", delta=delta)
    if clip is None:
        return loss
    clipped = before + (values - before).clamp(-clip, clip)
    return torch.maximum(loss, huber_loss(clipped, returns, reduction="none", delta=delta))
