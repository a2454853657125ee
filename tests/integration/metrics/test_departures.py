"""Who leaves in good order is not missed, who dies is; whatever others do meanwhile."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from services.core.db import Database
from services.core.target import Target
from services.metrics.cached import Reading
from services.metrics.collector import vital_signs
from services.metrics.exposition import expose
from services.metrics.health import Part, Status, judge
from tests.integration.metrics.rows import beat, fill

HOUR, DAY = 3600.0, 86_400.0  # seconds


@pytest.fixture
def team(database: Database) -> "Team":
    return Team(database)


class Team:
    """Trainers that beat and leave, and what /health says of them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def beat(self, instance: str, track: str, age: float = 0.0, service: str = "trainer") -> None:
        detail = {"track": track} if track else {}
        beat(self.database, service, "idle", detail, instance=instance, age_seconds=age)
        self.run("UPDATE heartbeats SET started_at = beat_at - interval '1 s' WHERE instance = %s", instance)

    def leave(self, instance: str, service: str = "trainer") -> None:
        with self.database.transaction() as transaction:
            transaction.execute("end_beats", service=service, instance=instance)

    def run(self, statement: str, *values: Any) -> None:
        with self.database.transaction() as transaction:
            transaction._cursor.execute(statement, values)

    def part(self, service: str = "trainer") -> Part:
        found = judge(vital_signs(self.database), error=None, uptime_seconds=1000.0)
        return found.parts[service]

    def instances(self) -> set[str]:
        return {each.instance for each in vital_signs(self.database).beats}


def test_the_only_trainer_that_stops_is_not_missed(team: Team) -> None:
    """Its heartbeat goes, and that it left stays."""
    team.beat("a:1", "demo")
    team.leave("a:1")
    assert (team.part().status, team.part().state) == (Status.OK, "stopped")
    assert team.instances() == set()


def test_a_trainer_that_comes_back_and_dies_is_missed(team: Team) -> None:
    team.beat("a:1", "demo")
    team.leave("a:1")
    team.beat("a:2", "demo", age=60)
    assert team.part().status is Status.ILL


def test_who_leaves_does_not_take_along_who_died_on_another_track(team: Team) -> None:
    """For a week, however often others come and go."""
    team.beat("a:1", "dead", age=2 * HOUR)
    for number in range(3):
        team.beat(f"b:{number}", "other")
        team.leave(f"b:{number}")
    assert team.part().reason.startswith("dead: the trainer of dead has been silent for 7200 s")
    team.run("UPDATE heartbeats SET beat_at = now() - interval '8 days'")
    team.beat("b:9", "other")
    team.leave("b:9")
    assert team.part().status is Status.OK


def test_who_replaced_a_dead_one_speaks_for_it_to_the_end(team: Team) -> None:
    """The successor stops in good order: nobody is missed, though its predecessor never said a word."""
    team.beat("a:1", "demo", age=20)
    team.beat("a:2", "demo")
    assert team.part().status is Status.OK
    team.leave("a:2")
    assert team.part().state == "stopped"


def test_the_leader_beside_a_standby_that_leaves_is_still_looked_after(team: Team) -> None:
    team.beat("a:1", "demo", age=2)
    team.beat("a:2", "demo", age=1)
    team.run("UPDATE heartbeats SET started_at = now() - interval '1 day'")
    team.leave("a:2")
    assert team.instances() == {"a:1"}


def test_those_replaced_long_ago_are_forgotten(team: Team) -> None:
    """An hour after: killed processors would pile up."""
    team.beat("p:1", "", age=2 * HOUR, service="processor")
    team.beat("p:2", "", age=10.0, service="processor")
    team.beat("t:1", "demo")
    team.leave("t:1")
    assert team.instances() == {"p:2"}


def test_processors_scaled_down_to_none_are_not_missed(team: Team) -> None:
    for instance in ("p:1", "p:2"):
        team.beat(instance, "", service="processor")
    team.leave("p:1", "processor")
    assert team.part("processor").state == "idle"
    team.leave("p:2", "processor")
    assert team.part("processor").state == "stopped"


def test_a_paused_track_is_not_ill(team: Team) -> None:
    """Its trainer is dead, and nobody waits for it; when it is resumed somebody does."""
    fill(team.database)
    team.run("UPDATE heartbeats SET beat_at = now() - interval '2 minutes' WHERE service = 'trainer'")
    team.run("UPDATE tracks SET paused_at = now(), paused_by = 'mira'")
    assert team.part().reason.startswith("paused; the trainer of demo has been silent for 120 s")
    assert team.part().status is Status.OK
    team.run("UPDATE tracks SET paused_at = NULL, paused_by = NULL")
    assert team.part().status is Status.ILL


def test_prometheus_is_told_of_each_track(team: Team) -> None:
    """Who died is not hidden by who lives, and who has stopped has no age."""
    team.beat("a:1", "dead", age=60)
    team.beat("b:1", "living")
    team.beat("c:1", "stopped")
    team.leave("c:1")
    found = judge(vital_signs(team.database), error=None, uptime_seconds=1000.0)
    lines = expose(Reading(None, None, "not looked"), found, None)[0].decode().splitlines()
    ups = {line for line in lines if line.startswith("ratchet_trainer_up{")}
    assert ups == {
        f'ratchet_trainer_up{{track="{track}"}} {up}'
        for track, up in (("dead", 0.0), ("living", 1.0), ("stopped", 1.0))
    }
    ages = [line for line in lines if line.startswith('ratchet_heartbeat_age_seconds{service="trainer"')]
    assert [re.search(r'track="(\w+)"', line)[1] for line in ages] == ["dead", "living"]


@pytest.mark.parametrize("service", ["processor", "trainer"])
def test_a_service_may_say_that_it_leaves(
    team: Team, role_target: Callable[[str], Target], service: str
) -> None:
    """With the grants that it has."""
    team.beat("a:1", "demo" if service == "trainer" else "", service=service)
    restricted = Database(role_target(f"ratchet_{service}"))
    Team(restricted).leave("a:1", service)
    restricted.close()
    assert team.part(service).state == "stopped"
