"""`notice_stalls`: who is ill is told once, and once more when well again; nobody is slandered."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from services.core.db import Database, as_json
from services.core.models import HEARTBEAT_STALE, Service, ServiceState
from services.core.target import Target
from services.metrics import health
from tests.integration.metrics.rows import beat

TRAINER = {"track": "demo", "message": "no progress for 61 s: step 84"}


@pytest.fixture
def ward(database: Database) -> "Ward":
    return Ward(database)


class Ward:
    """The heartbeats and those who look at them, with a clock that can be moved on."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def run(self, statement: str, *parameters: Any) -> None:
        with self.database.transaction() as tx:
            tx._cursor.execute(statement, parameters)

    def pass_by(self, seconds: float, looked: bool = True) -> None:
        """As if so much time had passed; `looked`: somebody has been looking all the while."""
        ago = "make_interval(secs => %s)"
        self.run(f"UPDATE heartbeats SET beat_at = beat_at - {ago}", seconds)
        self.run(f"UPDATE stalls SET suspected_at = suspected_at - {ago}", seconds)
        if not looked:
            self.run(f"UPDATE stalls SET looked_at = looked_at - {ago}", seconds)

    def beat(self, service: str, state: str = "idle", instance: str = "host:1", **detail: Any) -> None:
        beat(self.database, service, state, detail, instance=instance)

    def look(self) -> list[tuple[str, str | None, dict[str, Any]]]:
        """Look once; the events there are now, each as kind, track and payload."""
        with self.database.transaction() as tx:
            tx.execute("notice_stalls")
        with self.database.transaction() as tx:
            tx._cursor.execute("SELECT kind, track, payload FROM events ORDER BY id")
            return [tuple(row) for row in tx._cursor.fetchall()]

    def look_for(self, seconds: float) -> list[tuple[str, str | None, dict[str, Any]]]:
        """Look, and again after so long."""
        self.look()
        self.pass_by(seconds)
        return self.look()


def test_a_service_that_falls_silent_is_told_once(ward: Ward) -> None:
    """After 45 s of silence and 20 s of suspicion, with who it was and what it said last."""
    ward.beat("processor", instance="host:7", message="reading werkzeug")
    ward.pass_by(44)
    assert ward.look_for(0) == []
    ward.pass_by(2)
    assert ward.look_for(19) == []
    ((kind, track, payload),) = ward.look_for(2)
    assert (kind, track) == ("service.stalled", None)
    assert payload == {
        "service": "processor", "instance": "host:7", "state": "idle",
        "message": "reading werkzeug", "silent_s": payload["silent_s"],
    }  # fmt: skip
    assert payload["silent_s"] == pytest.approx(67, abs=2)
    for _ in range(3):
        assert len(ward.look_for(100)) == 1


def test_who_speaks_again_is_told_to_be_well_once(ward: Ward) -> None:
    ward.beat("processor")
    ward.pass_by(60)
    ward.look_for(21)
    ward.beat("processor", instance="host:8")
    *_, (kind, _, payload) = ward.look()
    assert kind == "service.recovered"
    assert payload == {"service": "processor", "instance": "host:8", "state": "idle"}
    assert len(ward.look()) == 2
    ward.pass_by(60)
    assert len(ward.look_for(21)) == 3  # it may fall ill again


def test_who_was_only_suspected_is_not_told_of(ward: Ward) -> None:
    ward.beat("processor")
    ward.pass_by(60)
    ward.look()
    ward.beat("processor")
    assert ward.look() == []
    assert ward.look_for(21) == []


def test_the_trainer_of_a_paused_track_is_told_of_when_it_is_resumed(ward: Ward) -> None:
    """As in /health: nobody waits for it. Nor is one told to be well that was paused while it was silent."""
    ward.run("INSERT INTO tracks (name, recipe, paused_at, paused_by) VALUES ('demo', '{}', now(), 'me')")
    ward.beat("trainer", **TRAINER)
    ward.pass_by(60)
    assert ward.look_for(21) == []
    ward.run("UPDATE tracks SET paused_at = NULL, paused_by = NULL")
    assert [kind for kind, _, _ in ward.look_for(21)] == ["service.stalled"]
    ward.run("UPDATE tracks SET paused_at = now(), paused_by = 'me'")
    assert [kind for kind, _, _ in ward.look()] == ["service.stalled"]


@pytest.mark.parametrize("state", ["stalled", "recovering", "error"])
def test_a_trainer_that_says_it_is_ill_is_believed(ward: Ward, state: str) -> None:
    """A round that hangs is told by the daemon, which lives."""
    ward.beat("trainer", state, **TRAINER)
    ward.look()
    ward.run("UPDATE stalls SET suspected_at = suspected_at - interval '21 s'")
    ((kind, track, payload),) = ward.look()
    assert (kind, track, payload["state"], payload["message"]) == (
        "service.stalled", "demo", state, TRAINER["message"],
    )  # fmt: skip


def test_a_trainer_of_another_track_does_not_hide_a_dead_one(ward: Ward) -> None:
    ward.beat("trainer", instance="host:1", track="one")
    ward.pass_by(60)
    ward.beat("trainer", instance="host:2", track="two")
    ward.look()
    ward.run("UPDATE stalls SET suspected_at = suspected_at - interval '21 s'")
    assert [(kind, track) for kind, track, _ in ward.look()] == [("service.stalled", "one")]


def test_a_successor_and_a_standby_stand_in_for_a_dead_one(ward: Ward) -> None:
    ward.beat("trainer", instance="host:1", track="demo")
    ward.pass_by(600)
    ward.beat("trainer", "standby", instance="host:2", track="demo")
    assert ward.look_for(21) == []


def test_after_a_pause_in_which_nobody_looked_nobody_is_slandered(ward: Ward) -> None:
    """The database was away or the machine slept: the first who looks finds everybody silent."""
    ward.beat("processor")
    ward.beat("trainer", track="demo")
    ward.pass_by(60)
    ward.look()
    ward.pass_by(3600, looked=False)
    assert ward.look() == []
    ward.beat("processor")
    ward.beat("trainer", track="demo")
    assert ward.look_for(21) == []


def test_who_leaves_in_good_order_is_not_missed(ward: Ward) -> None:
    ward.beat("trainer", track="demo")
    with ward.database.transaction() as tx:
        tx.execute("end_beats", service="trainer", instance="host:1")
    ward.pass_by(600)
    assert ward.look_for(21) == []


def test_who_is_ill_is_ill_for_the_health_page_too(ward: Ward) -> None:
    """Of one service alone: every state and age around the limit, judged by services/metrics/health.py."""
    ages = (0.0, HEARTBEAT_STALE - 3, HEARTBEAT_STALE + 3, 400.0)
    cases = list(itertools.product(Service, ServiceState, ages))
    for number, (service, state, age) in enumerate(cases):
        detail = as_json({"track": str(number)})
        ward.run(
            "INSERT INTO heartbeats (service, instance, state, detail, beat_at)"
            " VALUES (%s, %s, %s, %s, now() - make_interval(secs => %s))",
            service, str(number), state, detail, age,
        )  # fmt: skip
    ward.look()
    with ward.database.transaction() as tx:
        tx._cursor.execute("SELECT track::integer FROM stalls ORDER BY 1")
        suspected = {row[0] for row in tx._cursor.fetchall()}
    expected = set()
    for number, (service, state, age) in enumerate(cases):
        alone = health.VitalSigns(migrated=True, beats=[health.Beat(service, "x", state, {}, age)])
        judged = health.judge(alone, error=None, uptime_seconds=1e6)
        if judged.parts[service].status is health.Status.ILL:
            expected.add(number)
    assert suspected == expected


def test_several_who_look_at_once_tell_once(ward: Ward) -> None:
    """The second finds the first at it and leaves it to it."""
    ward.beat("processor")
    ward.pass_by(60)
    ward.look()
    ward.pass_by(21)
    with ward.database.transaction() as first:
        first.execute("notice_stalls")
        assert ward.look() == []
    assert len(ward.look()) == 1


@pytest.mark.parametrize("role", ["ratchet_processor", "ratchet_trainer", "ratchet_webhooks"])
def test_processor_and_trainer_watch_over_one_another(
    ward: Ward, role_target: Callable[[str], Target], role: str
) -> None:
    """Each may look, and thereby tell; of the tables behind it the processor sees nothing."""
    ward.beat("processor")
    ward.pass_by(60)
    ward.look()
    ward.pass_by(21)
    pool = Database(role_target(role))
    with pool.transaction() as tx:
        tx.execute("notice_stalls")
    pool.close()
    assert [kind for kind, _, _ in ward.look()] == ["service.stalled"]
