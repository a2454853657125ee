"""How far an experiment is and how long it will take: by what each kind of work took so far. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Work = Literal["train", "write", "run"]
WORK: tuple[Work, ...] = ("train", "write", "run")


@dataclass(frozen=True)
class Pace:
    """Amounts of work: trainings, programs written, programs run; by what was done since this start."""

    left: Mapping[Work, float]
    done: Mapping[Work, float] = field(default_factory=dict)  # since this start
    seconds: Mapping[Work, float] = field(default_factory=dict)

    def after(self, work: Work, amount: float, seconds: float) -> "Pace":
        return replace(
            self,
            left={**self.left, work: max(0.0, self.left.get(work, 0.0) - amount)},
            done={**self.done, work: self.done.get(work, 0.0) + amount},
            seconds={**self.seconds, work: self.seconds.get(work, 0.0) + seconds},
        )

    @property
    def seconds_left(self) -> float | None:
        """None until something of every kind that is left has been done."""
        total = 0.0
        for work in WORK:
            if not self.left.get(work):
                continue
            if not self.done.get(work):
                return None
            total += self.left[work] * self.seconds[work] / self.done[work]
        return total


def clock(seconds: float | None) -> str:
    """Seconds as 2:05 or 1:02:05; nothing where they are not known."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
