"""A real HTTP server that takes webhooks, verifies them, and fails in the ways that servers fail."""

import socket
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook

SECRET = "whsec_" + "c2VjcmV0LW9mLTMyLWJ5dGVzLWZvci10ZXN0cy1vbmx5"
HANG, DROP, DRIP = "hang", "drop", "drip"  # say nothing; hang up; a byte of header at a time
PATIENCE = 60.0  # seconds a test waits for what it expects


@dataclass
class Receiver:
    """Answers as told, one request after another, then 200; keeps what it verified."""

    answers: deque[Any] = field(default_factory=deque)  # a status, (status, headers), HANG, DROP or DRIP
    secret: str = SECRET
    tls: ssl.SSLContext | None = None
    port: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)  # headers of each request, also of failed ones
    bodies: list[bytes] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(
        default_factory=list
    )  # verified documents that were answered with 200
    news: threading.Condition = field(default_factory=threading.Condition)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}/hook"

    def wait(self, condition, seconds: float = PATIENCE) -> None:
        """Until `condition(self)`, looked at after every request."""
        with self.news:
            assert self.news.wait_for(lambda: condition(self), seconds), (self.asked, self.taken)

    @contextmanager
    def running(self) -> Iterator["Receiver"]:
        """Listens until the end of the block; again on the same port when it is entered again."""
        self.over.clear()
        server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        server.daemon_threads = True
        if self.tls is not None:
            server.socket = self.tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            server.shutdown()
            server.server_close()
            thread.join()


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with receiver.news:
                answer = receiver.answers.popleft() if receiver.answers else 200
                receiver.asked.append(headers)
                receiver.bodies.append(body)
                receiver.news.notify_all()
            if answer in (HANG, DROP, DRIP):
                return self.misbehave(answer)
            status, more = answer if isinstance(answer, tuple) else (answer, {})
            document = Webhook(receiver.secret).verify(body, headers)
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"thanks for " + self.path.encode())
            if status == 200:
                with receiver.news:
                    receiver.taken.append(document)
                    receiver.news.notify_all()
            return None

        def misbehave(self, how: str) -> None:
            self.close_connection = True
            if how == HANG:
                receiver.over.wait(PATIENCE)
            elif how == DRIP:
                with suppress(OSError):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
                    while not receiver.over.wait(0.05):
                        self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            pass

    return Handler
