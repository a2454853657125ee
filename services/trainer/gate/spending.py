"""How sure a promotion must be, given how often the track has been looked at: LORD++.

Ramdas, Yang, Wainwright and Jordan, "Online control of the false discovery rate with decaying memory"
(NeurIPS 2017), section 3. A track has a wealth of alpha, half of it to begin with. Look t may be wrong with
probability

    alpha_t = g(t) W0 + (alpha - W0) g(t - T1) + alpha (g(t - T2) + g(t - T3) + ...)

where T1 < T2 < ... are the looks that promoted and g(1) + g(2) + ... = 1. While nothing is promoted the
levels sum to W0: a track without any effect is ever promoted with probability W0 at most, whatever the
dependence between its looks (Boole's inequality). Every promotion begins a sequence of its own, so a track
that improves keeps its power; of its promotions a share of alpha is expected to be false at most, when each
level holds given the looks before.
"""

from services.trainer.gate.evidence import History

FIRST_SHARE = 0.5  # W0 / alpha; the other half is earned by the first promotion


def level(history: History, alpha: float) -> float:
    """The probability of a wrong promotion that the look after this history may take."""
    look = history.look
    spent = alpha * FIRST_SHARE * share(look)
    promotions = (number for number, promoted in enumerate(history.promoted, 1) if promoted)
    for count, at in enumerate(promotions):
        earned = alpha * (1 - FIRST_SHARE) if count == 0 else alpha
        spent += earned * share(look - at)
    return spent


def share(turn: int) -> float:
    """g: of a sequence's wealth, the part of its turn 1, 2, …; sums to 1, and to n / (n + 1) over n turns."""
    return 1 / (turn * (turn + 1))
