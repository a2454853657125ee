"""Whether the parts are well. Told at any time: that the database is away is seen here."""

from collections.abc import Iterator

from services.core.models import Service, ServiceState
from services.metrics.families.family import Family, Samples, Section, View
from services.metrics.health import PAUSED, STOPPED, Part, Status

STATES = (*ServiceState, STOPPED, PAUSED)


def _is_well(part: Part) -> bool:
    return part.status in (Status.OK, Status.STARTING)


def _up(view: View) -> Samples:
    return (((name,), _is_well(part)) for name, part in view.health.parts.items())


def _parts(view: View) -> Iterator[tuple[str, str, Part]]:
    """Service, track and judgement: of the trainers each track's, of the processors one without a track."""
    for service in Service:
        part = view.health.parts.get(service)
        if part is not None:
            yield from ((service, track, one) for track, one in (part.tracks or {"": part}).items())


def _trainers(view: View) -> Samples:
    return (((track,), _is_well(part)) for service, track, part in _parts(view) if track)


def _ages(view: View) -> Samples:
    return (((service, track), part.beat_age_seconds) for service, track, part in _parts(view))


def _states(view: View) -> Samples:
    return (
        ((service, track, state), part.state == state)
        for service, track, part in _parts(view)
        if part.state is not None
        for state in STATES
    )


SECTION = Section(
    "Health",
    (
        Family("up", "gauge", "1 when this part is well, or starting", _up, ("part",), always=True),
        Family(
            "trainer_up",
            "gauge",
            "1 when the trainer of a track is well, was stopped in good order, or the track is paused",
            _trainers,
            ("track",),
            always=True,
        ),
        Family(
            "heartbeat_age_seconds",
            "gauge",
            "Time since the last sign of life of a service that has not stopped in good order",
            _ages,
            ("service", "track"),
            always=True,
        ),
        Family(
            "service_state",
            "gauge",
            "1 for the state a service is in",
            _states,
            ("service", "track", "state"),
            always=True,
        ),
        Family(
            "snapshot_age_seconds",
            "gauge",
            "Age of what the database told",
            lambda view: [((), view.age_seconds)],
            always=True,
        ),
        Family(
            "stalled",
            "gauge",
            "1 for a service of which service.stalled was recorded, until it is well again",
            lambda view: (
                ((row["service"], row["track"]), 1) for row in (view.snapshot or {})["operations"]["stalls"]
            ),
            ("service", "track"),
        ),
    ),
)
