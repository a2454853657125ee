"""Writes: who may, from where, and that nothing but a request comes of them."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from services.core.db import Database
from services.core.target import Target
from services.metrics.app import create_app
from services.metrics.writes import pages
from services.metrics.writes.access import COOKIE
from services.metrics.writes.throttle import FREE
from tests.integration.metrics.rows import fill
from tests.integration.metrics.test_app import settings_for

TOKEN = "a-token-that-is-long-enough"
REQUESTS = "/api/v1/requests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HERE = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
TRAIN = {"kind": "train", "track": "demo"}
AppOf = Callable[..., Flask]


@pytest.fixture
def app_of(role_target: Callable[[str], Target], database: Database) -> Iterator[AppOf]:
    """The application as production's role, with or without a token."""
    fill(database, contents=20)
    made = []

    def make(token: str | None = TOKEN) -> Flask:
        app = create_app(settings_for(role_target("ratchet_metrics"), dashboard_token=token))
        made.append(app)
        return app

    yield make
    for app in made:
        for extension in ("observer", "reader"):
            app.extensions[extension].database.close()


@pytest.fixture
def client(app_of: AppOf, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    monkeypatch.setattr(pages, "WAIT", 0.0)
    return app_of().test_client()


@pytest.fixture
def signed_in(client: FlaskClient) -> FlaskClient:
    answer = client.post("/login", data={"token": TOKEN, "name": "ada"}, headers=HERE)
    assert answer.status_code == 303
    return client


def asked(database: Database) -> list[Any]:
    with database.transaction() as tx:
        tx._cursor.execute("SELECT kind, track, payload, actor, state FROM requests ORDER BY id")
        return list(tx._cursor.fetchall())


def test_who_has_the_token_asks(client: FlaskClient, database: Database) -> None:
    """202 with the request, and where it can be read."""
    said = {**TRAIN, "reason": "now", "actor": "ci"}
    answer = client.post(REQUESTS, json=said, headers=BEARER)
    assert (answer.status_code, answer.json["state"], answer.json["message"]) == (202, "waiting", None)
    assert client.get(answer.headers["Location"]).json == answer.json
    assert client.get(f"{REQUESTS}?track=demo&state=waiting").json["items"] == [answer.json]
    assert [tuple(row) for row in asked(database)] == [("train", "demo", {"reason": "now"}, "ci", "waiting")]


def test_others_are_turned_away(client: FlaskClient, database: Database) -> None:
    """Before anything of the body is looked at; nothing was asked."""
    cases: list[tuple[dict[str, str], int, str]] = [
        ({}, 401, "Authorization: Bearer"),
        ({"Authorization": "Bearer wrong"}, 401, "not the DASHBOARD_TOKEN"),
        ({"Authorization": f"Basic {TOKEN}"}, 401, "Bearer"),
        ({**BEARER, "Origin": "http://evil.example"}, 403, "another site"),
        ({**BEARER, "Sec-Fetch-Site": "cross-site"}, 403, "another site"),
    ]
    for headers, status, says in cases:
        answer = client.post(REQUESTS, json={"kind": "nonsense"}, headers=headers)
        assert (answer.status_code, says in answer.json["message"]) == (status, True)
        assert (answer.headers.get("WWW-Authenticate") == "Bearer realm=ratchet") == (status == 401)
    assert asked(database) == []


def test_a_cookie_opens_no_api(signed_in: FlaskClient, database: Database) -> None:
    """Only the header does, which no other site can make a browser send."""
    assert signed_in.post(REQUESTS, json=TRAIN, headers=HERE).status_code == 401
    assert asked(database) == []


def test_without_a_token_the_setting_is_named(app_of: AppOf, database: Database) -> None:
    """403 for the API, the form and the sign-in; reading goes on."""
    client = app_of(None).test_client()
    answers = [
        client.post(REQUESTS, json=TRAIN, headers={"Authorization": "Bearer "}),
        client.post(REQUESTS, json=TRAIN, headers=BEARER),
        client.post("/act", data=TRAIN, headers=HERE),
        client.post("/login", data={"token": ""}, headers=HERE),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert all("DASHBOARD_TOKEN" in answer.text for answer in answers)
    assert "DASHBOARD_TOKEN" in client.get("/login").text
    assert client.get(REQUESTS).status_code == 200
    assert asked(database) == []


def test_what_cannot_be_asked_is_named(client: FlaskClient) -> None:
    """The field, its value and what is expected."""
    cases: list[tuple[Any, int, str]] = [
        ({"kind": "train", "track": "nowhere"}, 404, "there is no track 'nowhere'; tracks: demo"),
        ({"kind": "delete", "track": "demo"}, 422, "kind='delete'"),
        ({"track": "demo"}, 422, "kind"),
        ({**TRAIN, "reason": "x" * 1001}, 422, "reason="),
        ({**TRAIN, "adapter": "a\0b"}, 422, "adapter="),
        ({**TRAIN, "more": 1}, 422, "more=1"),
        ([], 422, "kind"),
    ]
    for body, status, says in cases:
        answer = client.post(REQUESTS, json=body, headers=BEARER)
        assert (answer.status_code, says in answer.json["message"]) == (status, True)


def test_asking_twice_with_a_key_asks_once(client: FlaskClient, database: Database) -> None:
    """The same request is answered; another one under the same key is a 409."""
    first, second = (client.post(REQUESTS, json={**TRAIN, "key": "k"}, headers=BEARER) for _ in range(2))
    assert first.json == second.json
    other = client.post(REQUESTS, json={"kind": "pause", "track": "demo", "key": "k"}, headers=BEARER)
    assert other.status_code == 409
    assert len(asked(database)) == 1


def test_guessing_is_slow(client: FlaskClient) -> None:
    """429 with when to come back, for the API and the sign-in alike; even the token waits."""
    for _ in range(FREE):
        assert client.post(REQUESTS, json=TRAIN, headers={"Authorization": "Bearer no"}).status_code == 401
    answer = client.post(REQUESTS, json=TRAIN, headers=BEARER)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert client.post("/login", data={"token": TOKEN}, headers=HERE).status_code == 429


def test_a_form_asks_and_goes_back_to_what_came_of_it(signed_in: FlaskClient, database: Database) -> None:
    """303 to its page, which tells the request's state; by the name that signed in."""
    form = {"kind": "promote", "track": "demo", "adapter": "round-0001", "reason": " ", "back": "/login?x=1"}
    answer = signed_in.post("/act", data=form, headers=HERE)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login?x=1&asked=1")
    assert [tuple(row) for row in asked(database)] == [
        ("promote", "demo", {"adapter": "round-0001"}, "ada", "waiting")
    ]


def test_the_cookie_is_for_this_site_alone(client: FlaskClient) -> None:
    """No script reads it, no other site's request carries it; the token is not in it."""
    answer = client.post("/login", data={"token": TOKEN, "back": "//evil.example"}, headers=HERE)
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert answer.headers["Location"] == "/"


def test_forms_of_other_sites_do_nothing(signed_in: FlaskClient, database: Database) -> None:
    """403, whatever they hold; nobody is signed in or out by them."""
    elsewhere = [{}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}]
    for path, headers in itertools.product(("/act", "/login", "/logout"), elsewhere):
        answer = signed_in.post(path, data={**TRAIN, "token": TOKEN}, headers=headers)
        assert (answer.status_code, answer.headers.get("Set-Cookie")) == (403, None)
    assert asked(database) == []


def test_who_signs_out_must_sign_in_again(signed_in: FlaskClient, database: Database) -> None:
    """The form then leads to the sign-in, and from there back."""
    assert signed_in.post("/logout", data={"back": "/rounds"}, headers=HERE).headers["Location"] == "/rounds"
    assert not signed_in.get_cookie(COOKIE)
    answer = signed_in.post("/act", data={**TRAIN, "back": "/rounds"}, headers=HERE)
    assert answer.headers["Location"] == "/login?back=%2Frounds"
    assert asked(database) == []


def test_a_form_that_says_nothing_sensible_is_refused(signed_in: FlaskClient) -> None:
    """400 that names the field."""
    for form in ({}, {"kind": "delete", "track": "demo"}, {"kind": "train"}):
        assert signed_in.post("/act", data=form, headers=HERE).status_code == 400


def test_a_wrong_token_is_told_on_the_form(client: FlaskClient) -> None:
    """Without saying it again."""
    answer = client.post("/login", data={"token": "my guess", "back": "/rounds"}, headers=HERE)
    assert answer.status_code == 401
    assert "This is not the token" in answer.text
    assert "my guess" not in answer.text
    assert 'value="/rounds"' in answer.text


def test_buttons_are_for_who_may_press_them(app_of: AppOf, signed_in: FlaskClient) -> None:
    """Signed in: a form; not signed in: the way there; no token: the command."""
    signed_in_app, without = signed_in.application, app_of(None)
    template = '{% import "act.html" as ask %}{{ ask.act("promote", "demo", "round-<2>", why=true) }}'

    def shown(app: Flask, headers: dict[str, str]) -> str:
        with app.test_request_context("/adapters?a=1&asked=7", headers=headers):
            return app.jinja_env.from_string(template).render()

    cookie = signed_in.get_cookie(COOKIE)
    assert cookie is not None
    form = shown(signed_in_app, {"Cookie": f"{COOKIE}={cookie.value}"})
    assert re.search(r'<form[^>]*action="/act"', form)
    assert 'value="round-&lt;2&gt;"' in form
    assert 'name="back" value="/adapters?a=1"' in form
    assert '"/login?back=' in shown(signed_in_app, {})
    assert "ratchet promote &#39;round-&lt;2&gt;&#39; --track demo" in shown(without, {})


def test_what_came_of_it_is_shown(client: FlaskClient, database: Database) -> None:
    """The answer, inert; nothing for a number that is none."""
    number = client.post(REQUESTS, json=TRAIN, headers=BEARER).json["id"]
    with database.transaction() as tx:
        tx.value("answer_request", request=number, state="failed", message="no <b>\u202eway")
    template = '{% import "act.html" as ask %}{{ ask.outcome() }}'

    def shown(query: str) -> str:
        with client.application.test_request_context(f"/rounds?{query}"):
            return client.application.jinja_env.from_string(template).render().strip()

    assert "no &lt;b&gt;\\u202eway" in shown(f"asked={number}")
    assert shown("asked=99") == shown("asked=x") == shown("asked=" + "9" * 30) == shown("") == ""


def test_the_frame_shows_who_is_signed_in_and_what_came_of_it(
    signed_in: FlaskClient, database: Database
) -> None:
    """On every page, shared or not; nothing of it on anybody else's."""
    number = signed_in.post(REQUESTS, json=TRAIN, headers=BEARER).json["id"]
    with database.transaction() as tx:
        tx.value("answer_request", request=number, state="done", message="round 4 has begun")
    mine = signed_in.get(f"/alerts?asked={number}").text
    assert "Sign out ada" in mine
    assert "round 4 has begun" in mine
    stranger = signed_in.application.test_client()
    for _ in range(2):
        theirs = stranger.get("/alerts").text
        assert "Sign in" in theirs
        assert "Sign out" not in theirs
    assert "Sign out ada" in signed_in.get("/alerts").text
