"""Where a training is: everything a resumed one has to know besides tensors. Frozen, to JSON and back."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from services.core.models import Json
from services.trainer.engine.faults import Faults
from services.trainer.engine.stopping import Stopper


@dataclass(frozen=True)
class Evaluation:
    """Of the validation part, at a step."""

    step: int
    loss: float  # nats a token
    bits_per_byte: float


@dataclass(frozen=True)
class TrainingState:
    """After `step` optimizer steps. Order of data, learning rate and randomness follow from it."""

    step: int = 0
    micro_batch: int = 1  # rows at once; less than planned after an out-of-memory
    processes: tuple[tuple[int, int], ...] = ()  # step, and how many have shared it and those after it
    ran_out_of_memory: int = 0  # times
    stopper: Stopper = field(default_factory=Stopper)
    faults: Faults = field(default_factory=Faults)
    losses: tuple[float, ...] = ()  # nats a token; means of equal stretches of steps
    stretch: tuple[float, ...] = ()  # losses of the steps since
    evaluations: tuple[Evaluation, ...] = ()
    tokens: int = 0  # trained on, without padding
    seconds: float = 0.0  # spent in steps
    seconds_waiting: float = 0.0  # of those, for data

    @property
    def evaluated(self) -> bool:
        """Whether this very step has been evaluated."""
        return bool(self.evaluations) and self.evaluations[-1].step == self.step

    def after_step(self, loss: float, tokens: int, seconds: float, waiting: float) -> "TrainingState":
        return replace(
            self,
            step=self.step + 1,
            faults=self.faults.after_good(loss),
            stretch=(*self.stretch, loss),
            tokens=self.tokens + tokens,
            seconds=self.seconds + seconds,
            seconds_waiting=self.seconds_waiting + waiting,
        )

    def shared_by(self, processes: int) -> "TrainingState":
        """Going on with so many of them."""
        if self.processes and self.processes[-1][1] == processes:
            return self
        return replace(self, processes=(*self.processes, (self.step, processes)))

    def after_stretch(self) -> "TrainingState":
        """The losses since the last stretch become one point of the curve."""
        mean = sum(self.stretch) / len(self.stretch)
        return replace(self, losses=(*self.losses, mean), stretch=())

    def after_evaluation(self, loss: float, bits_per_byte: float, threshold: float) -> "TrainingState":
        return replace(
            self,
            stopper=self.stopper.seen(loss, self.step, threshold),
            evaluations=(*self.evaluations, Evaluation(self.step, loss, bits_per_byte)),
        )

    def as_json(self) -> Json:
        """Strict JSON: infinities, which only say that nothing was seen yet, become null."""
        fields = asdict(self)
        stopper = fields["stopper"]
        for name in ("best", "mark"):
            stopper[name] = stopper[name] if math.isfinite(stopper[name]) else None
        return fields


def from_json(fields: Mapping[str, Any]) -> TrainingState:
    """What `as_json` made; raises TypeError or KeyError for anything else."""
    stopper: dict[str, Any] = {
        name: math.inf if value is None else value for name, value in fields["stopper"].items()
    }
    faults = fields["faults"]
    return TrainingState(
        **{
            **fields,
            "stopper": Stopper(**stopper),
            "faults": Faults(tuple(faults["recent"]), faults["rollbacks"], tuple(faults["skipped"])),
            "losses": tuple(fields["losses"]),
            "processes": tuple((step, number) for step, number in fields.get("processes", ())),
            "stretch": tuple(fields["stretch"]),
            "evaluations": tuple(Evaluation(**one) for one in fields["evaluations"]),
        }
    )
