"""A track over a real repository's history: this one's own."""

import subprocess
from pathlib import Path

import pytest

from bench import time_forward
from services.core.db import Database
from services.core.settings import PROJECT

COMMITS = 40  # below which a history is a shallow copy's


@pytest.fixture
def repository() -> Path:
    counted = subprocess.run(
        ["git", "-c", "safe.directory=*", "rev-list", "--count", "--first-parent", "HEAD"],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if counted.returncode or int(counted.stdout) < COMMITS:
        pytest.skip("the project's history is not here: no git repository, or a shallow one")
    return PROJECT


def test_nothing_trained_on_is_ever_judged(repository: Path, database: Database, tmp_path: Path) -> None:
    """Over four rounds of a growing history; what holds is looked for apart from what chooses."""
    seen = time_forward.replay(repository, database, tmp_path, rounds=4, start=0.85)
    assert [each.faults for each in seen] == [()] * 4
    assert all(each.anchors for each in seen)
    assert len({each.through for each in seen}) > 1
