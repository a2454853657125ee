"""Webhooks from the outbox to a real receiver that fails in every way it can: every event arrives."""

import json
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from services.core.db import Database, as_json
from services.core.settings import Settings, from_environment
from services.core.target import Target
from services.trainer.webhooks import outbox, schedule, sender, transport
from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.outbox import Outbox
from services.trainer.webhooks.sender import Sender
from services.trainer.webhooks.transport import Answer
from tests.integration.trainer.test_round import rows, wait_for
from tests.receiver import DRIP, DROP, HANG, SECRET, Receiver, free_port

FORGOTTEN = ("source.forgotten",)


def settings_for(target: Target, *urls: str, **more: str) -> Settings:
    password = target.password.get_secret_value()
    return from_environment(
        {
            "DATABASE_URL": f"postgresql://{target.user}:{password}@{target.host}:{target.port}/{target.dbname}",
            "WEBHOOK_URLS": ",".join(urls),
            "WEBHOOK_SECRET": SECRET,
            **more,
        }
    )


def announce(database: Database, *targets: str) -> None:
    for each in targets:
        with database.transaction() as tx:
            tx._cursor.execute(
                "SELECT record_event('source.forgotten', NULL, %s)", (as_json({"target": each}),)
            )


def kept(database: Database, *receivers: Receiver) -> list[Endpoint]:
    """Endpoints that events are put down for."""
    endpoints = [Endpoint.of(receiver.url) for receiver in receivers]
    Outbox(database).keep(endpoints, FORGOTTEN)
    return endpoints


def targets(receiver: Receiver) -> list[str]:
    return [document["data"]["target"] for document in receiver.taken]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours become hundredths of seconds."""
    monkeypatch.setattr(schedule, "WAITS", (0.02,) * 9)
    monkeypatch.setattr(schedule, "PAUSE", 0.01)
    monkeypatch.setattr(sender, "POLL", 0.02)
    monkeypatch.setattr(sender, "AFTER_TROUBLE", 0.05)
    monkeypatch.setattr(outbox, "LEASE", 30.0)
    monkeypatch.setattr(transport, "READ_TIMEOUT", 2.0)  # what one that is well needs on busy cores
    monkeypatch.setattr(transport, "DEADLINE", 3.0)


@pytest.fixture
def senders(target: Target) -> Iterator[Callable[..., Sender]]:
    """Starts senders, as many as asked for; stopped at the end."""
    started: list[Sender] = []

    def start(*urls: str, **more: str) -> Sender:
        started.append(Sender(settings_for(target, *urls, **more)))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.stop()


# what goes out


def test_every_event_reaches_a_receiver_that_fails_in_every_way(
    database: Database, senders: Callable[..., Sender], quick: None
) -> None:
    """Errors, a redirect, silence, a trickle, a hang-up: each event arrives, signed, under one id."""
    trouble: deque[Any] = deque([500, HANG, 429, DROP, (302, {"location": "/elsewhere"}), DRIP, 503, DROP])
    names = [f"source-{number}" for number in range(5)]
    with Receiver(trouble).running() as receiver:
        kept(database, receiver)
        announce(database, *names)
        senders(receiver.url)
        receiver.wait(lambda it: len(it.taken) >= len(names))
    assert sorted(targets(receiver)) == names
    assert len(receiver.asked) == len(names) + 8
    ids = {headers["webhook-id"] for headers in receiver.asked}
    assert len(ids) == len(names)


def test_a_receiver_that_was_away_and_comes_back_gets_what_it_missed(
    database: Database, senders: Callable[..., Sender], quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused connections first, then a receiver, which ends and starts again."""
    monkeypatch.setattr(schedule, "WAITS", (0.05,) * 10_000)
    receiver = Receiver(port=free_port())
    kept(database, receiver)
    announce(database, "one", "two")
    senders(receiver.url)
    wait_for(lambda: rows(database, "SELECT FROM deliveries WHERE error = 'Connection refused'"))
    with receiver.running():
        receiver.wait(lambda it: len(it.taken) >= 2)
    announce(database, "three")
    with receiver.running():
        receiver.wait(lambda it: "three" in targets(it))
    assert set(targets(receiver)) == {"one", "two", "three"}


def test_each_endpoint_gets_its_own(database: Database, senders: Callable[..., Sender], quick: None) -> None:
    """One that hangs holds up nobody else's."""
    names = [f"source-{number}" for number in range(4)]
    with Receiver(deque([HANG] * 50)).running() as slow, Receiver().running() as well:
        kept(database, slow, well)
        announce(database, *names)
        senders(slow.url, well.url)
        well.wait(lambda it: len(it.taken) == len(names))
        assert slow.taken == []


def test_the_filter_decides_what_is_sent(
    database: Database, senders: Callable[..., Sender], quick: None
) -> None:
    with Receiver().running() as receiver:
        senders(receiver.url, WEBHOOK_EVENTS="promotion,stall")
        wait_for(lambda: rows(database, "SELECT FROM webhook_endpoints"))
        announce(database, "not wanted")
        with database.transaction() as tx:
            tx._cursor.execute("SELECT record_event('service.stalled', 'demo', '{\"service\": \"trainer\"}')")
        receiver.wait(lambda it: it.taken)
    assert [document["type"] for document in receiver.taken] == ["service.stalled"]


def test_a_sender_with_a_login_of_its_own_may_do_all_it_has_to(
    database: Database, role_target: Callable[[str], Target], quick: None
) -> None:
    """It announces endpoints, sends, tries again, notes it down, and gives up what is gone."""
    with Receiver(deque([500, 200, 410])).running() as receiver:
        sender = Sender(settings_for(role_target("ratchet_webhooks"), receiver.url))
        sender.start()
        try:
            wait_for(lambda: rows(database, "SELECT FROM webhook_endpoints"))
            announce(database, "one")
            receiver.wait(lambda it: it.taken)
            announce(database, "two")
            wait_for(
                lambda: rows(database, "SELECT FROM webhook_endpoints WHERE disabled_at IS NOT NULL"), 20
            )
        finally:
            sender.stop()
    first, second = rows(database, "SELECT state, attempts FROM deliveries ORDER BY event_id")
    assert (first.state, first.attempts, second.state) == ("delivered", 2, "given_up")


def test_what_happened_before_an_endpoint_was_known_is_not_sent(database: Database) -> None:
    """Nor what happens once nobody has had it in the settings for a week."""
    announce(database, "before")
    (endpoint,) = kept(database, Receiver(port=1))
    announce(database, "wanted")
    with database.transaction() as tx:
        tx._cursor.execute("UPDATE webhook_endpoints SET seen_at = now() - interval '8 days'")
    announce(database, "after")
    claimed = Outbox(database).claim(endpoint)
    assert claimed is not None
    assert claimed.event.payload == {"target": "wanted"}
    assert Outbox(database).claim(endpoint) is None


def test_a_chat_gets_a_line(database: Database, senders: Callable[..., Sender], quick: None) -> None:
    with Receiver().running() as receiver:
        kept(database, receiver)
        announce(database, "repo/a.py")
        senders(receiver.url, WEBHOOK_FORMAT="slack")
        receiver.wait(lambda it: it.taken)
    assert receiver.taken == [{"text": "repo/a.py was forgotten by ?"}]


# who has had enough


def test_one_that_is_gone_is_disabled_and_a_test_that_it_takes_enables_it(
    database: Database, senders: Callable[..., Sender], quick: None
) -> None:
    with Receiver(deque([410])).running() as receiver:
        (endpoint,) = kept(database, receiver)
        announce(database, "one", "two")
        senders(receiver.url)
        wait_for(lambda: not rows(database, "SELECT FROM deliveries WHERE state = 'due'"))
        announce(database, "three")
        (state,) = Outbox(database).states([endpoint])
        assert (state.disabled_because, state.given_up, state.delivered) == ("it answered 410 Gone", 2, 0)
        assert len(receiver.asked) == 1
        assert Outbox(database).enable(endpoint)
        announce(database, "four")
        receiver.wait(lambda it: it.taken)
    assert targets(receiver) == ["four"]


def test_after_ten_attempts_it_is_given_up(
    database: Database, senders: Callable[..., Sender], quick: None
) -> None:
    with Receiver(deque([500] * 10)).running() as receiver:
        kept(database, receiver)
        announce(database, "lost")
        senders(receiver.url)
        wait_for(lambda: rows(database, "SELECT FROM deliveries WHERE state = 'given_up'"))
        (row,) = rows(database, "SELECT attempts, status, error FROM deliveries")
        assert tuple(row) == (10, 500, "HTTP 500")
        announce(database, "later")
        receiver.wait(lambda it: targets(it) == ["later"])


# several senders, and senders that die


def test_several_senders_never_send_the_same_at_once(
    database: Database, senders: Callable[..., Sender], quick: None
) -> None:
    names = [f"source-{number:02}" for number in range(40)]
    with Receiver().running() as receiver:
        kept(database, receiver)
        announce(database, *names)
        for _ in range(3):
            senders(receiver.url)
        receiver.wait(lambda it: len(it.taken) >= len(names))
        wait_for(lambda: not rows(database, "SELECT FROM deliveries WHERE state = 'due'"))
    assert sorted(targets(receiver)) == names  # each once


def test_a_claim_is_the_claimants_alone_until_its_lease_is_over(database: Database) -> None:
    (endpoint,) = kept(database, Receiver(port=1))
    announce(database, *(str(number) for number in range(20)))
    box = Outbox(database)
    with ThreadPoolExecutor(8) as threads:
        claims = [claim for claim in threads.map(lambda _: box.claim(endpoint), range(30)) if claim]
    assert sorted(int(claim.event.payload["target"]) for claim in claims) == list(range(20))
    with database.transaction() as tx:
        tx._cursor.execute(
            "UPDATE deliveries SET due_at = now() WHERE event_id = %s", (claims[0].event.event_id,)
        )
    again = box.claim(endpoint)
    assert again is not None
    assert (again.event, again.attempts) == (claims[0].event, 2)


def test_one_that_comes_late_spoils_nothing(database: Database) -> None:
    """A failure of a claim that another has taken over is not recorded; a success is."""
    (endpoint,) = kept(database, Receiver(port=1))
    announce(database, "x")
    box = Outbox(database)
    first = box.claim(endpoint)
    with database.transaction() as tx:
        tx._cursor.execute("UPDATE deliveries SET due_at = now()")
    second = box.claim(endpoint)
    assert first
    assert second
    box.record(endpoint, first, Answer(500, "HTTP 500", 0.1), None)
    assert [row.state for row in rows(database, "SELECT state FROM deliveries")] == ["due"]
    box.record(endpoint, first, Answer(200, None, 0.1), None)
    box.record(endpoint, second, Answer(500, "HTTP 500", 0.1), None)
    assert [row.state for row in rows(database, "SELECT state FROM deliveries")] == ["delivered"]


def test_a_daemon_killed_between_sending_and_recording_sends_again_under_the_same_id(
    database: Database, trainer: Any
) -> None:
    """As if by kill -9; the lease of the claim is let run out."""
    with Receiver().running() as receiver:
        kept(database, receiver)
        announce(database, "x")
        named = {"WEBHOOK_URLS": receiver.url, "WEBHOOK_SECRET": SECRET}
        daemon = trainer.start(**named, RATCHET_FAILPOINT="webhook.after_send")
        receiver.wait(lambda it: it.taken)
        assert daemon.wait(60) == -signal.SIGKILL
        assert [row.state for row in rows(database, "SELECT state FROM deliveries")] == ["due"]
        with database.transaction() as tx:
            tx._cursor.execute("UPDATE deliveries SET due_at = now()")
        trainer.start(**named)
        receiver.wait(lambda it: len(it.taken) >= 2)
        wait_for(lambda: rows(database, "SELECT FROM deliveries WHERE state = 'delivered'"))
    assert targets(receiver) == ["x", "x"]
    assert len({headers["webhook-id"] for headers in receiver.asked}) == 1


# the daemon comes first


def test_a_receiver_that_hangs_holds_up_neither_the_daemon_nor_its_stop(
    database: Database, trainer: Any
) -> None:
    """It goes on beating while a message hangs, and leaves at SIGTERM in good order."""
    with Receiver(deque([HANG] * 9)).running() as receiver:
        kept(database, receiver)
        announce(database, "x")
        daemon = trainer.start(WEBHOOK_URLS=receiver.url, WEBHOOK_SECRET=SECRET)
        receiver.wait(lambda it: it.asked)
        wait_for(lambda: rows(database, "SELECT FROM heartbeats WHERE beat_at > started_at"))
        daemon.terminate()
        assert daemon.wait(60) == 0


def test_nothing_that_fails_ends_a_thread_or_gets_out(
    database: Database, senders: Callable[..., Sender], quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of our own, tables that are not there, a database that is away: afterwards it goes on."""
    faults = deque([RuntimeError("a fault"), KeyError("another")])

    def flawed(*arguments: Any) -> Any:
        if faults:
            raise faults.popleft()
        return real(*arguments)

    real = sender.message
    monkeypatch.setattr(sender, "message", flawed)
    monkeypatch.setattr(outbox, "LEASE", 0.05)
    with Receiver().running() as receiver:
        kept(database, receiver)
        with database.transaction() as tx:
            tx._cursor.execute("ALTER TABLE deliveries RENAME TO elsewhere")
        started = senders(receiver.url)
        with database.transaction() as tx:
            tx._cursor.execute("ALTER TABLE elsewhere RENAME TO deliveries")
        announce(database, "x")
        receiver.wait(lambda it: it.taken)
        assert all(thread.is_alive() for thread in started._threads)
        with database.transaction() as tx:
            tx._cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = 'ratchet webhooks' AND datname = current_database()"
            )
        announce(database, "y")
        receiver.wait(lambda it: "y" in targets(it))


def test_the_sender_watches_over_the_heartbeats(
    database: Database, senders: Callable[..., Sender], quick: None
) -> None:
    """Also without any endpoint: a daemon whose own loop hangs is told of by its own thread."""
    with database.transaction() as tx:
        tx._cursor.execute(
            "INSERT INTO heartbeats (service, instance, state, beat_at)"
            " VALUES ('processor', 'x', 'idle', now() - interval '50 s')"
        )
        tx._cursor.execute(
            "INSERT INTO stalls (service, track, suspected_at)"
            " VALUES ('processor', '', now() - interval '21 s')"
        )
    senders()
    wait_for(lambda: rows(database, "SELECT FROM events WHERE kind = 'service.stalled'"))


def test_no_secret_is_logged_stored_or_told(
    database: Database, senders: Callable[..., Sender], quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Of an address with a password, a token in its query and another in its path; the log is bare here."""
    secrets = ("passw0rd", "t0ken-in-query", "T0K3N-in-path", SECRET)
    caplog.set_level("DEBUG")
    with Receiver(deque([500, DROP, HANG, 410])).running() as receiver:
        url = receiver.url.replace("http://", "http://user:passw0rd@").replace("/hook", "/T0K3N-in-path")
        Outbox(database).keep([Endpoint.of(url)], FORGOTTEN)
        announce(database, "https://user:passw0rd@h/?key=t0ken-in-query", "signed with " + SECRET)
        senders(f"{url}?token=t0ken-in-query")
        wait_for(lambda: not rows(database, "SELECT FROM deliveries WHERE state = 'due'"))
    stored = [
        json.dumps([tuple(map(str, row)) for row in rows(database, f"SELECT * FROM {table}")])
        for table in ("events", "deliveries", "webhook_endpoints", "stalls")
    ]
    sent = [body.decode() for body in receiver.bodies]
    for secret in secrets:
        assert secret not in caplog.text
        assert [text for text in stored + sent if secret in text] == []
    assert "HTTP 500" in caplog.text
