"""pass@k: the chance that at least one of k programs passes, estimated from n of which c did."""

import math
from collections.abc import Sequence


def pass_at_k(n: int, c: int, k: int) -> float:
    """The unbiased estimate 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, section 2.1).

    As their product 1 - ∏ (1 - k / i) over i in n - c + 1 … n, which needs no large number.
    Raises ValueError unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
    """
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} programs passed: expected 0 to {n}")
    if not 1 <= k <= n:
        raise ValueError(f"pass@{k} from {n} programs: expected 1 to {n}, as many programs as k at least")
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def mean_pass_at_k(counts: Sequence[tuple[int, int]], k: int) -> float | None:
    """Mean of `pass_at_k` over problems, each (n, c). None where a problem has fewer than k programs.

    Raises ValueError where there is no problem.
    """
    if not counts:
        raise ValueError(f"pass@{k} of no problem: expected one at least")
    if any(n < k for n, _ in counts):
        return None
    return math.fsum(pass_at_k(n, c, k) for n, c in counts) / len(counts)
