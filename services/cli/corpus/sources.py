"""`ratchet sources`: what lies, or lay, in the ingest folder."""

from collections.abc import Iterator
from difflib import get_close_matches

from services.cli.asking import connection
from services.cli.environment import Environment
from services.cli.printing.figures import moment
from services.cli.printing.inert import inert
from services.core.db import Transaction
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.metrics.document import strict_json


def run(environment: Environment, *, as_json: bool) -> None:
    """Print every source. Raises DatabaseUnavailableError."""
    with connection.opened(environment, "ratchet sources") as database, database.transaction() as transaction:
        sources = [row._asdict() for row in transaction.all("list_sources")]
    print(strict_json({"sources": sources}) if as_json else "\n".join(lines(sources)))


def require(transaction: Transaction, name: str | None) -> None:
    """Raises ConfigurationError for a source that never was, with those that are called nearly so."""
    names = [row.name for row in transaction.all("source_names")]
    if name is None or name in names:
        return
    near = ", ".join(map(inert, get_close_matches(name, names, 3)))
    hint = f", expected {near}" if near else ""
    raise ConfigurationError(f"no source is called {inert(name)!r}{hint}: `ratchet sources` lists them")


def lines(sources: list[Json]) -> Iterator[str]:
    if not sources:
        yield "no source yet: drop repositories into the ingest folder, or `ratchet add` one"
        return
    width = max(6, *(len(inert(row["name"])) for row in sources))
    yield (
        f"{'source':<{width}}  {'kind':<10}{'kept':>8}{'refused':>9}{'retired':>9}  {'commit':<13}"
        f"{'last scan':<17}licence"
    )
    for row in sources:
        yield (
            f"{inert(row['name']):<{width}}  {row['kind']:<10}{row['kept']:>8,}{row['refused']:>9,}"
            f"{row['retired']:>9,}  {(row['commit_id'] or '–')[:12]:<13}{moment(row['last_scanned_at']):<17}"
            f"{inert(row['licence'] or '–')}"
        )
        if row["problem"]:
            yield f"{'':<{width}}  {inert(row['problem'])}"
