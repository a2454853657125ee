"""Where a reinforcement training is: everything a resumed one has to know besides tensors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from services.core.models import Json
from services.trainer.engine.stopping import Stopper
from services.trainer.reinforcement.episodes import Episode
from services.trainer.reinforcement.figures import Evaluation, Exposure, Iteration
from services.trainer.reinforcement.stopping import Watch


@dataclass(frozen=True)
class State:
    """After `step` iterations. Tasks, draws and learning rate of the next follow from it."""

    step: int = 0
    stopper: Stopper = field(default_factory=Stopper)  # its loss: the share of samples that did not pass
    watch: Watch = field(default_factory=Watch)
    rewards: tuple[float, ...] = ()  # mean of each iteration
    curve: tuple[Evaluation, ...] = ()
    exposures: Mapping[str, Exposure] = field(default_factory=dict)  # by task key
    episodes: int = 0
    tokens: int = 0
    seconds: float = 0.0  # in iterations
    policy_loss: float | None = None
    kl_reference: float | None = None  # nats a token
    collapsed_why: str | None = None

    @property
    def is_evaluated(self) -> bool:
        """Whether the weights of now have been."""
        return bool(self.curve) and self.curve[-1].step == self.step

    def after_iteration(self, figures: Iteration, episodes: Sequence[Episode]) -> "State":
        kl = figures.update.get("kl_reference", 0.0)
        return replace(
            self,
            step=figures.step,
            watch=self.watch.seen(figures.reward, figures.episodes, kl),
            rewards=(*self.rewards, figures.reward),
            exposures=_added(self.exposures, episodes),
            episodes=self.episodes + figures.episodes,
            tokens=self.tokens + figures.tokens,
            seconds=self.seconds + figures.rollout_seconds + figures.update_seconds,
            policy_loss=_finite(figures.update.get("policy_loss")),
            kl_reference=_finite(kl),
        )

    def after_evaluation(self, figures: Evaluation) -> "State":
        stopper = self.stopper.seen(1.0 - figures.pass_rate, self.step, 0.0)
        return replace(self, stopper=stopper, curve=(*self.curve, figures))

    def as_json(self) -> Json:
        """Strict JSON: infinities, which only say that nothing was seen yet, become null."""
        fields = asdict(self)
        stopper = fields["stopper"]
        for name in ("best", "mark"):
            stopper[name] = _finite(stopper[name])
        return fields


def from_json(fields: Mapping[str, Any]) -> State:
    """What `as_json` made; raises TypeError or KeyError for anything else."""
    stopper: dict[str, Any] = {
        name: math.inf if value is None else value for name, value in fields["stopper"].items()
    }
    return State(
        **{
            **fields,
            "stopper": Stopper(**stopper),
            "watch": Watch(**fields["watch"]),
            "rewards": tuple(fields["rewards"]),
            "curve": tuple(Evaluation(**one) for one in fields["curve"]),
            "exposures": {key: Exposure(**one) for key, one in fields["exposures"].items()},
        }
    )


def _added(before: Mapping[str, Exposure], episodes: Sequence[Episode]) -> dict[str, Exposure]:
    after = dict(before)
    for episode in episodes:
        once = Exposure(1, int(episode.solved), episode.tokens)
        after[episode.task] = after.get(episode.task, Exposure()) + once
    return after


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
