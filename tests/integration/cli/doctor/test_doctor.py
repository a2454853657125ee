"""`ratchet doctor` on a real PostgreSQL."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.doctor import database as check
from services.cli.doctor.finding import Finding, Status
from services.cli.environment import Environment
from services.cli.stack import passwords
from services.cli.stack.migrate import SERVICES
from services.core import db
from services.core.target import Target
from tests.conftest import ROLE_PASSWORD
from tests.integration.cli.conftest import variables


def found(here: Environment) -> dict[str, Finding]:
    return {finding.check: finding for finding in check.postgres(here)}


def test_a_migrated_database_is_well(settings: Environment) -> None:
    told = found(settings)
    assert {name: each.status for name, each in told.items()} == {
        "database": Status.OK, "clock": Status.OK, "schema": Status.OK, "logins": Status.SKIPPED,
    }  # fmt: skip
    assert "PostgreSQL 1" in told["database"].says


def test_an_empty_database_is_to_be_migrated(empty_target: Target, tmp_path: Path) -> None:
    here = environment.read(variables(empty_target, tmp_path, tmp_path / "home"), project=tmp_path)
    assert found(here)["schema"].status is Status.WARNING
    assert "ratchet migrate" in str(found(here)["schema"].cure)


def test_a_migration_that_was_edited_is_an_error(settings: Environment, database: db.Database) -> None:
    with database.transaction() as tx:
        tx._cursor.execute("UPDATE schema_migrations SET checksum = 'x' WHERE version = 3")
    assert "migration 0003" in found(settings)["schema"].says


def test_a_database_that_does_not_answer_is_an_error_with_what_to_look_at(unreachable: Environment) -> None:
    (finding,) = check.postgres(unreachable)
    assert finding.status is Status.ERROR
    assert "cannot log in to PostgreSQL at nobody@127.0.0.1:1/none" in finding.says
    assert finding.cure == "is it running, and is this its address?"


def test_a_wrong_password_is_an_error_and_not_told(target: Target, tmp_path: Path) -> None:
    wrong = variables(target, tmp_path, tmp_path / "home")
    wrong["DATABASE_URL"] = wrong["DATABASE_URL"].replace(
        target.password.get_secret_value(), "not-the-password"
    )
    (finding,) = check.postgres(environment.read(wrong, project=tmp_path))
    assert finding.cure == "check POSTGRES_USER and POSTGRES_PASSWORD"
    assert "not-the-password" not in finding.says


@pytest.fixture
def kept(settings: Environment, role_target: Callable[[str], Target]) -> Path:
    """The services' passwords where `ratchet up` keeps them."""
    for service in SERVICES:
        role_target(f"ratchet_{service}")
        folder = settings.home / "secrets" / service
        folder.mkdir(parents=True)
        passwords.write(folder / "password", ROLE_PASSWORD)
    return settings.home / "secrets"


def test_services_can_log_in(settings: Environment, kept: Path) -> None:
    assert found(settings)["logins"].status is Status.OK


def test_a_service_that_cannot_log_in_is_named(settings: Environment, kept: Path) -> None:
    (kept / "trainer" / "password").write_text("another")
    finding = found(settings)["logins"]
    assert finding.status is Status.ERROR
    assert "the trainer cannot log in" in finding.says


def test_a_service_whose_password_is_not_made_yet_is_a_warning(settings: Environment, kept: Path) -> None:
    """As after an update that brought a service."""
    (kept / "metrics" / "password").unlink()
    assert found(settings)["logins"].says == "no password is kept for metrics yet"


def test_without_a_database_there_must_be_one_to_start(tmp_path: Path, monkeypatch) -> None:
    here = environment.read({"RATCHET_HOME": str(tmp_path)}, project=tmp_path)
    assert "`ratchet up` starts its own" in found(here)["database"].says
    monkeypatch.setattr("services.cli.stack.cluster.importlib.util.find_spec", lambda _name: None)
    assert found(here)["database"].status is Status.ERROR
