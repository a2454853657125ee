"""What a reinforcement training says of itself: while it runs, to whoever listens, and when it is done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from services.core.models import Json
from services.trainer.engine.figures import Progress
from services.trainer.reinforcement.episodes import Episode


@dataclass(frozen=True)
class Iteration:
    """One iteration: episodes were collected, then learned from."""

    step: int  # iterations done, this one among them
    total_steps: int
    episodes: int
    reward: float  # of an episode, mean
    solved: float  # share of the episodes whose last program passed
    tokens: int  # written by all roles
    rollout_seconds: float  # writing, and waiting for what ran in the sandbox
    update_seconds: float
    learning_rate: float
    update: Mapping[str, float]  # see `update.UpdateFigures.as_json`: losses, KL, clip share, by role too
    tokens_of: Mapping[str, int] = field(default_factory=dict)  # by role

    @property
    def seconds(self) -> float:
        return max(self.rollout_seconds + self.update_seconds, 1e-9)

    @property
    def tokens_per_s(self) -> float:
        """Written a second of the whole iteration."""
        return self.tokens / self.seconds

    def as_json(self) -> Json:
        """Flat, for the ledger and the trackers."""
        own = asdict(self)
        speeds = {
            f"tokens_per_s/{role}": count / self.seconds for role, count in own.pop("tokens_of").items()
        }
        return {**own.pop("update"), **own, "tokens_per_s": self.tokens_per_s, **speeds}


@dataclass(frozen=True)
class Evaluation:
    """Of the validation tasks, after so many iterations."""

    step: int
    pass_rate: float  # share of the samples that passed, mean over tasks
    reward: float  # of an episode, mean
    episodes: int
    seconds: float

    def as_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Exposure:
    """How often a task was trained on."""

    episodes: int = 0
    solved: int = 0
    tokens: int = 0  # written for it, by all roles

    def __add__(self, other: "Exposure") -> "Exposure":
        return Exposure(
            self.episodes + other.episodes, self.solved + other.solved, self.tokens + other.tokens
        )


@dataclass(frozen=True)
class Training:
    """What the finished training measured."""

    steps: int  # iterations
    total_steps: int
    best_step: int
    weights_step: int  # iterations behind the weights that are in the team: the best, or all
    stopped_why: str | None  # None: all iterations were done
    collapsed: bool
    rewards: tuple[float, ...]  # mean of each iteration
    curve: tuple[Evaluation, ...]
    exposures: Mapping[str, Exposure]  # by task key, of those `weights_step` iterations
    episodes: int
    tokens: int
    seconds: float  # in iterations
    policy_loss: float | None  # of the last iteration; likewise
    kl_reference: float | None  # nats a token, of the role that went farthest

    @property
    def pass_rate(self) -> float | None:
        """Of the validation tasks, with the weights that are in the team; None where there are none."""
        return next((one.pass_rate for one in self.curve if one.step == self.weights_step), None)

    def summary(self) -> Json:
        """What is written as summary.json: plain figures and curves, without the tasks."""
        fields = asdict(self)
        del fields["exposures"]
        seconds = max(self.seconds, 1e-9)
        return {
            **fields,
            "pass_rate": self.pass_rate,
            "tasks": len(self.exposures),
            "tokens_per_s": self.tokens / seconds,
            "seconds_per_step": self.seconds / max(1, self.steps),
        }


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Hooks:
    """What the round wants to hear of, and how it says stop."""

    on_iteration: Callable[[Iteration], None] = _nothing
    on_evaluation: Callable[[Evaluation], None] = _nothing
    # Iteration number from 1, and what was written in it. After a crash an iteration may come once more.
    on_episodes: Callable[[int, Sequence[Episode]], None] = _nothing
    beat: Callable[[Progress], None] = _nothing
    check: Callable[[], None] = _nothing  # raises Interrupted to stop; asked in rollouts and between updates
