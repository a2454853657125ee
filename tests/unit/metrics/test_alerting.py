"""What is worth a person's look, from what was read."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.metrics.alerting import Severity, alerts
from services.metrics.health import Health, Part, Status

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WELL = Health({"database": Part(Status.OK, "answers"), "trainer": Part(Status.OK, "idle", "idle")})
GIB = 2**30


def snapshot(**parts: Any) -> dict[str, Any]:
    """A snapshot in which nothing is wrong, but for what is given."""
    track = {"name": "demo", "champion": {"round": 9}}
    return {"tracks": [track], "rounds": [], "services": [], "suites": [], "stalls": [], **parts}


def closed(number: int, state: str, **verdict: Any) -> dict[str, Any]:
    return {
        "track": "demo",
        "number": number,
        "state": state,
        "attempts": 1,
        "opened_at": NOW - timedelta(hours=24 - number),
        "closed_at": NOW - timedelta(hours=23 - number),
        "verdict": verdict,
    }


def suite(
    number: int, candidate: float, base: float | None = 0.5, version: str = "v1"
) -> list[dict[str, Any]]:
    """HumanEval after a promoted round."""
    row = {"track": "demo", "round": number, "state": "promoted", "suite": "humaneval", "version": version}
    return [
        {**row, "subject": "base", "figures": {"pass@1": base}},
        {**row, "subject": "candidate", "figures": {"pass@1": candidate}},
    ]


def beat(free: float, total: float = 1000 * GIB) -> dict[str, Any]:
    disks = [{"path": "/adapters", "free_bytes": free, "total_bytes": total}]
    return {"service": "trainer", "detail": {"disks": disks}}


def told(value: dict[str, Any] | None, health: Health = WELL) -> list[tuple[str, str]]:
    return [(alert.kind, str(alert.severity)) for alert in alerts(value, health)]


def test_nothing_wrong_is_no_alert() -> None:
    """Well parts, promoted rounds, roomy disks."""
    value = snapshot(rounds=[closed(2, "promoted"), closed(1, "refused")], services=[beat(500 * GIB)])
    assert told(value) == []


@pytest.mark.parametrize(
    ("part", "title"),
    [
        (Part(Status.ILL, "no trainer has been seen for 70 s: is it running?"), "No trainer has been seen"),
        (Part(Status.ILL, "error: the model is missing", "error"), "The trainer cannot work"),
        (Part(Status.ILL, "the trainer has been silent for 50 s", "training"), "The trainer is silent"),
    ],
)
def test_an_ill_part_is_said_with_what_to_do(part: Part, title: str) -> None:
    """One that was never seen, one that says why, one that says nothing."""
    (alert,) = alerts(snapshot(), Health({"trainer": part}))
    assert (alert.kind, alert.title, alert.text) == ("stalled", title, part.reason)
    assert "ratchet" in alert.cure


def test_an_ill_part_is_ill_since_it_was_first_found_so() -> None:
    """The trainers of each track have their own beginning."""
    ill = Part(Status.ILL, "error: no room", "error")
    health = Health({"trainer": Part(Status.ILL, "demo: error", "error", tracks={"demo": ill})})
    stalls = [
        {"service": "trainer", "track": "other", "suspected_at": NOW - timedelta(hours=5)},
        {"service": "trainer", "track": "demo", "suspected_at": NOW},
    ]
    (alert,) = alerts(snapshot(stalls=stalls), health)
    assert (alert.since, alert.track) == (NOW, "demo")


def test_without_a_snapshot_health_alone_speaks() -> None:
    """The database is away: that is said, and nothing is made up."""
    assert told(None, Health({"database": Part(Status.ILL, "no answer")})) == [("stalled", "bad")]


def test_rounds_that_failed_in_a_row() -> None:
    """One is worth a look, two need somebody; since the first of them."""
    one = [closed(3, "failed", reason="CUDA out of memory"), closed(2, "promoted")]
    two = [closed(4, "failed"), *one]
    assert told(snapshot(rounds=one)) == [("failing", "wait")]
    (alert,) = alerts(snapshot(rounds=two), WELL)
    assert (alert.severity, alert.since, alert.url) == (Severity.BAD, one[0]["closed_at"], "/rounds/demo/4")


def test_refusals_in_a_row_name_what_the_gate_lacks() -> None:
    """Two are the gate's daily work; three are said, with the files that would be needed."""
    rounds = [closed(n, "refused", files_needed=400, held_out_files=61) for n in (4, 3, 2)]
    assert told(snapshot(rounds=rounds[1:])) == []
    (alert,) = alerts(snapshot(rounds=rounds), WELL)
    assert alert.kind == "refusing"
    assert "61 held-out files and would need about 400" in alert.cure


def test_a_round_that_crashed_is_said_while_it_is_open() -> None:
    """The second attempt, not the first."""
    opened = {**closed(5, "open"), "closed_at": None}
    assert told(snapshot(rounds=[opened])) == []
    assert told(snapshot(rounds=[{**opened, "attempts": 2}])) == [("failing", "wait")]


@pytest.mark.parametrize(
    ("free", "total", "expected"),
    [
        (30 * GIB, 1000 * GIB, []),
        (15 * GIB, 100 * GIB, []),  # a small disk with a sixth free
        (15 * GIB, 1000 * GIB, [("disk", "wait")]),
        (1 * GIB, 8 * GIB, [("disk", "bad")]),
    ],
)
def test_a_disk_runs_full(free: float, total: float, expected: list[tuple[str, str]]) -> None:
    """Little in bytes and as a share is tight; less than a checkpoint may need is full."""
    assert told(snapshot(services=[beat(free, total), beat(free, total)])) == expected


@pytest.mark.parametrize("detail", [None, {}, {"disks": 7}, {"disks": [{"free_bytes": "no"}]}])
def test_what_a_heartbeat_says_wrongly_is_no_disk(detail: object) -> None:
    """Older services say nothing of disks."""
    assert told(snapshot(services=[{"service": "trainer", "detail": detail}])) == []


def test_what_is_served_is_worse_than_the_base() -> None:
    """By more than the gate's margin of two points."""
    rounds = [closed(1, "promoted")]
    assert told(snapshot(rounds=rounds, suites=suite(1, 0.49))) == []
    assert told(snapshot(rounds=rounds, suites=suite(1, 0.45))) == [("forgetting", "wait")]


def test_a_suite_that_falls_with_every_promotion() -> None:
    """Each step within the margin, together beyond it, though still above the base."""
    rounds = [closed(number, "promoted") for number in (1, 2, 3, 4)]
    falling = [row for number, rate in zip((1, 2, 3, 4), (0.60, 0.59, 0.58, 0.57), strict=True)
               for row in suite(number, rate)]  # fmt: skip
    (alert,) = alerts(snapshot(rounds=rounds, suites=falling), WELL)
    assert "fell in 3 promotions in a row, from 60.0 % to 57.0 %" in alert.text
    assert alert.since == rounds[1]["closed_at"]
    assert told(snapshot(rounds=rounds, suites=falling[:6])) == []


def test_only_what_is_served_and_comparable_counts() -> None:
    """Not a round that was rolled back from, nor another version of the suite."""
    rounds = [closed(number, "promoted") for number in (1, 2)]
    back = [{"name": "demo", "champion": {"round": 1}}]
    both = suite(1, 0.6) + suite(2, 0.3)
    assert told(snapshot(rounds=rounds, suites=both, tracks=back)) == []
    assert told(snapshot(rounds=rounds, suites=suite(1, 0.3, version="v0") + suite(2, 0.6))) == []


def test_the_worst_stands_first() -> None:
    """Bad before what can wait."""
    value = snapshot(rounds=[closed(3, "failed")], services=[beat(0)])
    assert told(value) == [("disk", "bad"), ("failing", "wait")]
