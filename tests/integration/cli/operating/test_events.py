"""`ratchet events` and `ratchet webhook` as a person runs them."""

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.cli import environment
from services.cli.environment import Environment
from services.cli.operating import events, webhook
from services.core.db import Database, as_json
from services.core.errors import ConfigurationError
from services.core.settings import PROJECT
from services.core.target import Target
from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.outbox import Outbox
from tests.integration.cli.conftest import variables
from tests.receiver import SECRET, Receiver

ALL: dict[str, Any] = {
    "follow": False, "kinds": (), "track": None, "since": None, "most": 20, "as_json": False,
}  # fmt: skip


def announce(database: Database, target: str, track: str | None = None) -> None:
    with database.transaction() as tx:
        tx._cursor.execute(
            "SELECT record_event('source.forgotten', %s, %s)",
            (track, as_json({"target": target, "actor": "me"})),
        )


@pytest.fixture
def named(target: Target, tmp_path: Path) -> dict[str, str]:
    return variables(target, tmp_path / "ingest", tmp_path / "home")


@pytest.fixture
def here(named: dict[str, str], tmp_path: Path) -> Environment:
    return environment.read(named, project=tmp_path)


@pytest.fixture
def at(named: dict[str, str], tmp_path: Path) -> Callable[..., Environment]:
    """`at(url)`: the same with webhooks."""

    def environment_of(*urls: str) -> Environment:
        more = {"WEBHOOK_URLS": ",".join(urls), "WEBHOOK_SECRET": SECRET}
        return environment.read({**named, **more}, project=tmp_path)

    return environment_of


def test_the_last_events_are_listed_oldest_first(
    database: Database, here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line each, with nothing in it that drives a terminal."""
    for name in ("one", "two", "\x1b[2Jthree"):
        announce(database, name, "demo")
    events.run(here, **{**ALL, "most": 2})
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("source.forgotten     demo: two was forgotten by me")
    assert second.endswith(r"demo: \x1b[2Jthree was forgotten by me")


def test_events_can_be_chosen_by_kind_track_and_time(
    database: Database, here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    announce(database, "one", "demo")
    announce(database, "two", "other")
    for chosen, listed in (
        ({"track": "other"}, ["two"]),
        ({"kinds": ["forgetting"]}, ["one", "two"]),
        ({"kinds": ["stall"]}, []),
        ({"since": "1h"}, ["one", "two"]),
        ({"since": "1h", "track": "demo"}, ["one"]),
        ({"since": "2199-01-01"}, []),
    ):
        events.run(here, **{**ALL, **chosen, "as_json": True})
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [event["data"]["target"] for event in told] == listed, chosen


EVENTS = (sys.executable, "-m", "services.cli.main", "events")


def test_following_goes_on_as_more_happens(database: Database, named: dict[str, str]) -> None:
    """As JSON, until Ctrl-C, which is no error; a shell has its background jobs ignore it."""
    announce(database, "before", "demo")
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *EVENTS, "-f", "--json", "--track", "demo"],
        cwd=PROJECT, env={**os.environ, **named}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for name in ("before", "after", "after that"):
            if name != "before":
                announce(database, f"not of {name}", "other")
                announce(database, name, "demo")
            assert json.loads(process.stdout.readline())["data"]["target"] == name
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_test_prints_the_answer_without_any_secret(
    at: Callable[..., Environment], capsys: pytest.CaptureFixture[str]
) -> None:
    """The receiver here quotes the path of its address, which is a password."""
    with Receiver().running() as receiver:
        url = receiver.url.replace("/hook", "/services/T0/s3cret-path") + "?token=s3cret-query"
        assert webhook.test(at(url), as_json=False)
    printed = capsys.readouterr().out
    assert f"{Endpoint.of(url).name}: taken, HTTP 200, after " in printed
    assert "thanks for /***" in printed
    assert "s3cret" not in printed
    (document,) = receiver.taken
    assert (document["type"], document["data"]["id"]) == ("webhook.test", 0)


def test_a_test_says_what_went_wrong(
    at: Callable[..., Environment], capsys: pytest.CaptureFixture[str]
) -> None:
    """And goes on to the next address."""
    with Receiver(deque([500])).running() as bad, Receiver().running() as good:
        assert not webhook.test(at(bad.url, good.url), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert [(answer["taken"], answer["status"], answer["error"]) for answer in told] == [
        (False, 500, "HTTP 500"), (True, 200, None),
    ]  # fmt: skip


def test_a_test_that_is_taken_enables_what_was_disabled(
    database: Database, at: Callable[..., Environment], capsys: pytest.CaptureFixture[str]
) -> None:
    with Receiver().running() as receiver:
        Outbox(database).keep([Endpoint.of(receiver.url)], ["source.forgotten"])
        with database.transaction() as tx:
            tx.execute("disable_endpoint", name=Endpoint.of(receiver.url).name, reason="it answered 410 Gone")
        webhook.show(at(receiver.url), as_json=False)
        assert "disabled, it answered 410 Gone" in capsys.readouterr().out
        assert webhook.test(at(receiver.url), as_json=False)
        assert "it was disabled, and gets events again" in capsys.readouterr().out
        webhook.show(at(receiver.url), as_json=False)
        assert capsys.readouterr().out.strip().endswith("0 delivered, 0 due, 0 given up")


def test_a_test_needs_no_database(
    unreachable: Environment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Receiver().running() as receiver:
        more = {"WEBHOOK_URLS": receiver.url, "WEBHOOK_SECRET": SECRET}
        assert webhook.test(
            environment.read({**unreachable.variables, **more}, project=tmp_path), as_json=True
        )


def test_without_an_address_there_is_nothing_to_test(here: Environment) -> None:
    with pytest.raises(ConfigurationError, match="WEBHOOK_URLS names no address"):
        webhook.test(here, as_json=False)


def test_a_sender_of_its_own_tells_that_the_trainer_has_died(
    database: Database, named: dict[str, str]
) -> None:
    """No trainer runs; the sender looks at the heartbeats, sends, and leaves at SIGTERM."""
    with Receiver().running() as receiver:
        sender = subprocess.Popen(
            [sys.executable, "-m", "services.cli.main", "webhook", "run", "--json"], cwd=PROJECT,
            env={**os.environ, **named, "WEBHOOK_URLS": receiver.url, "WEBHOOK_SECRET": SECRET},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert sender.stdout is not None
            assert json.loads(sender.stdout.readline()) == {"endpoints": [Endpoint.of(receiver.url).name]}
            Outbox(database).keep([Endpoint.of(receiver.url)], ["service.stalled"])
            with database.transaction() as tx:
                tx._cursor.execute(
                    "INSERT INTO heartbeats (service, instance, state, detail, beat_at)"
                    " VALUES ('trainer', 'x', 'training', '{\"track\": \"demo\"}', now() - interval '50 s')"
                )
                tx._cursor.execute(
                    "INSERT INTO stalls (service, track, suspected_at)"
                    " VALUES ('trainer', 'demo', now() - interval '21 s')"
                )
            receiver.wait(lambda it: it.taken)
            sender.terminate()
            assert sender.wait(60) == 0
        finally:
            sender.kill()
            sender.communicate()
    (document,) = receiver.taken
    assert (document["type"], document["data"]["track"]) == ("service.stalled", "demo")
    assert document["data"]["service"] == "trainer"
