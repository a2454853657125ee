"""A real Prometheus scrapes a metrics service with a past: what it reads, and what the dashboards ask."""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from services.core.db import Database, as_json
from services.core.target import Target
from tests.conftest import ROLE_PASSWORD, administer
from tests.integration.metrics.server import Running, running, wait_until
from tests.metrics_history import TRACK, fill
from tests.prometheus import (
    HEADERS,
    MONITORING,
    Prometheus,
    needs_prometheus,
    needs_promtool,
    promtool,
    scraping,
)

DATABASE = "monitored"
DASHBOARDS = sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))
DISKS = [{"path": "/data/adapters", "free_bytes": 4e11, "total_bytes": 1e12}]
GPU = {"gpu_utilisation": 0.97, "gpu_memory_bytes": 6.1e10, "gpu_memory_size_bytes": 1.5e11, "mfu": 0.41}
PARITY = {"legs": [{"way": "merged", "prompts": 16, "same": 15, "bits_per_byte_difference": 0.0004}]}
PLANTED = {"planted": 8, "learned": 8, "extracted": 0, "exposure_median": 1.1, "secrets": []}


@pytest.fixture(scope="module")
def metrics(server: Target, template: str) -> Iterator[Running]:
    """The service on a database with ten days of history, as the role that production uses."""
    administer(server, f"CREATE DATABASE {DATABASE} TEMPLATE {template} STRATEGY file_copy")
    administer(server, f"ALTER ROLE ratchet_metrics LOGIN PASSWORD '{ROLE_PASSWORD}'")
    owner = server.model_copy(update={"dbname": DATABASE})
    with closing(Database(owner)) as database:
        fill(database)
        _add_what_a_gpu_and_people_leave(database)
    role = {"user": "ratchet_metrics", "password": SecretStr(ROLE_PASSWORD)}
    with running(owner.model_copy(update=role)) as service:
        yield service
    administer(server, f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture(scope="module")
def prometheus(metrics: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has scraped the service three times or more: rates have something to go by."""
    with scraping(metrics.url, tmp_path_factory.mktemp("prometheus")) as found:
        wait_until(lambda: bool(found.query("count_over_time(ratchet_contents_stored_total[1m]) >= 3")), 60)
        yield found


def _add_what_a_gpu_and_people_leave(database: Database) -> None:
    """Figures that a small machine's past has not; the heartbeats stay fresh while the tests run."""
    judged = (
        "UPDATE rounds SET verdict = jsonb_set(verdict, '{planted}', %s::jsonb) WHERE verdict IS NOT NULL"
    )
    told = "UPDATE heartbeats SET detail = detail || %s::jsonb, beat_at = now() + interval '10 minutes'"
    with database.transaction() as transaction:
        for statement, value in (
            (told, {"disks": DISKS, **GPU}),
            (judged, PLANTED),
            ("UPDATE adapters SET parity = %s::jsonb", PARITY),
            (f"SELECT ask('train', '{TRACK}', %s::jsonb, 'mira')", {"reason": "try it"}),
        ):
            transaction._cursor.execute(statement, (as_json(value),))


def _scrape(metrics: Running, accept: str) -> tuple[str, str]:
    """Content-Type and body."""
    request = urllib.request.Request(f"{metrics.url}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def _expressions(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Title and query of each panel, with Grafana's variables as Prometheus gets them."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "1m").replace("$track", ".*")
            yield panel["title"], re.sub(r"\[\d+[hd]\]", "[1m]", expression)


@pytest.mark.parametrize("header", HEADERS)
def test_what_a_scraper_asks_for_parses(metrics: Running, header: str) -> None:
    """Prometheus 2 and 3: the format that the Content-Type says, without one error."""
    content_type, body = _scrape(metrics, HEADERS[header])
    strict = content_type.startswith("application/openmetrics-text")
    parse = openmetrics.text_string_to_metric_families if strict else text_string_to_metric_families
    assert len(list(parse(body))) > 60


@needs_promtool
def test_promtool_finds_nothing_to_say_about_the_metrics(metrics: Running) -> None:
    """Names, units, types and help are as Prometheus' own linter wants them."""
    assert promtool("check", "metrics", text=_scrape(metrics, "text/plain")[1]) == ""


@needs_prometheus
def test_prometheus_reads_it_without_an_error(prometheus: Prometheus) -> None:
    (target,) = prometheus.get("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    scraped, kept = (
        int(prometheus.query(f"scrape_samples_{which}")[0]["value"][1])
        for which in ("scraped", "post_metric_relabeling")
    )
    assert scraped == kept > 150


@needs_prometheus
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_query_of_a_dashboard_is_answered_with_data(prometheus: Prometheus, path: Any) -> None:
    asked = list(_expressions(json.loads(path.read_text(encoding="utf-8"))))
    unanswered = [each for each in asked if not prometheus.query(each[1])]
    assert len(asked) > 15
    assert unanswered == []


@needs_prometheus
def test_prometheus_evaluates_every_rule(prometheus: Prometheus) -> None:
    """None errs on real series, and nothing but what is so is alarmed of."""
    groups = prometheus.get("rules")["groups"]
    wait_until(lambda: all(rule["lastEvaluation"][:4] != "0001" for rule in _rules(prometheus)))
    assert groups
    assert {
        rule["name"]: rule.get("lastError") for rule in _rules(prometheus) if rule["health"] != "ok"
    } == {}
    assert {each["labels"]["alertname"] for each in prometheus.get("alerts")["alerts"]} <= {
        "RatchetBacklogWaits"
    }


def _rules(prometheus: Prometheus) -> list[Any]:
    return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
