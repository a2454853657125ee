"""`ratchet which-adapters PATH|SHA256|SOURCE`: who has learned from it, directly or through a parent."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.asking import connection
from services.cli.asking.locate import PathError, locate
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.db import Transaction
from services.core.models import Json
from services.processor.sources.paths import printable

SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Asked:
    """What a name stands for: contents, as the ledger numbers them."""

    what: str  # for a person
    contents: tuple[int, ...]


def run(environment: Environment, asked: str, *, as_json: bool) -> None:
    """Print every adapter of every track. Raises PathError for what was never stored."""
    with connection.opened(environment, "ratchet which-adapters") as database, database.transaction() as tx:
        found = contents_of(tx, asked, environment.settings.ingest_dir, Path.cwd())
        answer = answered(tx, found)
    print(json.dumps(answer) if as_json else "\n".join(lines(answer)))


def contents_of(tx: Transaction, asked: str, ingest: Path, here: Path) -> Asked:
    """By SHA-256, the name of a source, source/path, or a path from `here` into the ingest folder."""
    if SHA256.fullmatch(asked):
        content_id = tx.value("explain_address", sha256=asked)
        return _known(asked, f"the content {asked[:12]}…", [] if content_id is None else [content_id])
    name, _, below = printable(asked.rstrip("/")).partition("/")
    sources = _sources(tx, name)
    if sources and not below:
        return _known(asked, f"the source {name}", _of_folder(tx, sources, ""))
    if sources:
        return _known(asked, f"{name}/{below}", _of_path(tx, sources, below))
    place = locate(asked, ingest, here)
    if place.file is not None:
        digest = hashlib.sha256(place.file.read_bytes()).hexdigest()
        content_id = tx.value("explain_address", sha256=digest)
        return _known(asked, f"the text of {place.file}", [] if content_id is None else [content_id])
    sources = _sources(tx, place.name) if place.name is not None else []
    return _known(asked, place.shown, _of_path(tx, sources, place.path.rstrip("/")) if sources else [])


def answered(tx: Transaction, asked: Asked) -> Json:
    contents = list(asked.contents)
    rounds = tx.one("which_rounds", contents=contents)
    return {
        "what": asked.what,
        "contents": len(contents),
        "adapters": [_adapter(row) for row in tx.all("which_adapters", contents=contents)],
        "under_way": rounds.under_way,
        "judged_by": rounds.judged_by,
    }


def _adapters(number: int) -> str:
    return "1 adapter was" if number == 1 else f"{number} adapters were"


def lines(answer: Json) -> Iterator[str]:
    """A line for each adapter, the champions marked."""
    adapters = answer["adapters"]
    number = f"{answer['contents']:,} content{'s' if answer['contents'] != 1 else ''}"
    if adapters:
        direct = sum(each["how"] == "directly" for each in adapters)
        yield (
            f"{inert(answer['what'])} ({number}): {_adapters(direct)} trained on it,"
            f" {len(adapters) - direct} more by continuing from one that did"
        )
    else:
        yield f"{inert(answer['what'])} ({number}): no adapter was trained on it"
    for each in adapters:
        notes = [note for note in ("champion", "rejected") if each[note]]
        marks = f"  ({', '.join(notes)})" if notes else ""
        yield f"  {inert(each['adapter'])}  {_how(each)}{marks}"
    for name in answer["under_way"]:
        yield f"  {inert(name)} is being trained on it now"
    if answer["judged_by"]:
        yield f"{answer['judged_by']:,} of the contents were set aside by some round, to be judged by"


def _adapter(row: Any) -> Json:
    return {
        "adapter": f"{row.track}/{row.directory}",
        "track": row.track,
        "how": "inherited" if row.contents is None else "directly",
        "via": f"{row.track}/{row.via}",  # that was trained on it: itself, or its nearest ancestor
        "contents": row.contents or 0,
        "seen": row.seen,  # times; None: published before that was counted
        "champion": row.is_champion,
        "rejected": row.is_rejected,
        "receipt": row.receipt,
        "published_at": row.published_at.isoformat(timespec="seconds"),
    }


def _how(adapter: Json) -> str:
    if adapter["how"] == "inherited":
        return f"inherited from {inert(adapter['via'])}"
    seen = "" if adapter["seen"] is None else f", samples of them seen {adapter['seen']:,} times"
    return f"directly: {adapter['contents']:,} of the contents{seen}"


def _sources(tx: Transaction, name: str) -> list[int]:
    return [row.id for row in tx.all("which_sources", name=name)]


def _of_path(tx: Transaction, sources: list[int], path: str) -> list[int]:
    """Of a file; where there is none of that name, of a folder."""
    rows = tx.all("which_of_path", sources=sources, path=path)
    return [row.content_id for row in rows] or _of_folder(tx, sources, f"{path}/")


def _of_folder(tx: Transaction, sources: list[int], prefix: str) -> list[int]:
    return [row.content_id for row in tx.all("which_of_folder", sources=sources, prefix=prefix)]


def _known(asked: str, what: str, contents: list[int]) -> Asked:
    if not contents:
        raise PathError(
            f"nothing of {inert(printable(asked))} was ever stored: expected a SHA-256, a source,"
            " SOURCE/PATH, or a path into the ingest folder; `ratchet explain` says why a file was refused"
        )
    return Asked(what, tuple(sorted(contents)))
