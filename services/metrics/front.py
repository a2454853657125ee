"""Answers that are the same for everybody, given again before Flask hears of the request.

To send a page that is already there costs gunicorn half a millisecond; Flask's way to its view and back
costs as much again. So a view that answers from a cache says with `same_for_all` where the body is found from
now on, and whoever sends a request like that one gets it from there, under the headers that Flask had made.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flask import request

from services.metrics.requests_served import RequestsServed, part

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

Body = Callable[[], bytes | None]  # the answer as it is now; None: its view has to be asked

BODY = "ratchet.same_for_all"  # in the environ of a request: the Body that its view has named
ALIKE = ("wsgi.url_scheme", "HTTP_HOST", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "HTTP_ACCEPT")
MOST = 200  # kinds of requests; then all are forgotten


def same_for_all(body: Body) -> None:
    """From a view: so long as `body` has it, this is the answer to all requests that are ALIKE."""
    request.environ[BODY] = body


@dataclass(frozen=True)
class Answer:
    """What is known of an answer that was 200."""

    status: str
    headers: list[tuple[str, str]]  # all but Content-Length
    body: Body


class Front:
    """Stands before a WSGI application. Whoever sends a cookie is not everybody."""

    def __init__(self, behind: "WSGIApplication", served: RequestsServed) -> None:
        """served: is told of what was answered here; Flask's own hooks tell of the rest."""
        self._behind = behind
        self._served = served
        self._answers: dict[tuple[Any, ...], Answer] = {}

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET" or "HTTP_COOKIE" in environ:
            return self._behind(environ, start_response)
        began = time.perf_counter()
        alike = tuple(environ.get(name) for name in ALIKE)
        answer = self._answers.get(alike)
        body = None if answer is None else answer.body()
        if answer is None or body is None:
            return self._behind(environ, self._learning(alike, environ, start_response))
        start_response(answer.status, [*answer.headers, ("Content-Length", str(len(body)))])
        self._served.note(part(environ["PATH_INFO"]), 200, time.perf_counter() - began)
        return (body,)

    def _learning(
        self, alike: tuple[Any, ...], environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "StartResponse":
        """`start_response` that keeps the answer where its view said that it may be given again."""

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            body = environ.get(BODY)
            if body is not None and status.startswith("200 "):
                if len(self._answers) >= MOST:
                    self._answers.clear()
                kept = [(name, value) for name, value in headers if name != "Content-Length"]
                self._answers[alike] = Answer(status, kept, body)
            return start_response(status, headers, *error)

        return start
