"""When is a part well, and when is it not?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.models import HEARTBEAT_STALE, ServiceState
from services.metrics.health import GRACE, Beat, Health, Status, judge


def beat(service: str = "trainer", state: str = "idle", age: float = 1.0, message: str | None = None) -> Beat:
    return Beat(service, f"host:{age}", state, {"message": message}, age)


def judged(*beats: Beat, error: str | None = None, migrated: bool = True, uptime: float = 1000.0) -> Health:
    return judge(error=error, migrated=migrated, beats=beats, uptime_seconds=uptime)


def test_all_is_well_when_both_services_beat() -> None:
    """Fresh beats in a good state make the whole ok."""
    assert judged(beat(), beat("processor")).status is Status.OK


@pytest.mark.parametrize("state", list(ServiceState))
def test_exactly_the_ill_states_are_ill(state: ServiceState) -> None:
    """stalled, recovering and error are ill; any other state with fresh beats is well."""
    health = judged(beat(state=state), beat("processor"))
    assert (health.parts["trainer"].status is Status.ILL) == state.is_ill


def test_a_long_model_load_is_well() -> None:
    """A starting trainer with fresh beats is healthy, however long it has been starting."""
    assert judged(beat(state="starting", message="loading"), beat("processor")).status is Status.OK


def test_an_ill_state_tells_its_message() -> None:
    """The reason repeats what the service said."""
    part = judged(beat(state="error", message="no such model"), beat("processor")).parts["trainer"]
    assert part.reason == "error: no such model"


def test_a_silent_service_is_ill() -> None:
    """A newest beat older than HEARTBEAT_STALE means a crash or a hang."""
    part = judged(beat(age=HEARTBEAT_STALE + 1), beat("processor")).parts["trainer"]
    assert part.status is Status.ILL
    assert "silent for 46 s" in part.reason


def test_a_dead_predecessor_does_not_make_its_successor_ill() -> None:
    """An old instance left behind in a bad state no longer speaks for the service."""
    health = judged(beat(state="error", age=30), beat(age=1), beat("processor"))
    assert health.status is Status.OK


def test_the_leader_speaks_before_a_standby() -> None:
    """Of two fresh trainers the one that works is shown."""
    health = judged(beat(state="standby", age=0.5), beat(state="training", age=3), beat("processor"))
    assert health.parts["trainer"].state == "training"


@pytest.mark.parametrize(("uptime", "status"), [(GRACE - 1, Status.STARTING), (GRACE + 1, Status.ILL)])
def test_a_service_never_seen_is_starting_then_ill(uptime: float, status: Status) -> None:
    """For GRACE seconds a missing service may still be on its way."""
    assert judged(beat("processor"), uptime=uptime).status is status


def test_no_database_is_ill_at_once_and_nothing_else_is_claimed() -> None:
    """With the database away the services are unknown, not well."""
    health = judged(beat(), beat("processor"), error="connection refused", uptime=1)
    assert [part.status for part in health.parts.values()] == [Status.ILL, Status.UNKNOWN, Status.UNKNOWN]


def test_missing_migrations_say_what_to_do() -> None:
    """An unmigrated database names the command."""
    assert "ratchet migrate" in judged(migrated=False).parts["database"].reason


@given(
    st.lists(st.builds(beat, st.sampled_from(["trainer", "processor"]), st.text(), st.floats(0, 1e6))),
    st.one_of(st.none(), st.text()),
    st.booleans(),
    st.floats(0, 1e6),
)
def test_every_part_always_has_a_status_and_a_reason(
    beats: list[Beat], error: str | None, migrated: bool, uptime: float
) -> None:
    """Whatever is in the table, the judgement names all three parts."""
    health = judged(*beats, error=error, migrated=migrated, uptime=uptime)
    assert set(health.as_json()["parts"]) == {"database", "processor", "trainer"}
