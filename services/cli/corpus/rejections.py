"""`ratchet rejections`: files that were refused, each with its reason, page by page."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from services.cli.asking import connection
from services.cli.corpus import sources
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.reason_texts import text as reason_text
from services.metrics.document import strict_json
from services.processor.reasons import Reason


def run(
    environment: Environment,
    *,
    reason: str | None,
    source: str | None,
    most: int,
    after: int,
    as_json: bool,
) -> None:
    """Print a page of them. Raises ConfigurationError for a reason or a source that is none."""
    check_reason(reason)
    with connection.opened(environment, "ratchet rejections") as database, database.transaction() as tx:
        sources.require(tx, source)
        rows = tx.all("api_rejections", after=after, reason=reason, source=source, limit=most + 1)
    found = [row._asdict() | {"why": reason_text(row.reason)} for row in rows[:most]]
    more = found[-1]["id"] if len(rows) > most else None
    if as_json:
        print(strict_json({"rejections": found, "next_after": more}))
    else:
        print("\n".join(lines(found, more)))


def check_reason(reason: str | None) -> None:
    if reason is None or reason in list(Reason):
        return
    near = get_close_matches(reason, list(Reason), 3) or sorted(Reason)
    raise ConfigurationError(f"no file is refused for {inert(reason)!r}: expected {', '.join(near)}")


def lines(found: Sequence[Json], more: int | None) -> Iterator[str]:
    """SOURCE/PATH, the reason, its figures; each reason is explained where it first stands."""
    if not found:
        yield "no file is refused so"
        return
    explained: set[str] = set()
    for row in found:
        detail = f" ({inert(row['detail'])})" if row["detail"] else ""
        yield f"{inert(row['source'])}/{inert(row['path'])}: {row['reason']}{detail}"
        if row["reason"] not in explained:
            explained.add(row["reason"])
            yield f"    {row['reason']}: {row['why'] or 'a reason of another version'}"
    if more is not None:
        yield f"there are more: add --after {more}"
