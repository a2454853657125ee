"""When is a part well, and when is it not?"""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.models import HEARTBEAT_STALE, ServiceState
from services.metrics.health import (
    GRACE,
    SUCCESSION,
    Beat,
    Departure,
    Health,
    Part,
    Status,
    VitalSigns,
    judge,
)


def beat(
    service: str = "trainer",
    state: str = "idle",
    age: float = 1.0,
    message: str | None = None,
    track: str = "demo",
    up: float = 1000.0,
) -> Beat:
    return Beat(service, f"host:{age}", state, {"message": message, "track": track}, age, up)


def judged(
    *beats: Beat,
    error: str | None = None,
    migrated: bool = True,
    uptime: float = 1000.0,
    left: Collection[Departure] = (),
    paused: Collection[str] = (),
) -> Health:
    signs = VitalSigns(migrated, beats, tuple(left), paused)
    return judge(signs, error=error, uptime_seconds=uptime)


def trainer(*beats: Beat, left: Collection[Departure] = (), paused: Collection[str] = ()) -> Part:
    """How the trainers are, beside a processor that is well."""
    return judged(*beats, beat("processor"), left=left, paused=paused).parts["trainer"]


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
    assert trainer(beat(state="error", message="no such model")).reason == "error: no such model"


@pytest.mark.parametrize("service", ["trainer", "processor"])
def test_a_silent_service_is_ill(service: str) -> None:
    """A newest beat older than HEARTBEAT_STALE means a crash or a hang."""
    other = beat("processor" if service == "trainer" else "trainer")
    part = judged(beat(service, age=HEARTBEAT_STALE + 1), other).parts[service]
    assert part.status is Status.ILL
    assert "silent for 46 s" in part.reason


# several trainers


def test_a_living_trainer_does_not_hide_a_dead_one_of_another_track() -> None:
    """The part is as ill as its worst track, and names it; each track has its own judgement."""
    part = trainer(beat(age=60, track="one"), beat(age=1, track="two"))
    assert part.status is Status.ILL
    assert part.reason.startswith("one: the trainer of one has been silent for 60 s")
    assert {name: each.status for name, each in part.tracks.items()} == {"one": Status.ILL, "two": Status.OK}


def test_an_erring_trainer_is_not_hidden_by_a_fresher_one_of_another_track() -> None:
    """Neither its state nor its age is measured by another track's."""
    part = trainer(beat(state="error", age=30, track="one"), beat(age=0, track="two"))
    assert part.reason == "one: error: it gave no reason"


def test_a_living_processor_stands_in_for_a_dead_one() -> None:
    """They share the work, whatever else their heartbeats say."""
    health = judged(beat("processor", age=300, track="x"), beat("processor", track="y"), beat())
    assert health.status is Status.OK
    assert health.parts["processor"].tracks == {}


@pytest.mark.parametrize("state", ["error", "stalled", "idle"])
def test_a_dead_predecessor_does_not_make_its_successor_ill(state: str) -> None:
    """An old instance left behind in a bad state no longer speaks for the track."""
    assert trainer(beat(state=state, age=SUCCESSION + 2), beat(age=1)).status is Status.OK


def test_a_predecessor_is_replaced_as_soon_as_its_successor_has_started() -> None:
    """It was heard 4 s ago and the other began 3 s ago: it crashed, and that is over."""
    assert trainer(beat(state="error", age=4), beat(age=1, up=3)).status is Status.OK


def test_a_trainer_that_is_ill_beside_a_standby_is_ill() -> None:
    """It was heard after the other began: it is not replaced."""
    assert trainer(beat(state="stalled", age=4), beat(state="standby", age=1, up=30)).status is Status.ILL


def test_the_leader_speaks_before_a_standby() -> None:
    """Of two fresh trainers the one that works is shown."""
    assert trainer(beat(state="standby", age=0.5), beat(state="training", age=3)).state == "training"


# planned stops


def test_a_trainer_that_stopped_in_good_order_is_not_missed() -> None:
    """It said so: no alarm, and the page says when."""
    part = trainer(left=[Departure("trainer", "demo", 190)])
    assert (part.status, part.state, part.reason) == (Status.OK, "stopped", "stopped in good order 3 min ago")


def test_stopping_one_of_two_tracks_leaves_the_other_to_speak() -> None:
    """What works is shown before what has stopped."""
    part = trainer(beat(state="training", track="one"), left=[Departure("trainer", "two", 60)])
    assert (part.status, part.state) == (Status.OK, "training")
    assert part.tracks["two"].state == "stopped"


def test_a_crash_after_a_planned_stop_is_a_crash() -> None:
    """It was started again since: the departure is history."""
    assert trainer(beat(age=60), left=[Departure("trainer", "demo", 900)]).status is Status.ILL


def test_a_processor_scaled_down_to_none_is_not_missed() -> None:
    """Nor is one of two: the other beats."""
    gone = [Departure("processor", "", 5)]
    assert judged(beat(), left=gone).status is Status.OK
    assert judged(beat(), beat("processor"), left=gone).parts["processor"].state == "idle"


# pauses


@pytest.mark.parametrize("ill", [beat(state="error", message="no model"), beat(age=600)])
def test_a_paused_track_is_not_ill(ill: Beat) -> None:
    """Nobody waits for it; what is wrong with it can still be read."""
    part = trainer(ill, paused={"demo"})
    assert part.status is Status.OK
    assert part.reason.startswith("paused; ")
    assert trainer(ill, paused={"another"}).status is Status.ILL


# not seen yet, database


@pytest.mark.parametrize(("uptime", "status"), [(GRACE - 1, Status.STARTING), (GRACE + 1, Status.ILL)])
def test_a_service_never_seen_is_starting_then_ill(uptime: float, status: Status) -> None:
    """For GRACE seconds a missing service may still be on its way."""
    assert judged(beat("processor"), uptime=uptime).status is status


def test_no_database_is_ill_at_once_and_nothing_else_is_claimed() -> None:
    """With the database away the services are unknown, not well."""
    health = judged(beat(), beat("processor"), error="connection refused", uptime=1)
    assert [part.status for part in health.parts.values()] == [Status.ILL, Status.UNKNOWN, Status.UNKNOWN]


@pytest.mark.parametrize(("uptime", "status"), [(GRACE - 1, Status.STARTING), (GRACE + 1, Status.ILL)])
def test_missing_migrations_say_what_to_do(uptime: float, status: Status) -> None:
    """An unmigrated database names the command; at first it may still be migrated."""
    part = judged(migrated=False, uptime=uptime).parts["database"]
    assert "ratchet migrate" in part.reason
    assert part.status is status


# whatever is in the table


tracks = st.sampled_from(["", "one", "two"])
services = st.sampled_from(["trainer", "processor"])
states = st.one_of(st.sampled_from([str(state) for state in ServiceState]), st.text(min_size=1))
ages = st.floats(0, 1e6)
any_beats = st.lists(st.builds(beat, services, states, ages, st.text(), tracks, ages))
any_left = st.lists(st.builds(Departure, services, tracks, ages))


@given(any_beats, any_left, st.sets(tracks), st.sampled_from([None, "away"]), st.booleans(), ages)
def test_every_part_always_has_a_status_and_a_reason(
    beats: list[Beat],
    left: list[Departure],
    paused: set[str],
    error: str | None,
    migrated: bool,
    uptime: float,
) -> None:
    """Whatever is in the table, the judgement names all three parts."""
    found = judged(*beats, error=error, migrated=migrated, uptime=uptime, left=left, paused=paused).as_json()
    assert set(found["parts"]) == {"database", "processor", "trainer"}
    assert all(part["reason"] for part in found["parts"].values())


@given(any_beats, any_left)
def test_a_track_is_judged_by_its_own_alone(beats: list[Beat], left: list[Departure]) -> None:
    """What is said of a track does not change when the others' heartbeats go."""
    together = judged(*beats, left=left).parts["trainer"].tracks
    for name, part in together.items():
        own = [each for each in beats if each.track == name]
        alone = judged(*own, left=[each for each in left if each.track == name])
        assert alone.parts["trainer"].tracks[name] == part
    assert (judged(*beats, left=left).parts["trainer"].status is Status.ILL) or all(
        part.status is not Status.ILL for part in together.values()
    )
