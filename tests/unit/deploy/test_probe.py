"""The healthchecks of the containers fail when they should."""

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy import probe
from services.core import db
from services.core.db import Database
from services.core.models import HEARTBEAT_STALE, ServiceState


def beat(state: str = "idle", age_s: float = 1.0, message: str | None = None) -> dict[str, object]:
    return {"state": state, "age_s": age_s, "message": message}


@pytest.fixture
def served() -> Iterator[Callable[[int], str]]:
    """Starts a server that answers everything with one status; its port."""
    servers = []

    def serve(status: int) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        servers.append(server)
        return str(server.server_port)

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_metrics_is_healthy_on_200(served: Callable[[int], str]) -> None:
    """No complaint."""
    assert probe.http_complaint(served(200)) is None


@pytest.mark.parametrize("status", [204, 404, 500, 503])
def test_metrics_is_ill_on_any_other_status(status: int, served: Callable[[int], str]) -> None:
    """The complaint names the status: a probe that only connects would pass on a 503."""
    assert f"answers {status}" in str(probe.http_complaint(served(status)))


def test_metrics_is_ill_when_nothing_listens() -> None:
    """Port 1 is closed."""
    assert "does not answer" in str(probe.http_complaint("1"))


@pytest.mark.parametrize("state", list(ServiceState))
def test_a_fresh_beat_is_healthy_unless_its_state_is_ill(state: ServiceState) -> None:
    """A model that loads for long is `starting`, and healthy."""
    assert (probe.judged_beat("trainer", beat(state)) is not None) == state.is_ill


def test_a_stale_beat_is_ill() -> None:
    """Whatever state it tells of."""
    assert "silent" in str(probe.judged_beat("trainer", beat(age_s=HEARTBEAT_STALE + 1)))


def test_an_ill_state_says_why() -> None:
    """The service's own message is in the complaint."""
    assert "no model" in str(probe.judged_beat("trainer", beat("error", message="no model")))


def test_no_beat_is_ill() -> None:
    """A service that never came up."""
    assert "has not sent" in str(probe.judged_beat("processor", None))


def test_the_beat_of_this_host_is_found(database: Database) -> None:
    """Not that of another host, and the newest of this one's processes."""
    detail = db.as_json({"message": None})
    for instance, state in (("here:7", "idle"), ("here:9", "scanning"), ("here-2:7", "error")):
        with database.transaction() as transaction:
            transaction.execute("beat", service="processor", instance=instance, state=state, detail=detail)
    with database.transaction() as transaction:
        found = transaction.one("last_beat_of_host", service="processor", host="here")
    assert (found.state, found.message) == ("scanning", None)
    assert 0 <= found.age_s < 60


@pytest.mark.parametrize(
    ("greeting", "complaint"),
    [
        (b'{"sandbox": 1, "isolation": "bubblewrap", "workers": 2}\n', None),
        (b'{"sandbox": 1, "isolation": "none", "workers": 2}\n', "has isolation 'none'"),
        (b"", "does not greet"),
    ],
)
def test_a_sandbox_is_healthy_when_it_greets_and_isolates(
    greeting: bytes, complaint: str | None, tmp_path: Path
) -> None:
    """One that runs programs without isolation is ill, and so is one that hangs up."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def greet() -> None:
            with listener.accept()[0] as connection:
                connection.sendall(greeting)

        thread = threading.Thread(target=greet)
        thread.start()
        said = probe.sandbox_complaint(str(tmp_path / "s"))
        thread.join()
    assert said is None if complaint is None else complaint in str(said)


def test_a_sandbox_that_does_not_listen_is_ill(tmp_path: Path) -> None:
    """The complaint names the socket."""
    assert str(tmp_path / "s") in str(probe.sandbox_complaint(str(tmp_path / "s")))


def test_an_unknown_service_is_a_complaint(capsys: pytest.CaptureFixture[str]) -> None:
    """The message lists what can be asked for."""
    assert probe.main(["trainr"]) == 1
    assert "metrics, processor, sandbox, serving or trainer" in capsys.readouterr().err
