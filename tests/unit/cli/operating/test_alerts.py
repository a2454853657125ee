"""`ratchet alerts`: in words, and whether it is bad."""

import datetime
import json

import pytest

from services.cli.operating import alerts
from services.metrics.alerting import Alert, Severity

NOW = datetime.datetime(2026, 11, 21, 18, 0, tzinfo=datetime.UTC)
BAD = Alert("disk", Severity.BAD, "The disk is full", "1 GiB is free.", "Make room.", NOW)
WAIT = Alert("failing", Severity.WAIT, "Round 3 failed", "CUDA \x1b[2Jerror", "Do `it`.", None, "demo")


@pytest.fixture
def found(monkeypatch):
    """`found(alert, …)`: what there is to be told."""

    def chosen(*told):
        monkeypatch.setattr(alerts.status, "look", lambda _: (type("Reading", (), {"value": None}), None))
        monkeypatch.setattr(alerts, "alerts", lambda *_: list(told))

    return chosen


def test_nothing_is_said_in_words_too(found, capsys) -> None:
    found()
    assert alerts.run(None, as_json=False)
    assert capsys.readouterr().out == "nothing needs you\n"


def test_an_alert_has_what_why_and_cure(found, capsys) -> None:
    found(BAD, WAIT)
    assert not alerts.run(None, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "act now  The disk is full (since 2026-11-21 18:00 UTC)",
        "         1 GiB is free.",
        "         → Make room.",
        "look     Round 3 failed",
        r"         CUDA \x1b[2Jerror",
        "         → Do `it`.",
    ]


def test_what_can_wait_is_exit_status_0(found, capsys) -> None:
    found(WAIT)
    assert alerts.run(None, as_json=True)
    assert json.loads(capsys.readouterr().out)["alerts"][0]["track"] == "demo"
