"""What the commands that ask about the corpus run with: a scanned repository in a real database."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.environment import Environment
from services.core.target import Target
from tests.integration.processor.conftest import files, ingest, judge, repo, rows, rules, scan

__all__ = ["files", "ingest", "judge", "repo", "rows", "rules", "scan"]


def variables(login: Target, ingest: Path, home: Path) -> dict[str, str]:
    password = login.password.get_secret_value()
    return {
        "DATABASE_URL": f"postgresql://{login.user}:{password}@{login.host}:{login.port}/{login.dbname}",
        "INGEST_DIR": str(ingest),
        "RATCHET_HOME": str(home),
        "BENCHMARKS_DIR": str(home / "benchmarks"),
    }


@pytest.fixture
def settings(target: Target, ingest: Path, tmp_path: Path) -> Environment:
    """The environment of a command: the test's database as its owner, the test's ingest folder."""
    return environment.read(variables(target, ingest, tmp_path / "home"), project=tmp_path)


@pytest.fixture
def settings_of(role_target, ingest: Path, tmp_path: Path) -> Callable[[str], Environment]:
    """`settings_of("ratchet_processor")`: the same with the rights of a service."""

    def as_role(role: str) -> Environment:
        return environment.read(variables(role_target(role), ingest, tmp_path / "home"), project=tmp_path)

    return as_role


@pytest.fixture
def unreachable(ingest: Path, tmp_path: Path) -> Environment:
    """An environment whose database is not there."""
    nowhere = {
        "DATABASE_URL": "postgresql://nobody:nothing@127.0.0.1:1/none",
        "INGEST_DIR": str(ingest),
        "RATCHET_HOME": str(tmp_path / "home"),
        "BENCHMARKS_DIR": str(tmp_path / "benchmarks"),
    }
    return environment.read(nowhere, project=tmp_path)
