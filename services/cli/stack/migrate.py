"""`ratchet migrate`: bring the database to this code's schema and give each service a login of its own."""

import logging
from pathlib import Path

from services.cli.stack import passwords
from services.core import db
from services.core.errors import ConfigurationError
from services.core.settings import Settings

log = logging.getLogger(__name__)

SERVICES = ("processor", "trainer", "metrics", "webhooks")
WAIT_SECONDS = 60.0  # for the database to answer


def migrate(settings: Settings) -> list[str]:
    """Apply the migrations the database lacks; their names.

    Waits up to 60 s for the database. With ROLE_SECRETS_DIR set, each service's password is made
    once, kept in <ROLE_SECRETS_DIR>/<service>/password, and set for its role. Safe to repeat, and
    safe when several do it at once. Raises DatabaseUnavailableError, MigrationError, and
    ConfigurationError when the passwords cannot be written.
    """
    target = settings.database()
    database = db.Database(target, application="ratchet migrate", min_conn=0, max_conn=1)
    try:
        database.run(lambda _transaction: None, give_up_after=WAIT_SECONDS)
    finally:
        database.close()
    logins = role_passwords(settings.role_secrets_dir) if settings.role_secrets_dir else {}
    applied = db.migrate(target, logins)
    log.info("applied %s", ", ".join(applied) if applied else "no migration: the schema is up to date")
    return applied


def role_passwords(directory: Path) -> dict[str, str]:
    """Role → password, each kept in <directory>/<service>/password and made when it is missing."""
    logins = {}
    try:
        for service in SERVICES:
            path = directory / service / "password"
            path.parent.mkdir(parents=True, exist_ok=True)
            logins[f"ratchet_{service}"] = passwords.kept(path, passwords.GROUP_READABLE)
    except OSError as exc:
        raise ConfigurationError(
            f"ROLE_SECRETS_DIR={directory}: a password cannot be kept there ({exc}): is it writable?"
        ) from exc
    return logins
