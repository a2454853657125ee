"""A loss that is not finite or shoots up: what to do is decided here, without torch, and done in the loop.

Going back to a good state and leaving the batch out is what PaLM's training did (Chowdhery et al. 2022,
section 5.1): the same batches from another state cause no spike.
"""

import math
import statistics
from dataclasses import dataclass, replace

RECENT = 32  # steps whose losses the median is of
ENOUGH = 8  # steps before a loss can be a spike: the first ones fall fast
LEAST_RISE = 0.5  # nats a token above the median: small losses vary by factors


@dataclass(frozen=True)
class Faults:
    """What the round has met so far."""

    recent: tuple[float, ...] = ()  # losses of the last good steps, nats a token
    rollbacks: int = 0
    skipped: tuple[int, ...] = ()  # numbers of the batches left out, ascending

    def of(self, loss: float, gradient_norm: float, spike_factor: float) -> str | None:
        """What is wrong with a step, in words; None when nothing is."""
        if not math.isfinite(loss):
            return f"the training loss is {loss}"
        if not math.isfinite(gradient_norm):
            return f"the norm of the gradients is {gradient_norm}"
        if len(self.recent) < ENOUGH:
            return None
        median = statistics.median(self.recent)
        if loss > max(spike_factor * median, median + LEAST_RISE):
            return f"the training loss shot up to {loss:.3f} from a median of {median:.3f}"
        return None

    def after_good(self, loss: float) -> "Faults":
        return replace(self, recent=(*self.recent, loss)[-RECENT:])

    def after_rollback(self, batch: int, restored: "Faults") -> "Faults":
        """Back at a state whose faults were `restored`, with this batch left out from now on."""
        return replace(restored, rollbacks=self.rollbacks + 1, skipped=tuple(sorted({*self.skipped, batch})))

    def batch_of(self, step: int) -> int:
        """The number of the batch that a step trains on: those left out do not count."""
        number = step
        for skipped in self.skipped:
            number += skipped <= number
        return number
