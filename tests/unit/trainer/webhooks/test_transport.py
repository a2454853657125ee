"""One POST over a real socket, to servers that fail."""

import datetime
import ssl
import subprocess
import threading
import time
from collections import deque
from pathlib import Path

import pytest
from pydantic import SecretStr

from services.core.settings import Settings
from services.trainer.webhooks import transport
from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.message import Message, message
from services.trainer.webhooks.transport import Answer, post
from tests.receiver import DRIP, DROP, HANG, SECRET, Receiver, free_port
from tests.unit.trainer.webhooks.test_message import EVENT


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For receivers that are to be given up."""
    monkeypatch.setattr(transport, "READ_TIMEOUT", 1.0)
    monkeypatch.setattr(transport, "DEADLINE", 2.0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 127.0.0.1, signed by itself, with its key."""
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", made, "-out", f"{made}.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    made.write_text(made.read_text() + Path(f"{made}.crt").read_text())
    return made


def served_with(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def signed() -> Message:
    settings = Settings(webhook_secret=SecretStr(SECRET))
    return message(EVENT, settings, datetime.datetime.now(datetime.UTC))


def sent_to(*answers: object) -> tuple[Answer, Receiver]:
    with Receiver(deque(answers)).running() as receiver:
        return post(Endpoint.of(receiver.url), signed()), receiver


def test_what_is_answered_with_200_is_taken() -> None:
    answer, receiver = sent_to(200)
    assert (answer.is_taken, answer.status, answer.text) == (True, 200, "thanks for /hook")
    assert receiver.taken == [EVENT.as_json()]


@pytest.mark.parametrize("status", [204, 299])
def test_every_2xx_is_taken(status: int) -> None:
    assert sent_to(status)[0].is_taken


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_everything_else_is_not(status: int) -> None:
    assert sent_to(status)[0].error == f"HTTP {status}"


def test_a_redirect_is_a_failure_and_is_not_followed() -> None:
    with Receiver().running() as elsewhere:
        answer, receiver = sent_to((307, {"location": elsewhere.url}))
        assert answer.error == "HTTP 307"
        assert (len(receiver.asked), elsewhere.asked) == (1, [])


def test_410_is_told_apart() -> None:
    assert sent_to(410)[0].is_gone


def test_the_time_a_receiver_asks_for_is_heard() -> None:
    assert sent_to((429, {"retry-after": "17"}))[0].retry_after == 17
    assert sent_to((429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}))[0].retry_after is None
    assert sent_to((429, {"retry-after": "nan"}))[0].retry_after is None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("how", "error"),
    [
        (DROP, "RemoteDisconnected"),
        (HANG, "it did not answer in time"),
        (DRIP, "no complete answer within 2 s"),
    ],
)
def test_a_receiver_that_misbehaves_is_given_up_at_the_deadline(how: str, error: str) -> None:
    """Also one that sends a byte now and then, on which a read never times out."""
    answer, _ = sent_to(how)
    assert (answer.status, answer.error) == (None, error)


def test_no_thread_of_a_deadline_is_left() -> None:
    before = threading.active_count()
    sent_to(200)
    deadline = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("url", "error"),
    [
        (f"http://127.0.0.1:{free_port()}/s3cret?token=hidden", "Connection refused"),
        ("https://no-such-host.invalid/s3cret", "its host is not known"),
        ("https://" + "a" * 64 + ".example/s3cret", "UnicodeError"),
    ],
    ids=["nobody there", "no such host", "no host's name"],
)
def test_an_error_says_nothing_of_the_address(url: str, error: str) -> None:
    assert post(Endpoint.of(url), signed()).error == error


def test_user_and_password_of_the_address_are_sent_as_a_header() -> None:
    with Receiver().running() as receiver:
        url = receiver.url.replace("http://", "http://sam:s3cret@")
        assert post(Endpoint.of(url), signed()).is_taken
    assert receiver.asked[0]["authorization"] == "Basic c2FtOnMzY3JldA=="


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    """The message does not leave."""
    with Receiver(tls=served_with(certificate)).running() as receiver:
        answer = post(Endpoint.of(receiver.url), signed())
        assert answer.error == "its certificate is not trusted: self-signed certificate"
        assert receiver.asked == []


@pytest.mark.usefixtures("impatient")
def test_a_trusted_certificate_is_enough(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a trickling answer is cut below TLS too."""
    monkeypatch.setattr(transport, "_tls", lambda: ssl.create_default_context(cafile=certificate))
    with Receiver(deque([DRIP]), tls=served_with(certificate)).running() as receiver:
        assert post(Endpoint.of(receiver.url), signed()).error == "no complete answer within 2 s"
        assert post(Endpoint.of(receiver.url), signed()).is_taken
