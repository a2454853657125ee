"""/api/v1/stream: what is told, replayed, and given back when clients vanish."""

import http.client
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from services.core.db import Database, as_json
from services.core.models import Service, ServiceState
from services.core.target import Target
from services.metrics.app import create_app
from services.metrics.stream.hub import CAP
from tests.integration.metrics.rows import beat, fill
from tests.integration.metrics.server import Running, running, wait_until
from tests.integration.metrics.test_app import settings_for

PATH = "/api/v1/stream"


@dataclass(frozen=True)
class Message:
    event: str
    data: Any
    id: int | None


class Client:
    """One stream, read as a browser does."""

    def __init__(self, url: str, last_id: int | None = None) -> None:
        place = urlsplit(url)
        self.connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        headers = {} if last_id is None else {"Last-Event-ID": str(last_id)}
        self.connection.request("GET", PATH, headers=headers)
        self.answer = self.connection.getresponse()
        if self.answer.status == 200:
            assert self.answer.readline().startswith(b"retry: ")

    def next(self, *wanted: str) -> Message:
        """The next message of these kinds; comments and others are passed over."""
        fields: dict[str, str] = {}
        while line := self.answer.readline().decode():
            if line == "\n" and "event" in fields:
                if fields["event"] in wanted:
                    number = fields.get("id")
                    data = json.loads(fields["data"])
                    return Message(fields["event"], data, None if number is None else int(number))
                fields = {}
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        raise AssertionError("the stream ended")

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


@contextmanager
def streaming(url: str, last_id: int | None = None) -> Iterator[Client]:
    client = Client(url, last_id)
    try:
        yield client
    finally:
        client.close()


@pytest.fixture
def metrics(role_target: Callable[[str], Target], database: Database) -> Iterator[Running]:
    fill(database, contents=20)
    with running(role_target("ratchet_metrics")) as found:
        wait_until(lambda: found.get("/health/ready")[0] == 200)
        yield found


def record(database: Database, *kinds: str) -> list[int]:
    """Events that no row makes by itself; their ids."""
    with database.transaction() as tx:
        for kind in kinds:
            tx._cursor.execute("SELECT record_event(%s, 'demo', %s)", (kind, as_json({"why": "a test"})))
    with database.transaction() as tx:
        tx._cursor.execute("SELECT id FROM events ORDER BY id DESC LIMIT %s", (len(kinds),))
        return [row.id for row in tx._cursor.fetchall()][::-1]


def test_an_event_is_told_with_its_id(metrics: Running, database: Database) -> None:
    """As text/event-stream that no proxy keeps back."""
    with streaming(metrics.url) as client:
        wait_until(lambda: listeners(database) == 1)
        assert client.answer.headers["Content-Type"] == "text/event-stream"
        assert client.answer.headers["X-Accel-Buffering"] == "no"
        (number,) = record(database, "test.happened")
        message = client.next("test.happened")
        assert (message.id, message.data["id"], message.data["why"]) == (number, number, "a test")


def test_who_comes_back_gets_what_was_missed(metrics: Running, database: Database) -> None:
    """Everything after the id that it names, in order, however much it is; then what comes."""
    first, *rest = record(database, *["test.missed"] * 700)
    with streaming(metrics.url, first) as client:
        assert [client.next("test.missed").id for _ in rest] == rest
        wait_until(lambda: listeners(database) == 1)
        (number,) = record(database, "test.later")
        assert client.next("test.later").id == number


def test_what_changes_is_told_without_an_id(metrics: Running, database: Database) -> None:
    """The running round's figures when they change, and nothing of what did not."""
    with streaming(metrics.url) as client:
        wait_until(lambda: listeners(database) == 1)
        metrics.get("/metrics")
        detail = {"track": "demo", "round": 3, "step": 99, "total_steps": 240, "loss": 1.25}
        told = threading.Event()
        threading.Thread(target=lambda: (client.next("rounds"), told.set()), daemon=True).start()
        beat(database, Service.TRAINER, ServiceState.TRAINING, detail)
        assert told.wait(60)


def test_health_is_told_when_a_part_falls_ill(metrics: Running, database: Database) -> None:
    """A trainer in trouble turns the status."""
    with streaming(metrics.url) as client:
        wait_until(lambda: listeners(database) == 1)
        metrics.get("/health")
        beat(database, Service.TRAINER, ServiceState.ERROR, {"track": "demo", "message": "no memory"})
        message = client.next("health")
        while message.data["parts"]["trainer"]["status"] != "ill":
            message = client.next("health")
        assert (message.data["status"], message.id) == ("ill", None)


def test_sixty_four_may_listen_over_one_connection(metrics: Running, database: Database) -> None:
    """One more is turned away with 503 and when to come back; a place is free when somebody leaves."""
    with ExitStack() as stack:
        clients = [stack.enter_context(streaming(metrics.url)) for _ in range(CAP)]
        wait_until(lambda: listeners(database) == 1)
        with streaming(metrics.url) as refused:
            assert refused.answer.status == 503
            assert refused.answer.headers["Retry-After"]
        (number,) = record(database, "test.happened")
        assert {client.next("test.happened").id for client in clients} == {number}
        clients[0].close()
        with streaming(metrics.url) as late:
            wait_until(lambda: late.answer.status == 200 or _again(late, metrics.url))


def test_clients_that_vanish_leave_no_thread_behind(metrics: Running, database: Database) -> None:
    """After 64 have hung up without a word 64 others get in, and their threads are the same ones."""
    for _ in range(2):
        wait_until(lambda: all_get_in(metrics.url))
    assert sum(each.num_threads() for each in workers(metrics)) <= CAP + 16 + 8


def test_it_stops_in_good_order_with_open_streams(metrics: Running) -> None:
    """SIGTERM: the streams are ended, not cut off as by a worker that is killed; then it is gone."""
    with streaming(metrics.url) as client:
        metrics.process.send_signal(signal.SIGTERM)
        client.answer.read()  # raises IncompleteRead for one without its last chunk
        assert metrics.process.wait(60) == 0


def test_an_id_that_is_none_is_named(role_target: Callable[[str], Target]) -> None:
    """422 that says what was expected; HEAD takes no place."""
    app = create_app(settings_for(role_target("ratchet_metrics")))
    client = app.test_client()
    for said in ("x", "-1", "1.5", "9" * 30):
        answer = client.get(PATH, headers={"Last-Event-ID": said})
        assert (answer.status_code, "Last-Event-ID" in answer.json["message"]) == (422, True)
    assert client.head(PATH).headers["Content-Type"] == "text/event-stream"
    assert app.extensions["stream"].clients == 0
    for extension in ("observer", "reader"):
        app.extensions[extension].database.close()


def listeners(database: Database) -> int:
    """Connections that have said LISTEN and wait."""
    with database.transaction() as tx:
        tx._cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'ratchet stream'"
        )
        return int(tx._cursor.fetchone()[0])


def workers(metrics: Running) -> list[psutil.Process]:
    return psutil.Process(metrics.process.pid).children()


def all_get_in(url: str) -> bool:
    """Whether as many as there are places were let in; all have hung up afterwards."""
    with ExitStack() as stack:
        clients = [stack.enter_context(streaming(url)) for _ in range(CAP)]
        return all(client.answer.status == 200 for client in clients)


def _again(client: Client, url: str) -> bool:
    client.close()
    client.__init__(url)  # type: ignore[misc]
    return client.answer.status == 200
