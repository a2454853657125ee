"""The metrics service itself: its version, and the requests it has answered."""

import platform

from services import __version__
from services.metrics.families.family import Buckets, Family, Samples, Section, View


def _build(_: View) -> Samples:
    yield (__version__, platform.python_version()), 1


def _requests(view: View) -> Samples:
    if view.served is None:
        return
    for labels, below, total in view.served.read():
        yield labels, Buckets(below, total)


SECTION = Section(
    "The metrics service",
    (
        Family(
            "build_info",
            "gauge",
            "1, with the version of Ratchet and of Python",
            _build,
            ("version", "python"),
            always=True,
        ),
        Family(
            "http_request_duration_seconds",
            "histogram",
            "Time until an answer of this process began, by part of the service and class of status",
            _requests,
            ("handler", "status"),
            always=True,
        ),
    ),
)
