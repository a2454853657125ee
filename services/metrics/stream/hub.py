"""One thread that hears of events and looks at the state, and all clients that wait for it.

A client has no queue: it remembers the last event's id and the version of each topic that it has seen. A slow
one misses no event, since those can be read again, and of the topics it gets the newest alone.
"""

import logging
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from services.core.db import Listener
from services.core.errors import DatabaseUnavailableError
from services.core.models import Json
from services.metrics.stream import frames

log = logging.getLogger(__name__)
CHANNEL = "ratchet_events"  # sql/migrations/0012_events.sql
CAP = 64  # streams at a time
TICK = 1.0  # seconds between two looks at the state and at the clients
LINGER = 30.0  # seconds the thread goes on when the last client has left
REMEMBERED = 500  # events kept at hand for clients that fall behind
PAGE = 200  # events read at once


@dataclass
class Client:
    """What one stream has seen. `socket` is its file descriptor, None where the server hides it."""

    last_id: int  # of the last event
    socket: int | None = None
    seen: dict[str, int] = field(default_factory=dict)  # topic → version
    gone: bool = False


class Hub:
    """`join`, then `wait` again and again, then `leave`: from the thread of each stream."""

    def __init__(
        self,
        listen: Callable[[], Listener],
        read: Callable[[int, int], list[Any]],
        newest: Callable[[], int],
        look: Callable[[], dict[str, Json]],
        cap: int = CAP,
    ) -> None:
        """read: events after an id, as many at most; newest: the last id; look: the topics as they are."""
        self._listen, self._read, self._newest, self._look = listen, read, newest, look
        self._cap = cap
        self._changed = threading.Condition()
        self._clients: list[Client] = []
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=REMEMBERED)
        self._after = 0  # the event before the first of _recent: who has seen it needs no other
        self._last_id: int | None = None  # None: not read yet
        self._topics: dict[str, tuple[int, Json, bytes]] = {}  # name → version, data, frame
        self._thread: threading.Thread | None = None
        self.alive: Callable[[], bool] = lambda: True  # false: the server stops, and so do the streams

    @property
    def last_id(self) -> int | None:
        """Of the newest event that was heard of; None while nobody listens."""
        return self._last_id

    @property
    def clients(self) -> int:
        return len(self._clients)

    def join(self, last_id: int | None, socket: int | None) -> Client | None:
        """A new client; None when there are too many. Who names an event comes back: it gets every topic.

        Raises DatabaseUnavailableError when where the events stand cannot be read.
        """
        begins = last_id
        if begins is None:
            begins = self._newest() if (last := self._last_id) is None else last
        with self._changed:
            if len(self._clients) >= self._cap or not self.alive():
                return None
            seen = {} if last_id is not None else {name: each[0] for name, each in self._topics.items()}
            client = Client(begins, socket, seen)
            self._clients.append(client)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stream", daemon=True)
                self._thread.start()
            return client

    def leave(self, client: Client) -> None:
        with self._changed:
            if client in self._clients:
                self._clients.remove(client)
            client.gone = True

    def wait(self, client: Client, seconds: float) -> bytes | None:
        """What the client has not seen; empty when there was nothing for so long; None: its stream is over.

        Raises DatabaseUnavailableError when events have to be read again and cannot be.
        """
        with self._changed:
            self._changed.wait_for(lambda: client.gone or self._has_news(client), timeout=seconds)
            if client.gone:
                return None
            if not self._is_far_behind(client):
                return self._news(client)
        rows = self._read(client.last_id, PAGE)  # not under the lock
        if rows:
            client.last_id = rows[-1].id
        elif self._last_id is not None:  # it names what is not there any more, or not yet
            client.last_id = self._last_id
        return b"".join(map(frames.of_event, rows))

    # what a client has not seen

    def _has_news(self, client: Client) -> bool:
        behind = self._last_id is not None and client.last_id != self._last_id
        return behind or any(client.seen.get(name) != each[0] for name, each in self._topics.items())

    def _is_far_behind(self, client: Client) -> bool:
        """Behind what is at hand; or ahead of everything, as after another database was put in place."""
        return self._last_id is not None and not self._after <= client.last_id <= self._last_id

    def _news(self, client: Client) -> bytes:
        found = [frame for number, frame in self._recent if number > client.last_id]
        client.last_id = client.last_id if self._last_id is None else self._last_id
        for name, (version, _, frame) in self._topics.items():
            if client.seen.get(name) != version:
                client.seen[name] = version
                found.append(frame)
        return b"".join(found)

    # the thread

    def _run(self) -> None:
        listener, next_look, idle_since = None, 0.0, time.monotonic()
        try:
            while True:
                now = time.monotonic()
                if self._clients:
                    idle_since = now
                with self._changed:
                    if not self.alive() or now - idle_since > LINGER:
                        return
                listener = self._hear(listener, max(0.0, next_look - now))
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + TICK
                    self._tell(self._looked())
                    self._reap()
        finally:
            if listener is not None:
                listener.close()
            self._end()

    def _hear(self, listener: Listener | None, seconds: float) -> Listener | None:
        """Wait for events and take them in; None when the database is away."""
        try:
            if listener is None:
                listener = self._listen()
                self._take_in()
            elif listener.wait(seconds):
                self._take_in()
        except DatabaseUnavailableError as exc:
            log.info("the stream hears nothing: %s", exc)
            if listener is not None:
                listener.close()
            time.sleep(seconds)
            return None
        return listener

    def _take_in(self) -> None:
        """Every event since the last; of those before the first look none."""
        if self._last_id is None:
            newest = self._newest()
            with self._changed:
                self._after = self._last_id = newest
                self._changed.notify_all()
            return
        while rows := self._read(self._last_id, PAGE):
            with self._changed:
                for row in rows:
                    if len(self._recent) == REMEMBERED:
                        self._after = self._recent[0][0]
                    self._recent.append((row.id, frames.of_event(row)))
                self._last_id = rows[-1].id
                self._changed.notify_all()

    def _looked(self) -> dict[str, Json]:
        try:
            return self._look()
        except Exception:  # what is wrong today may be right in a second; the streams go on
            log.exception("the state cannot be told")
            return {}

    def _tell(self, found: dict[str, Json]) -> None:
        with self._changed:
            for name, data in found.items():
                version, before, _ = self._topics.get(name, (0, None, b""))
                if data == before:
                    continue
                self._topics[name] = (version + 1, data, frames.of_topic(name, data))
                if version == 0:  # the first look is no change
                    for client in self._clients:
                        client.seen.setdefault(name, 1)
                self._changed.notify_all()

    def _reap(self) -> None:
        """End the streams whose client has hung up: their threads wait for news, not for the socket."""
        with self._changed:
            poll, owners = select.poll(), {}
            for client in self._clients:
                if client.socket is not None:
                    poll.register(client.socket, select.POLLRDHUP)
                    owners[client.socket] = client
            hung_up = poll.poll(0)
            for socket, _ in hung_up:
                owners[socket].gone = True
            if hung_up:
                self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._thread = self._last_id = None
            self._recent.clear()
            for client in self._clients:
                client.gone = True
            self._changed.notify_all()
