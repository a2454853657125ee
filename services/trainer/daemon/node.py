"""A machine that takes part in another's rounds: it starts its processes whenever the first one has a round.

It needs no database and no lease. Adapters and checkpoints lie where every machine sees them; the base model
may lie in a cache of its own.
"""

import logging
import time

from services.core.process import StopSignal
from services.core.settings import Settings
from services.trainer.daemon.child import Child
from services.trainer.daemon.judge import backoff
from services.trainer.daemon.machines import Machines

log = logging.getLogger(__name__)
TICK = 0.5  # seconds between two looks
SILENCE = 15.0  # seconds after which a first machine that does not answer is gone


class Node:
    """Follows the first machine. One call of `tick` never blocks for long, but for stopping its processes."""

    def __init__(self, settings: Settings, track: str, machines: Machines) -> None:
        self._settings = settings
        self._track = track
        self._machines = machines
        self._child: Child | None = None
        self._failures = 0  # in a row
        self._not_before = 0.0  # monotonic seconds
        self._heard = 0.0

    def run(self, stop: StopSignal) -> None:
        machines = self._machines
        log.info(
            "machine %d of %d: waiting for rounds of %s at %s:%d",
            machines.number, machines.count, self._track, machines.host, machines.port,
        )  # fmt: skip
        while not stop:
            self.tick(time.monotonic())
            stop.wait(TICK)
        if self._child is not None:
            self._child.stop()

    def tick(self, now: float) -> None:
        """Join a round that waits, leave one that is over or whose first machine is gone."""
        if self._child is None:
            if now >= self._not_before and self._machines.first_answers():
                log.info("joining a round")
                self._child = Child(self._settings, self._track, self._machines, None)
                self._heard = now
            return
        status = self._child.process.poll()
        if status is not None:
            self._child.kill()  # what is left of its group
            self._child = None
            self._failures = 0 if status == 0 else self._failures + 1
            self._not_before = now + (0.0 if status == 0 else backoff(min(self._failures, 3)))
            log.info("the round is over here, status %d", status)
        elif self._machines.first_answers():
            self._heard = now
        elif now - self._heard > SILENCE:
            log.warning("the first machine has not answered for %.0f s: stopping", now - self._heard)
            self._child.stop()
