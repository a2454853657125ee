"""Confidence bounds of a ratio of sums over groups, by the studentised bootstrap.

Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 12.5; the standard error is the
ratio's linearisation (Cochran, "Sampling Techniques", 1977, section 6.4). Whole groups are drawn. The
percentile interval is too short for few groups: docs/decisions/0017-gate.md has the figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

RESAMPLES = 2000
TAIL = 20 / RESAMPLES  # beyond it too few resamples are left to read a quantile from
POWER = 0.8
NORMAL = NormalDist()


@dataclass(frozen=True)
class Bounds:
    """An estimate, and one-sided bounds of it at one level."""

    estimate: float
    low: float
    high: float
    error: float  # standard error
    critical: float  # (estimate - low) / error, where there is an error
    groups: int

    @property
    def detectable(self) -> float:
        """The true value above zero whose lower bound is above zero in 8 samples of 10 like this one."""
        return (self.critical + NORMAL.inv_cdf(POWER)) * self.error

    def groups_for(self, effect: float) -> int | None:
        """How many such groups would show this effect in 8 samples of 10; None when it is not positive."""
        if effect <= 0:
            return None
        return max(1, math.ceil(self.groups * (self.detectable / effect) ** 2))


def bounds(
    sums: Sequence[tuple[float, float]], level: float, seed: int, *, least_variance: float = 0.0
) -> Bounds:
    """Bounds of Σ numerators / Σ denominators, each right with probability 1 - level.

    sums: of each group its numerator and denominator. least_variance is added to the estimate's, for data
    so discrete that none may be seen. The same figures give the same bounds, in whatever order. Never
    `low` above the estimate: the critical value is at least Student's.
    """
    groups = len(sums)
    values = np.array(sorted(sums))  # (G, 2)
    numerators, denominators = values[:, 0], values[:, 1]
    whole = float(denominators.sum())
    if whole <= 0:
        return Bounds(0.0, -math.inf, math.inf, math.inf, math.inf, groups)
    estimate = float(numerators.sum()) / whole
    residuals = numerators - estimate * denominators  # sum to 0
    factor = groups / (groups - 1)
    error = math.sqrt(factor * float(residuals @ residuals) / whole**2 + least_variance)
    if error < 1e-9 * max(1.0, abs(estimate)):  # every group says the same
        return Bounds(estimate, estimate, estimate, 0.0, 0.0, groups)
    student = student_quantile(1 - level, groups - 1)
    scores = _scores(residuals / whole, denominators / whole, factor, least_variance, seed)
    tail = max(level, TAIL)
    below, above = scores[int(tail * RESAMPLES)], scores[-1 - int(tail * RESAMPLES)]
    if level < TAIL:
        stretch = student / student_quantile(1 - TAIL, groups - 1)
        below, above = stretch * below, stretch * above
    critical = max(float(above), student)
    low, high = estimate - critical * error, estimate + max(float(-below), student) * error
    return Bounds(estimate, low, high, error, critical, groups)


def _scores(
    residuals: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    factor: float,
    least_variance: float,
    seed: int,
) -> npt.NDArray[np.float64]:
    """(resampled estimate - estimate) / its own standard error, ascending: (RESAMPLES,)."""
    terms = np.stack([residuals, shares, residuals**2, residuals * shares, shares**2])  # (5, G)
    scale = np.abs(terms).max(axis=1, keepdims=True)
    scale[scale == 0] = 1.0
    drawn = (terms / scale).astype(np.float32) @ _draws(len(residuals), seed)  # (5, RESAMPLES)
    moved, whole, square, mixed, shared = drawn.astype(np.float64) * scale
    change = moved / whole
    variance = factor * (square - 2 * change * mixed + change**2 * shared) / whole**2 + least_variance
    smallest = 1e-12 * float(residuals @ residuals)  # a resample of one group over and over
    scores: npt.NDArray[np.float64] = np.sort(change / np.sqrt(np.maximum(variance, smallest)))
    return scores


@lru_cache(maxsize=16)
def _draws(groups: int, seed: int) -> npt.NDArray[np.float32]:
    """How often each resample has each group: (groups, RESAMPLES)."""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(groups, np.full(groups, 1 / groups), size=RESAMPLES)
    return np.ascontiguousarray(counts.T, dtype=np.float32)


@lru_cache(maxsize=1024)
def student_quantile(probability: float, freedom: int) -> float:
    """Student's t, by Hill's approximation (Communications of the ACM 13, 1970, algorithm 396)."""
    if not 0.5 <= probability < 1 or freedom < 1:
        raise ValueError(f"student_quantile({probability}, {freedom}): expected 0.5 <= p < 1, freedom >= 1")
    both = 2 * (1 - probability)  # the probability of both tails
    if freedom == 1:
        return 1 / math.tan(both * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (both * (2 - both)) - 2)
    a = 1 / (freedom - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (d * both) ** (2 / freedom)
    if y > 0.05 + a:
        x = NORMAL.inv_cdf(both / 2)
        y = x * x
        if freedom < 5:
            c += 0.3 * (freedom - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        tail = ((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3
        y = ((1 / tail + 0.5 / (freedom + 4)) * y - 1) * (freedom + 1) / (freedom + 2) + 1 / y
    return math.sqrt(freedom * y)
