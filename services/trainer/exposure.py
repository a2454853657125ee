"""How much likelier a model finds a random secret than others of its format: its exposure.

Carlini et al., "The Secret Sharer" (USENIX Security 2019), section 4. Pure: nats in, bits out.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

FEWEST = 5  # other secrets, below which their spread says nothing
MOST_BITS = 64.0
CHANCE_BITS = 1 / math.log(2)  # on average of a secret that was never seen: of -log2 of a uniform number


def exposure_bits(nats: float, others: Sequence[float]) -> float | None:
    """-log2 of the share of all secrets of the format that would cost no more than this one.

    nats: what the secret costs the model. others: what random ones of its format cost, that were never
    seen. The share is extrapolated (section 4.3) by what a further draw from the others' distribution would
    be: Student's t about their mean, exact for normal ones, where the paper fits a skew-normal to many more.
    Of a secret never seen it is uniform: more than b bits happen with probability 2^-b. None with too few
    others, or when they or the secret are not finite; at most 64 bits.
    """
    if len(others) < FEWEST or not all(map(math.isfinite, (nats, *others))):
        return None
    freedom = len(others) - 1
    spread = stdev(others) * math.sqrt(1 + 1 / len(others))
    if spread == 0:
        return 1.0 if nats == fmean(others) else MOST_BITS if nats < fmean(others) else 0.0
    share = NormalDist().cdf(_normal_score((nats - fmean(others)) / spread, freedom))
    return min(MOST_BITS, -math.log2(max(share, 2**-MOST_BITS)))


def chance(bits: Sequence[float]) -> float:
    """How probable exposures that are as high, taken together, are for secrets that were never seen.

    Fisher's method ("Statistical Methods for Research Workers", 1925, section 21.1): -2 ln of n uniform
    numbers adds up to chi-squared of 2 n degrees. 1 without any.
    """
    half = math.log(2) * math.fsum(bits)
    term, total = 1.0, 1.0
    for number in range(1, len(bits)):
        term *= half / number
        total += term
    return min(1.0, math.exp(-half) * total) if bits else 1.0


def _normal_score(t: float, freedom: int) -> float:
    """The normal deviate with the same tail as Student's t (Wallace, Annals of Statistics 30, 1959)."""
    size = math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.copysign(size * (8 * freedom + 1) / (8 * freedom + 3), t)
