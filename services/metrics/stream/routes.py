"""GET /api/v1/stream: every event with its id, and small figures when they change."""

import socket
import struct
from collections.abc import Iterator
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import ServiceUnavailable, UnprocessableEntity

from services.core.db import Listener
from services.core.errors import DatabaseUnavailableError
from services.core.models import Json
from services.core.target import Target
from services.metrics.api.paging import LARGEST
from services.metrics.api.reader import Reader
from services.metrics.observer import Observer
from services.metrics.stream import frames
from services.metrics.stream.hub import CAP, CHANNEL, Client, Hub
from services.metrics.stream.topics import topics

HEARTBEAT = 15.0  # seconds without news after which a comment goes out
UNREAD = 30_000  # milliseconds a client may leave unread or unacknowledged what it was sent
RETRY = 30  # seconds after which one that was turned away may ask again


class Stream:
    """The body: an iterator that gives its place back when the server closes it, begun or not."""

    def __init__(self, hub: Hub, client: Client) -> None:
        self._hub = hub
        self._client = client
        self._begun = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if not self._begun:
            self._begun = True
            return frames.OPENING
        try:
            news = self._hub.wait(self._client, HEARTBEAT)
        except DatabaseUnavailableError:
            news = None  # the browser asks again, and says what it has seen
        if news is None:
            raise StopIteration
        return news or frames.HEARTBEAT

    def close(self) -> None:
        self._hub.leave(self._client)


def make_hub(target: Target, observer: Observer, reader: Reader, cap: int = CAP) -> Hub:
    def look() -> dict[str, Json]:
        return topics(observer.snapshot(), observer.health())

    def events(after: int, most: int) -> list[Any]:
        with reader.transaction() as tx:
            return tx.all("api_events", after=after, limit=most, track=None, kind=None)

    def newest() -> int:
        with reader.transaction() as tx:
            return int(tx.value("last_event_id"))

    return Hub(lambda: Listener(target, CHANNEL, "ratchet stream"), events, newest, look, cap)


def add_stream(app: Flask, hub: Hub, observer: Observer, path: str) -> None:
    app.extensions["stream"] = hub

    @app.get(path)
    def stream() -> Response:
        if (why := observer.not_ready()) is not None:
            raise ServiceUnavailable(why)
        response = Response(content_type="text/event-stream")
        response.headers["X-Accel-Buffering"] = "no"  # nginx would keep it back
        if request.method == "HEAD":
            return response
        connection = request.environ.get("gunicorn.socket")
        last_id = _last_id(request.headers.get("Last-Event-ID"))
        try:
            client = hub.join(last_id, _patient(connection))
        except DatabaseUnavailableError as exc:
            raise ServiceUnavailable(str(exc)) from exc
        if client is None:
            raise _full()
        response.response = Stream(hub, client)
        return response


def _last_id(said: str | None) -> int | None:
    if said is None:
        return None
    if not (said.isascii() and said.isdecimal() and int(said) <= LARGEST):
        raise UnprocessableEntity(f"Last-Event-ID: {said!r} is no id of an event: a whole number is expected")
    return int(said)


def _patient(connection: Any) -> int | None:
    """The file descriptor of the client's socket, on which no write hangs for ever; None: it is hidden."""
    if not isinstance(connection, socket.socket):
        return None
    timeval = struct.pack("@ll", UNREAD // 1000, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval)
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD)
    return connection.fileno()


def _full() -> ServiceUnavailable:
    return ServiceUnavailable(
        "too many streams are open: close pages that nobody looks at", retry_after=RETRY
    )
