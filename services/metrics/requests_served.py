"""How many requests this process has answered, and how fast: a histogram by part of the service."""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator

from flask import Flask, Response, g, request

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5)  # seconds
PARTS = ("health", "metrics", "api", "static")  # first segments of paths; all else that is there is a page


class RequestsServed:
    """Counts in memory: a restart begins anew, as it does for every process that Prometheus watches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], list[int]] = {}  # a bucket's own, the last beyond all bounds
        self._totals: dict[tuple[str, str], float] = {}  # seconds

    def note(self, handler: str, status: int, seconds: float) -> None:
        key = handler, f"{status // 100}xx"
        with self._lock:
            counts = self._counts.setdefault(key, [0] * (len(BOUNDS) + 1))
            counts[bisect_left(BOUNDS, seconds)] += 1
            self._totals[key] = self._totals.get(key, 0.0) + seconds

    def read(self) -> Iterator[tuple[tuple[str, str], list[tuple[str, float]], float]]:
        """Labels, how many took at most so long for each bound, and the sum of all in seconds."""
        with self._lock:
            found = [(key, list(counts), self._totals[key]) for key, counts in sorted(self._counts.items())]
        for key, counts, total in found:
            below, buckets = 0, []
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                below += count
                buckets.append((bound, float(below)))
            yield key, buckets, total


def watch(app: Flask) -> RequestsServed:
    """Count what `app` answers from here on. A stream counts until it begins."""
    served = RequestsServed()

    @app.before_request
    def begin() -> None:
        g.began = time.perf_counter()

    @app.after_request
    def end(response: Response) -> Response:
        served.note(
            _handler(), response.status_code, time.perf_counter() - g.get("began", time.perf_counter())
        )
        return response

    return served


def part(path: str) -> str:
    """The part that a path which is there belongs to: a few words, whatever is asked for."""
    first = path.split("/", 2)[1]
    return first if first in PARTS else "page"


def _handler() -> str:
    return "none" if request.url_rule is None else part(request.url_rule.rule)
