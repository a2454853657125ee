"""Early stopping: which evaluation is the best so far, and when to wait no longer. Pure, without torch."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Stopper:
    """What is known after some evaluations (Prechelt, "Early Stopping — But When?", 1998).

    The best is the lowest loss. Patience begins anew when the loss lies `threshold` nats below `mark`, the
    loss it last began at: many small improvements add up to one that counts.
    """

    best: float = math.inf  # nats a token
    best_step: int = 0
    mark: float = math.inf
    waited: int = 0  # evaluations since the mark

    def seen(self, loss: float, step: int, threshold: float) -> "Stopper":
        """After one more evaluation; a loss that is not finite is the worst there is."""
        found = replace(self, waited=self.waited + 1)
        if not math.isfinite(loss):
            return found
        if loss < self.best:
            found = replace(found, best=loss, best_step=step)
        if math.isinf(self.mark) or loss < self.mark - threshold:
            found = replace(found, mark=loss, waited=0)
        return found

    def should_stop(self, patience: int) -> bool:
        return self.waited >= patience
