"""The routes on a real database, as the role that production uses."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from services.core.db import Database
from services.core.models import Service, ServiceState
from services.core.settings import Settings
from services.core.target import Target
from services.metrics.app import create_app
from tests.integration.metrics.rows import beat, fill

BASE_UNITS = re.compile(r"_(milliseconds|minutes|hours|percent|kilobytes|kb|mb|ms|s)(_total)?$")
RoleTarget = Callable[[str], Target]


def settings_for(target: Target, **others: Any) -> Settings:
    password = target.password.get_secret_value()
    url = f"postgresql://{target.user}:{password}@{target.host}:{target.port}/{target.dbname}"
    return Settings.model_validate({"database_url": url, **others})


@pytest.fixture
def client(role_target: RoleTarget) -> Iterator[FlaskClient]:
    app = create_app(settings_for(role_target("ratchet_metrics")))
    yield app.test_client()
    app.extensions["observer"].database.close()


def test_json_has_what_users_of_the_seed_read(client: FlaskClient, database: Database) -> None:
    """A bare curl finds state, training_metrics and config under their old names."""
    fill(database)
    found = client.get("/metrics").get_json()
    assert found["state"]["total_training_runs"] == 2
    assert found["state"]["total_samples_trained"] == 3840
    assert found["training_metrics"]["eval_loss"] == 1.34
    assert found["config"]["model"] == "SmolLM2-135M-Instruct"
    assert found["config"]["lora_r"] == 16


def test_json_tells_the_whole_state(client: FlaskClient, database: Database) -> None:
    """Ingest, tracks, rounds, the running round, heartbeats and health are in one document."""
    fill(database)
    found = client.get("/metrics?format=json").get_json()
    assert found["ingest"]["contents"] == 300
    assert sum(found["ingest"]["rejected"].values()) == 75
    assert sum(decade["contents"] for decade in found["ingest"]["scores"]) == 300
    assert found["tracks"][0]["champion"]["round"] == 1
    assert [row["state"] for row in found["rounds"]] == ["open", "refused", "promoted"]
    assert (found["running_round"]["step"], found["running_round"]["total_steps"]) == (84, 240)
    assert {row["service"] for row in found["services"]} == {"processor", "trainer"}
    assert found["health"]["status"] == "ok"
    assert not found["stale"]


def test_an_empty_database_is_served(client: FlaskClient) -> None:
    """Before the first row every format and the page answer 200."""
    for path in ("/metrics?format=json", "/metrics?format=prometheus", "/"):
        assert client.get(path).status_code == 200


def test_no_code_leaves_the_database(client: FlaskClient, database: Database) -> None:
    """The text of a content is in no answer; the role could not read it."""
    fill(database)
    for path in ("/metrics?format=json", "/metrics?format=prometheus", "/"):
        assert b"secret text" not in client.get(path).data


def test_infinity_in_the_database_is_null_in_json(client: FlaskClient, database: Database) -> None:
    """jsonb holds 1e999, which no double does: null in JSON, and the other formats still answer."""
    with database.transaction() as transaction:
        transaction._cursor.execute(
            """INSERT INTO heartbeats VALUES ('trainer', 'a', 'idle', '{"loss": 1e999}', now(), now())"""
        )
    found = json.loads(client.get("/metrics").data, parse_constant=pytest.fail)
    assert found["services"][0]["detail"]["loss"] is None
    assert client.get("/metrics?format=prometheus").status_code == client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain;version=nonsense", "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
        ),
        ("*/*", "application/json"),
        ("text/html,*/*;q=0.8", "application/json"),
    ],
)
def test_the_content_type_is_exact(client: FlaskClient, accept: str, content_type: str) -> None:
    """Prometheus 3 refuses a Content-Type it does not know; caches learn that Accept matters."""
    answer = client.get("/metrics", headers={"Accept": accept})
    assert answer.headers["Content-Type"] == content_type
    assert "Accept" in answer.vary


def test_the_text_formats_parse(client: FlaskClient, database: Database) -> None:
    """Prometheus' own parsers take both formats and find the same families."""
    fill(database)
    plain = list(text_string_to_metric_families(client.get("/metrics?format=prometheus").text))
    header = {"Accept": "application/openmetrics-text;version=1.0.0"}
    strict = list(openmetrics.text_string_to_metric_families(client.get("/metrics", headers=header).text))
    assert {family.name for family in plain} == {family.name for family in strict}
    assert len(strict) > 25


def test_names_and_labels_follow_the_rules(client: FlaskClient, database: Database) -> None:
    """Prefix ratchet_, base units, _total on counters only, help on all, no label without bound."""
    fill(database)
    for family in text_string_to_metric_families(client.get("/metrics?format=prometheus").text):
        assert family.name.startswith("ratchet_")
        assert family.documentation
        assert not BASE_UNITS.search(family.name)
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert not set(sample.labels) & {"file", "path", "round", "source", "instance"}


def test_counters_are_the_same_after_a_restart(role_target: RoleTarget, database: Database) -> None:
    """They come from the ledger, not from this process."""
    fill(database)
    first, second = (_counters(create_app(settings_for(role_target("ratchet_metrics")))) for _ in range(2))
    assert first == second
    assert first["ratchet_samples_trained_total", "demo"] == 3840


def test_an_unknown_format_is_refused_in_words(client: FlaskClient) -> None:
    """400 that names the value and the possible ones."""
    answer = client.get("/metrics?format=xml")
    assert answer.status_code == 400
    assert "format='xml'" in answer.get_json()["message"]
    assert "Accept" in answer.vary


def test_a_silent_trainer_turns_health_to_503(client: FlaskClient, database: Database) -> None:
    """The part that is ill is named, with the reason; the others are well."""
    beat(database, Service.PROCESSOR, ServiceState.IDLE)
    beat(database, Service.TRAINER, ServiceState.TRAINING, age_seconds=60)
    answer = client.get("/health")
    parts = answer.get_json()["parts"]
    assert answer.status_code == 503
    assert parts["processor"]["status"] == "ok"
    assert "silent for 60 s" in parts["trainer"]["reason"]


def test_services_not_seen_yet_are_starting(client: FlaskClient) -> None:
    """Right after the start a missing service is no fault."""
    answer = client.get("/health")
    assert (answer.status_code, answer.get_json()["status"]) == (200, "starting")


def test_a_database_without_migrations_is_not_ready(empty_target: Target) -> None:
    """Ready is 503 and says which command to run."""
    answer = create_app(settings_for(empty_target)).test_client().get("/health/ready")
    assert answer.status_code == 503
    assert "ratchet migrate" in answer.get_json()["reason"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/metrics", "/health"])
def test_only_reading_is_allowed(client: FlaskClient, method: str, path: str) -> None:
    """Any other method is 405 with the allowed ones."""
    answer = client.open(path, method=method)
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}


def test_unknown_paths_answer_in_the_readers_format(client: FlaskClient) -> None:
    """404 as HTML for a browser, as JSON for the rest, and the path is not echoed."""
    assert client.get("/<b>").get_json()["error"] == "Not Found"
    page = client.get("/<b>x", headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.status_code == 404
    assert "<h1>Not Found</h1>" in page.text
    assert "<b>" not in page.text


def test_a_fault_shows_no_traceback(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 in words; the details are in the log alone."""
    monkeypatch.setattr("services.metrics.pages.overview.view", lambda *_: 1 / 0)
    answer = client.get("/", headers={"Accept": "text/html"})
    assert answer.status_code == 500
    assert "ZeroDivision" not in answer.text


def test_what_came_in_is_escaped(client: FlaskClient, database: Database) -> None:
    """Hostile words in a heartbeat stay words."""
    beat(database, Service.PROCESSOR, ServiceState.ERROR, {"message": "<script>alert(1)</script>"})
    page = client.get("/").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_every_answer_carries_a_strict_policy(client: FlaskClient) -> None:
    """No script or style but our own files, no framing, no sniffing."""
    for path in ("/", "/metrics", "/health/live", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def _counters(app: Any) -> dict[tuple[str, str], float]:
    text = app.test_client().get("/metrics?format=prometheus").text
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        if family.type == "counter"
        for sample in family.samples
    }


def test_pages_and_the_api_answer_to_their_own_names_alone(client: FlaskClient) -> None:
    """400 that names the setting, and tells nothing else, for the name of another site that leads here."""
    for path in ("/", "/api", "/api/v1/state", "/login", "/static/page.css"):
        answer = client.get(path, headers={"Host": "evil.example", "Accept": "text/html"})
        assert answer.status_code == 400
        assert answer.get_json()["message"] == (
            "'evil.example' is no name of this service: if it should be one, add it to METRICS_TRUSTED_HOSTS"
        )
    assert client.get("/", headers={"Host": "127.0.0.1:8090"}).status_code == 200


def test_probes_and_scrapers_are_answered_whatever_they_call_it(client: FlaskClient) -> None:
    for path in ("/health/live", "/health/ready", "/metrics"):
        assert client.get(path, headers={"Host": "ratchet.svc.cluster.local"}).status_code == 200


def test_a_name_that_is_set_is_answered(role_target: Callable[[str], Target]) -> None:
    app = create_app(
        settings_for(role_target("ratchet_metrics"), metrics_trusted_hosts="a.example, .b.example")
    )
    for host, expected in (("a.example:443", 200), ("x.b.example", 200), ("b.example", 400)):
        assert app.test_client().get("/api", headers={"Host": host}).status_code == expected
    for extension in ("observer", "reader"):
        app.extensions[extension].database.close()
