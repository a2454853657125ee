"""PostgreSQL: does it answer, is its schema this code's, do the services' logins work, is its clock right?"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import closing

from services.cli.asking import connection
from services.cli.doctor.finding import Finding, error, ok, skipped, warning
from services.cli.environment import Environment
from services.cli.stack.cluster import find_binaries
from services.cli.stack.migrate import SERVICES
from services.core import db, sql
from services.core.db import Database, Transaction
from services.core.errors import ConfigurationError, DatabaseUnavailableError, StackError
from services.core.settings import from_environment
from services.core.target import Target

OLDEST = 160_000  # server_version_num; 16 is what Compose runs
SKEW = 2.0  # seconds between two clocks that somebody will notice in the logs
MIGRATE = "`ratchet up` applies them, or `ratchet migrate` where it does not run"


def postgres(environment: Environment) -> Iterator[Finding]:
    """Everything about the database that is named, or that runs here; else whether one could."""
    try:
        target = connection.target(environment)
    except DatabaseUnavailableError:
        yield from embedded()
        return
    except ConfigurationError as exc:
        cure = "set POSTGRES_PASSWORD or DATABASE_URL (`make env` writes a fresh one to .env)"
        yield error("database", str(exc), cure)
        return
    database = Database(target, application="ratchet doctor", min_conn=0, max_conn=1)
    try:
        with closing(database), database.transaction() as tx:
            yield from server(tx, target)
            if tx.value("has_schema"):
                yield schema([(row.version, row.checksum) for row in tx.all("applied_migrations")])
            else:
                yield warning("schema", f"{target.dbname} is empty: no migration is applied yet", MIGRATE)
                return
    except DatabaseUnavailableError as exc:
        said, _, advice = str(exc).partition("; ")
        yield error("database", said, advice or "is it running, and is this its address?")
        return
    yield from logins(environment, target)


def embedded() -> Iterable[Finding]:
    """Whether `ratchet up` could start a PostgreSQL of its own."""
    try:
        find_binaries()
    except StackError as exc:
        return [error("database", str(exc), "`make setup` installs it")]
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        cure = "install util-linux, run Ratchet as an ordinary user, or set DATABASE_URL"
        return [error("database", "PostgreSQL does not run as root, and setpriv is not installed", cure)]
    return [ok("database", "none is named and none runs: `ratchet up` starts its own")]


def server(tx: Transaction, target: Target) -> Iterator[Finding]:
    """Its version, and how far its clock is from this machine's."""
    asked = time.time()
    row = tx.one("doctor_server")
    answered = time.time()
    said = f"PostgreSQL {row.version} answers at {target}"
    if row.number < OLDEST:
        yield warning("database", said, "use PostgreSQL 16 or newer: older ones are not tested")
    else:
        yield ok("database", said)
    yield clock(row.clock - (asked + answered) / 2, (answered - asked) / 2)


def clock(skew: float, doubt: float) -> Finding:
    """`skew`: seconds the database is ahead; known to `doubt` seconds, half of what the question took."""
    if abs(skew) - doubt <= SKEW:
        return ok("clock", f"the database's clock and this one agree to {abs(skew) + doubt:.1f} s")
    way = "ahead of" if skew > 0 else "behind"
    return warning(
        "clock",
        f"the database's clock is {abs(skew):.1f} s {way} this one: times of logs and rounds will not match",
        "let both machines follow a time server (chrony, systemd-timesyncd)",
    )


def schema(recorded: list[tuple[int, str]]) -> Finding:
    """What the database has against what this code has; `recorded`: version and SHA-256 of each migration."""
    known = {
        migration.version: hashlib.sha256(migration.text.encode()).hexdigest()
        for migration in sql.migrations()
    }
    applied = dict(recorded)
    if newer := sorted(applied.keys() - known.keys()):
        return error(
            "schema",
            f"the database has migrations up to {newer[-1]:04}, this code only up to {max(known):04}",
            "run the newer Ratchet that was here before: a schema never goes back",
        )
    if edited := sorted(version for version in applied if applied[version] != known[version]):
        return error(
            "schema",
            f"migration {edited[0]:04} is not the one that was applied: its file was edited since",
            "restore sql/migrations as it was, and add changes as a new migration",
        )
    if missing := sorted(known.keys() - applied.keys()):
        return warning("schema", f"{len(missing)} migrations are to be applied", MIGRATE)
    return ok("schema", f"all {len(known)} migrations are applied")


def logins(environment: Environment, target: Target) -> Iterator[Finding]:
    """Whether each service could log in with the password that is kept for it here."""
    folder = environment.home / "secrets"
    kept = [service for service in SERVICES if (folder / service / "password").exists()]
    if not kept:
        yield skipped("logins", f"no service's password is kept in {folder}: they are kept elsewhere")
        return
    wrong = []
    for service in kept:
        try:
            login = from_environment(environment.for_service(service, target)).database()
            db.connect(login, "ratchet doctor").close()
        except (ConfigurationError, DatabaseUnavailableError) as exc:
            wrong.append(error("logins", f"the {service} cannot log in: {exc}", "`ratchet up` sets it anew"))
    if missing := [service for service in SERVICES if service not in kept]:
        says = f"no password is kept for {', '.join(missing)} yet"
        wrong.append(warning("logins", says, "`ratchet up` makes it"))
    yield from wrong or [ok("logins", f"{', '.join(kept)} can log in, each as its own role")]
