"""Reports that outlive an interruption of their round."""

from pathlib import Path

import pytest

from services.core.models import Subject
from services.trainer.reinforcement.measured import kept
from services.trainer.suites.suite import Report, Score

SCORE = Score("a" * 64, "toy/1", "toy/1", "pass@1", 0.5, detail={"samples": 2, "passed": 1})
REPORTS = {"tasks": Report("tasks", "v", (SCORE,), 1.5, figures={"pass@1": 0.5})}


def never() -> dict[str, Report]:
    raise AssertionError("it is measured again")


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    assert kept(tmp_path / "round", Subject.BASE, lambda: REPORTS) == REPORTS
    assert kept(tmp_path / "round", Subject.BASE, never) == REPORTS


def test_base_and_champion_are_kept_apart(tmp_path: Path) -> None:
    kept(tmp_path, Subject.BASE, lambda: REPORTS)
    assert kept(tmp_path, Subject.CHAMPION, dict) == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"tasks": {"scores": [{}]}}'])
def test_a_damaged_file_is_measured_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "base-reports.json").write_text(text)
    assert kept(tmp_path, Subject.BASE, lambda: REPORTS) == REPORTS
