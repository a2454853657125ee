"""`ratchet migrate` on a real database."""

import multiprocessing
import stat
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import SecretStr

from services.cli.stack.migrate import SERVICES, migrate
from services.core import db, sql
from services.core.errors import ConfigurationError
from services.core.settings import Settings
from services.core.target import Target


def settings_for(target: Target, secrets_dir: Path | None = None) -> Settings:
    return Settings(
        postgres_host=target.host,
        postgres_port=target.port,
        postgres_db=target.dbname,
        postgres_user=target.user,
        postgres_password=target.password,
        role_secrets_dir=secrets_dir,
    )


def password_of(secrets_dir: Path, service: str) -> str:
    return (secrets_dir / service / "password").read_text(encoding="ascii").strip()


def test_applies_every_migration_once(empty_target: Target) -> None:
    """The first run applies all, the second none."""
    everything = [migration.name for migration in sql.migrations()]
    assert [migrate(settings_for(empty_target)), migrate(settings_for(empty_target))] == [everything, []]


def test_makes_and_keeps_a_login_for_each_service(empty_target: Target, tmp_path: Path) -> None:
    """The password in the file opens the database, is private, and is the same after a second run."""
    migrate(settings_for(empty_target, tmp_path))
    first = {service: password_of(tmp_path, service) for service in SERVICES}
    migrate(settings_for(empty_target, tmp_path))
    for service, password in first.items():
        login = {"user": f"ratchet_{service}", "password": SecretStr(password)}
        db.connect(empty_target.model_copy(update=login)).close()
        path = tmp_path / service / "password"
        assert password_of(tmp_path, service) == password
        assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0


def test_passwords_that_are_given_are_taken_and_nothing_is_written(
    empty_target: Target, tmp_path: Path
) -> None:
    """As Kubernetes mounts a Secret: links to links, in a folder that cannot be written."""
    held, seen = tmp_path / "..data", tmp_path / "roles"
    for service in SERVICES:
        (held / service).mkdir(parents=True)
        (held / service / "password").write_text(f"given-to-{service}")
        (seen / service).parent.mkdir(exist_ok=True)
        (seen / service).symlink_to(held / service)
    before = sorted(tmp_path.rglob("*"))
    migrate(settings_for(empty_target, seen))
    for service in SERVICES:
        login = {"user": f"ratchet_{service}", "password": SecretStr(f"given-to-{service}")}
        db.connect(empty_target.model_copy(update=login)).close()
    assert sorted(tmp_path.rglob("*")) == before


def test_unwritable_secrets_directory_is_named(empty_target: Target, tmp_path: Path) -> None:
    """A ROLE_SECRETS_DIR that cannot be a directory is a ConfigurationError naming it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=f"ROLE_SECRETS_DIR={tmp_path}/file"):
        migrate(settings_for(empty_target, tmp_path / "file"))


def run_in_process(settings: Settings, barrier: "multiprocessing.synchronize.Barrier") -> None:
    barrier.wait(30)
    migrate(settings)


@pytest.mark.parametrize("attempt", range(4))
def test_three_at_once_on_an_empty_database(empty_target: Target, tmp_path: Path, attempt: int) -> None:
    """Three processes that migrate the same empty database at the same moment all succeed."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(3)
    settings = settings_for(empty_target, tmp_path)
    processes = [context.Process(target=run_in_process, args=(settings, barrier)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0], attempt
    with closing(db.connect(empty_target)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM schema_migrations")
        assert cursor.fetchone()[0] == len(sql.migrations())
