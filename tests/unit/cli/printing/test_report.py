"""The table that ends a round."""

import io
import json

import pytest
from rich.console import Console

from services.cli.printing import report

PROMOTED = {
    "track": "demo",
    "number": 1,
    "state": "promoted",
    "verdict": {
        "promoted": True,
        "reason": "3.1 % fewer bits per byte",
        "against": "base",
        "bits_per_byte": {"base": 0.8342, "champion": None, "candidate": 0.8083},
        "improvement": 0.031,
        "low": 0.02,
        "high": 0.042,
        "held_out_files": 21,
        "held_out_bytes": 103_400,
    },
}
FAILED = {
    "track": "demo",
    "number": 2,
    "state": "failed",
    "verdict": {"promoted": False, "reason": "5 crashes"},
}


@pytest.fixture
def adapters(tmp_path):
    (tmp_path / "demo" / "round-0001").mkdir(parents=True)
    (tmp_path / "demo" / "current").symlink_to("round-0001")
    return tmp_path


def printed(outcome):
    file = io.StringIO()
    Console(file=file, width=120).print(report.table(outcome))
    return file.getvalue()


def test_a_promotion_shows_before_after_interval_reason_and_adapter(adapters):
    text = printed(report.outcome(PROMOTED, adapters))
    for part in ("Round 1 of demo: promoted", "0.8342", "0.8083", "3.10 %", "2.00 % to 4.20 %", "21 files"):
        assert part in text
    assert "3.1 % fewer bits per byte" in text
    assert str(adapters / "demo" / "current") in text.replace("\n", "")


def test_a_failed_round_says_why_and_claims_no_figures(adapters):
    text = printed(report.outcome(FAILED, adapters))
    assert "5 crashes" in text
    assert "bits per byte" not in text


def test_a_team_is_reported_in_tasks_solved_and_points(adapters):
    rates = {"base": 0.25, "candidate": 0.5}
    measured = {"metric": "rate", "pass_rates": rates, "bits_per_byte": {}, "held_out_tasks": 24}
    verdict = {**PROMOTED["verdict"], **measured, "improvement": 0.25, "low": 0.08, "high": 0.42}
    profiles = [{"role": "analyzer"}, {"role": "coder"}]
    (adapters / "demo" / "round-0001" / "profiles.json").write_text(json.dumps(profiles))
    outcome = report.outcome({**PROMOTED, "verdict": verdict}, adapters)
    text = printed(outcome)
    for part in (
        "25.0 % of the held-out tasks solved",
        "50.0 %",
        "25.0 points more than the base",
        "8.0 to 42.0",
    ):
        assert part in text
    assert "24 tasks" in text
    worse = report.outcome({**PROMOTED, "verdict": {**verdict, "improvement": -0.05}}, adapters)
    assert "5.0 points fewer than the base" in printed(worse)
    alike = report.outcome({**PROMOTED, "verdict": {**verdict, "improvement": 0.0}}, adapters)
    assert "none: as many as the base" in printed(alike)
    assert f"{adapters / 'demo' / 'current'}/coder" in report.how_to_use(outcome)


def test_what_it_had_to_beat_is_the_champion_once_there_is_one(adapters):
    bits = {"base": 0.9, "champion": 0.8, "candidate": 0.79}
    row = {**PROMOTED, "verdict": {**PROMOTED["verdict"], "against": "champion", "bits_per_byte": bits}}
    assert report.outcome(row, adapters).before == 0.8


def test_a_refusal_without_any_adapter_says_that_the_base_model_stands(tmp_path):
    outcome = report.outcome({**PROMOTED, "state": "refused"}, tmp_path)
    assert "the base model stands" in printed(outcome)
    assert report.how_to_use(outcome) is None


def test_how_to_use_it_is_three_lines_of_python_that_compile(adapters):
    code = report.how_to_use(report.outcome(PROMOTED, adapters))
    compile(code, "how to use", "exec")
    assert len(code.splitlines()) == 3
    assert str(adapters / "demo" / "current") in code


def test_markup_in_a_reason_is_text(adapters):
    """A path like [/tmp] must neither vanish nor break the table."""
    row = {**FAILED, "verdict": {"reason": "no [/bold] model"}}
    assert "no [/bold] model" in printed(report.outcome(row, adapters))


def test_json_tells_whether_it_was_promoted(adapters):
    assert report.outcome(PROMOTED, adapters).as_json()["promoted"] is True
    assert report.outcome(FAILED, adapters).as_json()["promoted"] is False


def closed(number, state="refused"):
    adapter = f"round-{number:04}" if state == "promoted" else None
    return {"id": number, "track": "demo", "state": state, "closed_at": "now", "adapter": adapter}


def snapshot(*rounds, champion="round-0001"):
    champion = champion and {"directory": champion}
    return {"rounds": rounds, "tracks": [{"name": "demo", "champion": champion}]}


def point(adapters, name):
    link = adapters / "demo" / "current"
    link.unlink(missing_ok=True)
    if name is not None:
        link.symlink_to(name)


def told(found, adapters):
    return [row["id"] for row in report.ended(found, set(), adapters)]


def test_a_round_that_ends_is_told_once_and_in_order(adapters):
    seen = {1}
    found = snapshot({**closed(4), "closed_at": None}, closed(3), closed(2), closed(1))
    assert [row["id"] for row in report.ended(found, seen, adapters)] == [2, 3]
    assert report.ended(found, seen, adapters) == []


def test_a_promotion_is_told_when_its_adapter_is_in_place(adapters):
    """Its row is committed a moment before `current` moves."""
    found = snapshot(closed(2, "promoted"), champion="round-0002")
    assert told(found, adapters) == []
    point(adapters, None)
    assert told(found, adapters) == []
    point(adapters, "round-0002")
    assert told(found, adapters) == [2]


def test_a_promotion_overtaken_by_the_next_is_told_too(adapters):
    point(adapters, "round-10000")
    overtaken = snapshot(closed(10000, "promoted"), closed(9999, "promoted"), champion="round-10000")
    assert told(overtaken, adapters) == [9999, 10000]


@pytest.mark.parametrize("back_to", ["round-0001", None])
def test_a_promotion_that_was_taken_back_is_told_too(adapters, back_to):
    """By the canary, or by a person, before anyone looked: to the champion before, or to the base model."""
    found = snapshot(closed(2, "promoted"), champion="round-0002")
    point(adapters, back_to)
    assert told(found, adapters) == []
    assert told(snapshot(closed(2, "promoted"), champion=back_to), adapters) == [2]
