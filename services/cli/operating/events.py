"""`ratchet events`: what happened, oldest first, and what happens from now on."""

import datetime
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from services.cli.asking import connection
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.db import Database
from services.core.errors import ConfigurationError, DatabaseUnavailableError
from services.core.models import EVENT_GROUPS
from services.trainer.events import Event, sentence

POLL = 1.0  # seconds
PAGE = 500  # events read at once
AGO = re.compile(r"(?P<number>\d+)\s*(?P<unit>[smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
KINDS = tuple(kind for kinds in EVENT_GROUPS.values() for kind in kinds)


def run(
    environment: Environment,
    *,
    follow: bool,
    kinds: Sequence[str],
    track: str | None,
    since: str | None,
    most: int,
    as_json: bool,
) -> None:
    """Print the last events, or those since a time; with `follow`, what comes after them until Ctrl-C.

    Raises ConfigurationError for a kind or a time that is none.
    """
    now = datetime.datetime.now(datetime.UTC)
    wanted: dict[str, Any] = {"kinds": chosen(kinds), "track": track}
    start = None if since is None else moment(since, now)
    say = _json_line if as_json else _line
    with suppress(KeyboardInterrupt), connection.opened(environment, "ratchet events") as database:
        with database.transaction() as tx:
            last = int(tx.value("last_event_id"))
            rows = [] if start else tx.all("newest_events", **wanted, most=most)
        newest = (Event.of(row) for row in reversed(rows) if row.id <= last)
        for event in _after(database, 0, last, since=start, **wanted) if start else newest:
            print(say(event), flush=True)
        while follow:
            time.sleep(POLL)
            last = _print_after(database, last, wanted, say)


def chosen(kinds: Sequence[str]) -> list[str] | None:
    """Kinds by their own names and those of groups; None, for all, when none is named."""
    unknown = [name for name in kinds if name not in EVENT_GROUPS and name not in KINDS]
    if unknown:
        raise ConfigurationError(
            f"there are no events of the kind {', '.join(unknown)}:"
            f" expected some of {', '.join(EVENT_GROUPS)}, or {', '.join(KINDS)}"
        )
    return [kind for name in kinds for kind in EVENT_GROUPS.get(name, (name,))] or None


def moment(since: str, now: datetime.datetime) -> datetime.datetime:
    """`90m`, `2h`, `3d` before now, or a date with or without a time; without a zone it is UTC."""
    try:
        if ago := AGO.fullmatch(since.strip()):
            return now - datetime.timedelta(seconds=int(ago["number"]) * SECONDS[ago["unit"]])
        named = datetime.datetime.fromisoformat(since.strip())
    except (ValueError, OverflowError) as exc:
        raise ConfigurationError(
            f"--since {since!r}: expected 30m, 2h, 3d, or a date as 2026-11-21 or 2026-11-21T18:00"
        ) from exc
    return named if named.tzinfo else named.replace(tzinfo=datetime.UTC)


def _print_after(database: Database, last: int, wanted: dict[str, Any], say: Callable[[Event], str]) -> int:
    """Print what came after an id; the id up to which everything was seen."""
    try:
        with database.transaction() as tx:
            newest = int(tx.value("last_event_id"))
        for event in _after(database, last, newest, since=None, **wanted):
            print(say(event), flush=True)
            last = event.event_id
    except DatabaseUnavailableError:  # it will be back
        return last
    return max(last, newest)


def _after(database: Database, last: int, newest: int, **wanted: Any) -> Iterator[Event]:
    """Those after `last` up to `newest`, page by page."""
    while True:
        with database.transaction() as tx:
            rows = tx.all("events_after", after=last, most=PAGE, **wanted)
        yield from (Event.of(row) for row in rows if row.id <= newest)
        if len(rows) < PAGE or rows[-1].id >= newest:
            return
        last = rows[-1].id


def _line(event: Event) -> str:
    return f"{event.at:%Y-%m-%d %H:%M:%S}  {event.kind:<20} {inert(sentence(event))}"


def _json_line(event: Event) -> str:
    return json.dumps(event.as_json())
