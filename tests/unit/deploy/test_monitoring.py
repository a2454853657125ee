"""Dashboards, alerts and the configuration of Prometheus and Grafana, read from their files."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from deploy.monitoring.dashboards import COLUMNS, DATASOURCE, Dashboard
from deploy.monitoring.panels import DASHBOARDS
from services.metrics.exposition import FAMILIES
from tests.prometheus import MONITORING, needs_promtool, promtool

TESTS = ("alerts.test.yml", "alerts.slow.test.yml")
SUFFIXES = ("", "_bucket", "_sum", "_count")
KNOWN = {
    family.full_name + suffix
    for family in FAMILIES
    for suffix in (SUFFIXES if family.kind == "histogram" else ("",))
}
GRAFANA = MONITORING / "grafana" / "provisioning"
every_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)


def _read(name: str) -> Any:
    return yaml.safe_load((MONITORING / name).read_text(encoding="utf-8"))


ALERTS = {rule["alert"]: rule for group in _read("alerts.yml")["groups"] for rule in group["rules"]}


@every_dashboard
def test_a_dashboard_is_what_its_panels_say(dashboard: Dashboard) -> None:
    """`python -m deploy.monitoring.dashboards` writes it anew."""
    assert dashboard.path.read_text(encoding="utf-8") == dashboard.text_of_file()


def test_no_other_dashboard_lies_there() -> None:
    found = (MONITORING / "grafana" / "dashboards").iterdir()
    assert sorted(found) == sorted(dashboard.path for dashboard in DASHBOARDS)


@every_dashboard
def test_panels_lie_beside_one_another(dashboard: Dashboard) -> None:
    """Within the grid, no two on the same cell, each with an id of its own."""
    taken: set[tuple[int, int]] = set()
    panels = dashboard.as_json()["panels"]
    for place in (panel["gridPos"] for panel in panels):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= COLUMNS
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def _queries() -> Iterator[tuple[str, str]]:
    """Where a query stands, and the query."""
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            yield from ((f"{dashboard.name}: {panel.title}", query) for query, _ in panel.queries)
    yield from ((alert, rule["expr"]) for alert, rule in ALERTS.items())


def test_every_query_asks_for_metrics_that_there_are() -> None:
    """A misspelt name would be an empty panel, and an alert that never fires."""
    unknown = {
        (where, name)
        for where, query in _queries()
        for name in re.findall(r"\bratchet_\w+", query)
        if name not in KNOWN
    }
    assert unknown == set()


def test_every_metric_is_on_a_dashboard_or_alarmed_of() -> None:
    """What nobody looks at need not be told, but for these that queries of one's own may want."""
    shown = " ".join(query for _, query in _queries())
    unseen = {family.name for family in FAMILIES if family.full_name not in shown}
    assert unseen == {
        "database_migration",
        "forgettings",
        "last_training_timestamp_seconds",
        "lease_held",
        "parity_bpb_difference",
        "stalled",
    }


def test_grafana_finds_prometheus_and_the_dashboards_where_compose_puts_them() -> None:
    """One source under the name that the panels ask for, changed by nobody."""
    compose = yaml.safe_load((MONITORING.parents[1] / "docker-compose.yml").read_text(encoding="utf-8"))
    services = compose["services"]
    (source,) = _read("grafana/provisioning/datasources/prometheus.yml")["datasources"]
    (provider,) = _read("grafana/provisioning/dashboards/ratchet.yml")["providers"]
    folder = provider["options"]["path"]
    assert (source["uid"], source["type"]) == (DATASOURCE["uid"], DATASOURCE["type"])
    assert source["url"] == "http://prometheus:9090"
    assert not source["editable"]
    assert f"./deploy/monitoring/grafana/dashboards:{folder}:ro" in services["grafana"]["volumes"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{folder}/{DASHBOARDS[0].path.name}"
    (job,) = _read("prometheus.yml")["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["metrics:8090"]}]
    assert source["jsonData"]["timeInterval"] == _read("prometheus.yml")["global"]["scrape_interval"]
    for name in ("prometheus", "grafana", "metrics"):
        assert "monitoring" in services[name]["networks"]


def test_nobody_can_log_in_to_grafana() -> None:
    """Who reaches it looks, as a viewer; there is no account, so there is no password to know or to guess."""
    compose = yaml.safe_load((MONITORING.parents[1] / "docker-compose.yml").read_text(encoding="utf-8"))
    environment = compose["services"]["grafana"]["environment"]
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert environment["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert environment["GF_AUTH_BASIC_ENABLED"] == "false"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert not [name for name in environment if "PASSWORD" in name]


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_tested_both_ways_and_explained(name: str) -> None:
    """A case in which it fires, one in which it does not, and a line in the how-to."""
    cases = [
        case
        for file in TESTS
        for test in _read(file)["tests"]
        for case in test["alert_rule_test"]
        if case["alertname"] == name
    ]
    assert {bool(case["exp_alerts"]) for case in cases} == {True, False}
    assert ALERTS[name]["labels"]["severity"] in ("critical", "warning")
    how_to = (MONITORING.parents[1] / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in how_to


@needs_promtool
@pytest.mark.parametrize("name", TESTS)
def test_alerts_fire_when_they_should(name: str) -> None:
    assert "SUCCESS" in promtool("test", "rules", name)


@needs_promtool
def test_promtool_takes_the_rules_and_the_configuration() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "alerts.yml")
    assert "is valid prometheus config file syntax" in promtool("check", "config", "prometheus.yml")


def test_what_is_written_for_grafana_is_json_it_can_read() -> None:
    """Each panel asks the provisioned source, at once or over the time shown."""
    for dashboard in DASHBOARDS:
        for panel in json.loads(dashboard.text_of_file())["panels"]:
            assert panel["datasource"] == DATASOURCE
            assert all(target["instant"] != target["range"] for target in panel["targets"])
