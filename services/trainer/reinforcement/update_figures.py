"""What an update did, step by step and as a whole. Pure, without torch."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class RoleFigures:
    """What an update did to one role: means over what it learned from, in all steps."""

    policy_loss: float  # the clipped surrogate alone
    entropy: float  # nats a token
    kl_reference: float  # of the policy to the base, nats a token (k3)
    approx_kl: (
        float  # of the policy that wrote to the one that learns, nats a token (k3); with one step: rounding
    )
    clip_share: float  # of the ratios that lie outside the clip range
    ratio_mean: float
    grad_norm: float  # before it was clipped, a step
    actions: int  # in the rollout, that were learned from
    tokens: int  # which those have
    truncated: int  # actions that were masked because they were cut off
    steps: int  # of the optimizer
    stopped_early: bool  # by kl_threshold


@dataclass(frozen=True)
class UpdateFigures:
    """What an update did."""

    roles: Mapping[str, RoleFigures]  # those that had something to learn from
    value_loss: float | None  # None: without a critic
    explained_variance: float | None  # of the rewards to come, by the values before the update; 1: all of it
    skipped_groups: int  # grpo: of one role and turn, without variance
    truncated: int  # actions of trained roles that were masked
    tokens: int  # written in the rollout, by all roles

    @property
    def stopped_early(self) -> bool:
        """Whether any role's update was."""
        return any(each.stopped_early for each in self.roles.values())

    @property
    def kl_reference(self) -> float:
        """The largest of any role: what collapses shows there first."""
        return max((each.kl_reference for each in self.roles.values()), default=0.0)

    def as_json(self) -> dict[str, float]:
        """Flat: `entropy` is the mean over roles, `entropy/coder` one role's; only what is known is there."""
        flat: dict[str, float] = {}
        for field in fields(RoleFigures):
            of_roles = {role: float(getattr(each, field.name)) for role, each in self.roles.items()}
            flat |= {f"{field.name}/{role}": value for role, value in of_roles.items()}
            if of_roles and field.name in MEANS:
                flat[field.name] = sum(of_roles.values()) / len(of_roles)
        own = {name: value for name, value in asdict(self).items() if name != "roles" and value is not None}
        return {**flat, **own, "kl_reference": self.kl_reference, "stopped_early": float(self.stopped_early)}


MEANS = ("policy_loss", "entropy", "approx_kl", "clip_share", "ratio_mean", "grad_norm")  # also over roles


@dataclass(frozen=True)
class Step:
    """Sums over the parts of one role's step, at the policy before it."""

    loss: float  # surrogate
    ratios: float
    clipped: float
    entropy: float
    reference: float  # KL
    approx: float  # KL
    norm: float  # of the gradient
    units: int  # ratios that there are: actions or tokens
    tokens: int

    @property
    def is_finite(self) -> bool:
        """Whether the step may be taken."""
        return math.isfinite(self.norm) and math.isfinite(self.loss)


SUMMED = ("loss", "ratios", "clipped", "entropy", "reference", "approx")


class Sums:
    """The steps of one role."""

    def __init__(self) -> None:
        self._seen: list[Step] = []
        self._taken = 0
        self.stopped_early = False

    def add(self, step: Step, *, taken: bool) -> None:
        """Also what was seen of a step that was not taken counts."""
        self._seen.append(step)
        self._taken += taken

    def figures(self, *, actions: int, tokens: int, truncated: int) -> RoleFigures:
        """Means over the steps, by what each had; actions, tokens, truncated: of the rollout."""
        units = max(1, sum(step.units for step in self._seen))
        seen = max(1, sum(step.tokens for step in self._seen))
        return RoleFigures(
            policy_loss=sum(step.loss for step in self._seen) / units,
            entropy=sum(step.entropy for step in self._seen) / seen,
            kl_reference=sum(step.reference for step in self._seen) / seen,
            approx_kl=sum(step.approx for step in self._seen) / seen,
            clip_share=sum(step.clipped for step in self._seen) / units,
            ratio_mean=sum(step.ratios for step in self._seen) / units,
            grad_norm=sum(step.norm for step in self._seen) / max(1, len(self._seen)),
            actions=actions,
            tokens=tokens,
            truncated=truncated,
            steps=self._taken,
            stopped_early=self.stopped_early,
        )
