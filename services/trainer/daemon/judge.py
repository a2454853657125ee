"""How the daemon judges its child: pure, from beats, clock and exit status."""

from dataclasses import dataclass, field, replace

from services.core.models import ServiceState
from services.trainer.heartbeat import Beat

BACKOFF_FIRST, BACKOFF_MAX = 2.0, 300.0  # seconds before a crashed child is started again


@dataclass(frozen=True)
class Watched:
    """What the daemon knows of a running child. Times are monotonic seconds of the daemon's own clock."""

    since: float  # when the counter last moved, or the child was started
    beat: Beat = field(default_factory=Beat)

    def seen(self, beat: Beat | None, now: float) -> "Watched":
        """With the newest beat: only a counter that moved is a sign of life."""
        if beat is None or beat.counter == self.beat.counter:
            return self
        return replace(self, since=now, beat=beat)

    def is_stuck(self, now: float, *, stall_timeout: float, load_timeout: float) -> bool:
        """A long load is not a stall; a running phase that stands still for `stall_timeout` is."""
        loading = self.beat.state is ServiceState.STARTING
        return now - self.since > (load_timeout if loading else stall_timeout)


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row: 2, 4, 8, … at most 300."""
    return float(min(BACKOFF_MAX, BACKOFF_FIRST * 2 ** (failures - 1)))
