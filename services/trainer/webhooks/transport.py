"""One POST to one endpoint, within a time that nothing the receiver does can stretch.

No redirect is followed, no proxy is used, certificates are verified, an answer is not read to its end.
"""

import contextlib
import functools
import http.client
import math
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.message import Message

CONNECT_TIMEOUT = 5.0  # seconds, of each address of the host, and of the TLS handshake
LATEST = (
    30.0  # seconds after which nothing is sent any more: a host may have many addresses and a slow resolver
)
READ_TIMEOUT = 15.0  # seconds of silence; Standard Webhooks recommends 15 to 30
DEADLINE = 20.0  # seconds from the connection to the end of the answer, for one that trickles in
MOST_OF_ANSWER = 4096  # bytes
GONE = 410


@dataclass(frozen=True)
class Answer:
    """What came of an attempt. Neither the error nor the status says anything of the address."""

    status: int | None  # None: there was no answer
    error: str | None  # None: it was taken
    seconds: float
    text: str = ""  # the beginning of the body, as the receiver wrote it
    retry_after: float | None = None  # seconds that it asks us to wait

    @property
    def is_taken(self) -> bool:
        return self.error is None

    @property
    def is_gone(self) -> bool:
        return self.status == GONE


def post(endpoint: Endpoint, message: Message) -> Answer:
    """Send it; never raises for anything that the network or the receiver does."""
    began = time.monotonic()
    connection = _connection(endpoint)
    cut = threading.Event()
    try:
        connection.connect()
        if time.monotonic() - began > LATEST:
            raise TimeoutError
        with _deadline(connection.sock, cut):
            connection.sock.settimeout(READ_TIMEOUT)
            headers = dict(message.headers)
            if endpoint.authorization is not None:
                headers["authorization"] = endpoint.authorization
            connection.request("POST", endpoint.target, message.body, headers)
            response = connection.getresponse()
            text = response.read(MOST_OF_ANSWER).decode(errors="replace")
    except (OSError, http.client.HTTPException, ValueError) as exc:  # ValueError: a name that cannot be
        return Answer(None, _late() if cut.is_set() else _words(exc), time.monotonic() - began)
    finally:
        connection.close()
    if cut.is_set():  # what came before the cut looks whole to the parser
        return Answer(None, _late(), time.monotonic() - began)
    taken = 200 <= response.status < 300
    return Answer(
        response.status,
        None if taken else f"HTTP {response.status}",
        time.monotonic() - began,
        text,
        _seconds(response.getheader("retry-after")),
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _connection(endpoint: Endpoint) -> http.client.HTTPConnection:
    if endpoint.scheme == "https":
        return http.client.HTTPSConnection(
            endpoint.host, endpoint.port, timeout=CONNECT_TIMEOUT, context=_tls()
        )
    return http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=CONNECT_TIMEOUT)


@contextlib.contextmanager
def _deadline(sock: socket.socket, cut: threading.Event) -> Iterator[None]:
    """End the connection from outside when the block takes too long: a read that trickles never times out."""

    def end() -> None:
        cut.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of the bare socket, also below TLS

    timer = threading.Timer(DEADLINE, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _late() -> str:
    return f"no complete answer within {DEADLINE:g} s"


def _words(exc: Exception) -> str:
    """The error without what it was about: messages of exceptions may quote the address."""
    match exc:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {exc.verify_message}"
        case socket.gaierror():
            return "its host is not known"
        case TimeoutError():
            return "it did not answer in time"
        case OSError() if exc.strerror:
            return exc.strerror
        case _:
            return type(exc).__name__


def _seconds(retry_after: str | None) -> float | None:
    """Of a Retry-After header in seconds; a date, or anything else, is none."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
