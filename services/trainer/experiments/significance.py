"""What can be concluded from paired results: intervals and tests. Pure, values in, values out."""

import itertools
import math
from collections.abc import Sequence

import numpy

MOST_ENUMERATED = 13  # differences: 2**13 sign patterns are gone through one by one
BLOCK = 4_000_000  # numbers drawn at once


def bootstrap_interval(
    differences: Sequence[float], *, confidence: float, resamples: int, seed: int = 0
) -> tuple[float, float]:
    """A percentile interval of the mean (Efron & Tibshirani 1993, chapter 13); each difference is a unit.

    It covers which problems were asked, nothing else. Of one difference it is that difference.
    Raises ValueError for none.
    """
    values = numpy.asarray(differences, dtype=numpy.float64)  # (P,)
    if not len(values):
        raise ValueError("an interval of no difference: expected one at least")
    draw = numpy.random.default_rng(seed)
    at_once = max(1, BLOCK // len(values))
    means = numpy.concatenate(
        [
            values[draw.integers(len(values), size=(min(at_once, resamples - done), len(values)))].mean(
                axis=1
            )
            for done in range(0, resamples, at_once)
        ]
    )  # (resamples,)
    tail = (1 - confidence) / 2
    low, high = numpy.quantile(means, (tail, 1 - tail))
    return float(low), float(high)


def sign_flip_p(differences: Sequence[float], *, resamples: int, seed: int = 0) -> float:
    """Two-sided p of a mean of 0, by flipping signs (Fisher's randomisation test; Dror et al. 2018, 3.2).

    Exact for few differences that are not 0, otherwise of `resamples` random flips, counting the observed
    one (Phipson & Smyth 2010), so that it is never 0. Holds its level for any number of problems, where
    a bootstrap of a few does not.
    """
    values = numpy.asarray([value for value in differences if value], dtype=numpy.float64)  # (P,)
    if not len(values):
        return 1.0
    observed = abs(float(values.sum())) * (1 - 1e-12)  # equal sums in another order are equal
    if len(values) <= MOST_ENUMERATED:
        signs = numpy.asarray(list(itertools.product((-1, 1), repeat=len(values))))
        return float((abs(signs @ values) >= observed).mean())
    draw = numpy.random.default_rng(seed)
    at_once = max(1, BLOCK // len(values))
    as_large = 0
    for done in range(0, resamples, at_once):
        size = (min(at_once, resamples - done), len(values))
        signs = 2 * draw.integers(2, size=size, dtype=numpy.int8) - 1
        as_large += int((abs(signs @ values) >= observed).sum())
    return (1 + as_large) / (1 + resamples)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact p of McNemar's test: problems that one of two passes and the other does not.

    Twice the binomial tail at one half, at most 1 (McNemar 1947; Dror et al. 2018, section 3.2).
    """
    discordant = only_first + only_second
    tail = sum(math.comb(discordant, passed) for passed in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / float(2**discordant))


def holm(p_values: Sequence[float]) -> list[float]:
    """p adjusted for their number, in the order given (Holm 1979): to be held against 1 - confidence."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def standard_deviation(values: Sequence[float]) -> float | None:
    """Of a sample, with n - 1; None of fewer than two."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
