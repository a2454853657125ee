"""SQL lives in files. A query file reads: `-- name --`, a line that says what it does, the query."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from services.core.settings import PROJECT

MIGRATIONS = PROJECT / "sql" / "migrations"
QUERIES = PROJECT / "sql" / "queries"
HEADER = re.compile(r"^-- (?P<name>[a-z0-9_]+) --\n-- (?P<description>[^\n]+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Query:
    name: str
    description: str
    text: str  # parameters as %(name)s


@functools.cache
def queries() -> dict[str, Query]:
    """Every named query below sql/queries, read once."""
    found: dict[str, Query] = {}
    for path in sorted(QUERIES.glob("*.sql")):
        for query in parse(path.read_text(encoding="utf-8")):
            if query.name in found:
                raise ValueError(f"{path}: the query {query.name!r} is defined twice")
            found[query.name] = query
    return found


def parse(text: str) -> list[Query]:
    """The queries of one file, in order."""
    headers = list(HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    return [
        Query(header["name"], header["description"], text[header.end() : end].strip().rstrip(";"))
        for header, end in zip(headers, ends, strict=False)  # no header: no query
    ]


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    text: str


def migrations(directory: Path = MIGRATIONS) -> list[Migration]:
    """The migrations in order of version; raises ValueError when two share one or one is missing."""
    found = []
    for path in sorted(directory.glob("*.sql")):
        version, _, name = path.stem.partition("_")
        found.append(Migration(int(version), name, path.read_text(encoding="utf-8")))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"{directory}: migrations must be numbered 0001, 0002, … without a gap")
    return found
