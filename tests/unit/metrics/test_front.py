"""What is the same for everybody is given again without Flask; all else goes the whole way."""

from flask import Flask, Response, request
from werkzeug.test import TestResponse

from services.metrics import front
from services.metrics.front import Front, same_for_all
from services.metrics.requests_served import RequestsServed


class Site:
    """An application behind a front, which counts how often its one view was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.body: bytes | None = b"now"
        self.served = RequestsServed()
        app = Flask(__name__)
        app.add_url_rule("/<name>", view_func=self.view)
        app.wsgi_app = Front(app.wsgi_app, self.served)  # type: ignore[method-assign]
        self._app = app

    def view(self, name: str) -> Response:
        self.asked += 1
        if name != "own":
            same_for_all(lambda: self.body)
        answer = Response(f"{self.asked} {request.args.get('x', '')}", 404 if name == "none" else 200)
        answer.headers["X-Kept"] = "yes"
        return answer

    def get(self, path: str, **headers: str) -> TestResponse:
        return self._app.test_client(use_cookies=False).get(path, headers=headers)


def test_the_first_answer_is_the_views_and_the_next_what_it_named() -> None:
    site = Site()
    assert [site.get("/a").text for _ in range(3)] == ["1 ", "now", "now"]
    assert site.asked == 1


def test_what_is_given_again_has_the_headers_of_the_first_and_its_own_length() -> None:
    site = Site()
    first = dict(site.get("/a").headers)
    site.body = b"longer than that"
    assert dict(site.get("/a").headers) == {**first, "Content-Length": "16"}


def test_a_view_is_asked_when_its_body_is_no_longer_good() -> None:
    site = Site()
    site.get("/a")
    site.body = None
    assert site.get("/a").text == "2 "


def test_only_requests_that_are_alike_share_an_answer() -> None:
    """Path, query, Accept, Host: where one of them differs, the view is asked."""
    site = Site()
    for path, headers in (
        ("/a", {}), ("/b", {}), ("/a?x=1", {}), ("/a", {"Accept": "text/plain"}), ("/a", {"Host": "other"}),
    ):  # fmt: skip
        site.get(path, **headers)
    assert site.asked == 5


def test_who_sends_a_cookie_is_not_everybody() -> None:
    """Neither given what others were shown, nor shown to others."""
    site = Site()
    site.get("/a", Cookie="session=1")
    site.get("/a")
    assert site.get("/a", Cookie="session=1").text == "3 "


def test_only_what_a_view_says_is_given_again_and_only_if_it_was_there() -> None:
    site = Site()
    for path in ("/own", "/own", "/none", "/none"):
        site.get(path)
    assert site.asked == 4


def test_a_head_goes_the_whole_way() -> None:
    """It has no body, which a GET must not be given for it."""
    site = Site()
    assert site._app.test_client().head("/a").data == b""
    assert site.get("/a").text == "2 "


def test_what_is_answered_here_is_counted() -> None:
    """Flask's own hooks, which a site has that counts, tell of the rest."""
    site = Site()
    site.get("/a")
    assert not list(site.served.read())
    site.get("/a")
    (((part, status), _, _),) = site.served.read()
    assert (part, status) == ("page", "2xx")


def test_no_more_answers_are_kept_than_it_may() -> None:
    """Whoever asks in ever new ways fills no memory."""
    site = Site()
    for number in range(front.MOST + 10):
        site.get(f"/a?x={number}")
    assert len(site._app.wsgi_app._answers) == 10  # type: ignore[attr-defined]
