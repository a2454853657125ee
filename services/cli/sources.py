"""`ratchet sources`: what lies, or lay, in the ingest folder."""

from collections.abc import Iterator
from datetime import datetime

from services.cli import connection
from services.cli.environment import Environment
from services.cli.inert import inert
from services.core.models import Json
from services.metrics.document import strict_json


def run(environment: Environment, *, as_json: bool) -> None:
    """Print every source. Raises DatabaseUnavailableError."""
    with connection.opened(environment, "ratchet sources") as database, database.transaction() as transaction:
        sources = [row._asdict() for row in transaction.all("list_sources")]
    print(strict_json({"sources": sources}) if as_json else "\n".join(lines(sources)))


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
            f"{row['retired']:>9,}  {(row['commit_id'] or '–')[:12]:<13}{_when(row['last_scanned_at']):<17}"
            f"{inert(row['licence'] or '–')}"
        )
        if row["problem"]:
            yield f"{'':<{width}}  {inert(row['problem'])}"


def _when(moment: datetime | None) -> str:
    return "–" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
