"""The read API on a real database, as the role that production uses, and against its own description."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from flask.testing import FlaskClient
from hypothesis import HealthCheck, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from services.core.db import Database
from services.core.models import Service, ServiceState
from services.core.target import Target
from services.metrics.api import reference
from services.metrics.app import create_app
from tests.integration.metrics.rows import beat, fill
from tests.integration.metrics.server import wait_until
from tests.integration.metrics.test_app import settings_for

API = "/api/v1"
LISTS = ("sources", "rejections", "contents", "rounds", "adapters", "promotions", "events")
TOKEN = "a-token-that-is-long-enough"
CASES = 5  # of each operation, right ones and wrong ones; bench/metrics_fuzz.py tries 2,000


@pytest.fixture
def client(role_target: Callable[[str], Target], database: Database) -> Iterator[FlaskClient]:
    fill(database)
    app = create_app(settings_for(role_target("ratchet_metrics"), dashboard_token=TOKEN))
    yield app.test_client()
    for extension in ("observer", "reader"):
        app.extensions[extension].database.close()


def pages(client: FlaskClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """Every row of a list, page after page."""
    rows, after = [], None
    while True:
        asked = query if after is None else {**query, "after": after}
        page = client.get(f"{API}/{path}", query_string=asked).get_json()
        rows += page["items"]
        if (after := page["next"]) is None:
            return rows


@pytest.mark.parametrize("path", LISTS)
def test_pages_of_a_list_make_the_whole(client: FlaskClient, path: str) -> None:
    """In steps of 2 or at once: the same rows, in the same order, none twice."""
    whole = pages(client, path, limit=500)
    assert whole
    assert pages(client, path, limit=7) == whole


def test_contents_come_best_first_and_without_their_text(client: FlaskClient) -> None:
    """Scores fall; the code itself is in no answer."""
    scores = [row["score"] for row in pages(client, "contents", limit=100)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 300
    assert b"secret text" not in client.get(f"{API}/contents").data


def test_lists_can_be_narrowed(client: FlaskClient) -> None:
    """By language and score, by reason, by state, by kind."""
    rust = pages(client, "contents", language="rust", min_score=70)
    assert {row["language"] for row in rust} == {"rust"}
    assert min(row["score"] for row in rust) >= 70
    assert {row["reason"] for row in pages(client, "rejections", reason="generated")} == {"generated"}
    assert [row["number"] for row in pages(client, "rounds", state="refused")] == [2]
    assert {row["kind"] for row in pages(client, "events", kind="round.started")} == {"round.started"}


def test_a_content_tells_where_it_is_and_who_had_it(client: FlaskClient) -> None:
    """Its places, its units, the rounds it was in."""
    (first, *_) = pages(client, "contents", limit=500)
    detail = client.get(f"{API}/contents/{first['sha256']}").get_json()
    assert detail["places"][0]["source"] == "werkzeug"
    assert detail["score"] == first["score"]
    assert set(detail) >= {"score_reasons", "units", "used", "redactions"}


def test_a_round_tells_what_it_was_and_how_it_went(client: FlaskClient) -> None:
    """Composition, recipe, verdict; its losses thinned to what was asked for."""
    detail = client.get(f"{API}/rounds/demo/1").get_json()
    assert detail["state"] == "promoted"
    assert detail["contents"]["train"] > detail["contents"]["held_out"] > 0
    assert detail["recipe"]["lora_r"] == 16
    points = client.get(f"{API}/rounds/demo/1/losses?limit=10").get_json()["points"]
    assert 10 <= len([point for point in points if point["kind"] == "train"]) <= 11
    assert client.get(f"{API}/rounds/demo/1/evaluations").status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("rounds/demo/99", 404, "there is no round 99 of 'demo'"),
        ("contents/" + "f" * 64, 404, "there is no content"),
        ("contents/" + "G" * 64, 404, "small hexadecimal digits"),
        ("rounds?limit=501", 422, "limit='501'"),
        ("rounds?stat=open", 422, "stat='open'"),
        ("rounds?after=99999999999999999999", 422, "after="),
        ("contents?after=x", 422, "after='x'"),
        ("nothing", 404, "not found"),
    ],
)
def test_what_cannot_be_answered_is_named(client: FlaskClient, path: str, status: int, says: str) -> None:
    """The thing, its value and what is expected, as JSON."""
    answer = client.get(f"{API}/{path}")
    assert answer.status_code == status
    assert says in answer.get_json()["message"]


def test_nothing_can_be_written(client: FlaskClient) -> None:
    """Other methods are refused with those that are allowed."""
    answer = client.post(f"{API}/rounds")
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}


def test_the_api_is_told_to_people(client: FlaskClient) -> None:
    """The page names every path; the reference in docs is what the code says."""
    told = client.get("/api").get_data(as_text=True)
    document = client.application.extensions["openapi"]
    assert client.get(f"{API}/openapi.json").get_json() == document
    assert all(path in told for path in document["paths"])
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(document)


@pytest.mark.timeout(300)
def test_every_answer_is_as_described(client: FlaskClient) -> None:
    """Requests made up from the OpenAPI document, right and wrong: no fault of ours, no other answer."""
    schema = schemathesis.openapi.from_wsgi(f"{API}/openapi.json", client.application)
    answers: Counter[int] = Counter()
    for result in schema.exclude(path=f"{API}/stream").get_all_operations():  # which has no end
        operation = result.ok()
        for mode in GenerationMode:

            @schemathesis_case(operation, mode)
            def one(case: schemathesis.Case) -> None:
                answer = case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"})
                answers[answer.status_code] += 1

            with suppress(Unsatisfiable):  # of some operations nothing can be asked wrongly
                one()
    assert {200, 404, 422} <= set(answers) <= {200, 202, 401, 404, 409, 422}
    assert sum(answers.values()) > CASES * 20


def schemathesis_case(
    operation: Any, mode: GenerationMode
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """The test for cases of this operation, as hypothesis runs it."""

    def given(test: Callable[..., None]) -> Callable[[], None]:
        from hypothesis import given as hypothesis_given

        quiet = settings(
            max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        return quiet(hypothesis_given(case=operation.as_strategy(generation_mode=mode))(test))

    return given


def test_alerts_are_those_of_the_page_and_the_command(client: FlaskClient, database: Database) -> None:
    """The worst first, each with what to do; nothing while all is well."""
    assert client.get(f"{API}/alerts").get_json() == {"items": [], "stale": False}
    beat(database, Service.TRAINER, ServiceState.ERROR, {"track": "demo", "message": "no memory"})
    wait_until(lambda: bool(client.get(f"{API}/alerts").get_json()["items"]))
    (alert,) = client.get(f"{API}/alerts").get_json()["items"]
    assert (alert["kind"], alert["severity"], alert["track"]) == ("stalled", "bad", "demo")
    assert "no memory" in alert["text"]
    assert "ratchet logs trainer" in alert["cure"]
