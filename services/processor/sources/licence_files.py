"""The licence of a source: that of the licence texts at its top."""

import os
import re
from collections.abc import Iterator

from services.processor.sources import source
from services.processor.sources.options import Options
from services.processor.sources.paths import printable
from services.processor.sources.source import Source
from services.processor.stages import licence
from services.processor.values import Found, Read

# LICENSE, LICENSE-MIT, COPYING.LESSER, licence.txt; no code about licences
NAME = re.compile(
    r"(?:licen[sc]e|copying|unlicense|copyright)(?:-[\w.+-]{1,40}|\.(?:lesser|lib|mit|apache|bsd|gpl\w*|txt|md|rst))?"
    r"(?<!\.py)(?<!\.go)(?<!\.rs)(?<!\.js)(?<!\.ts)(?<!\.rb)(?<!\.java)",
    re.IGNORECASE,
)
MOST = 8  # licence texts of one source


def of_source(found: Source, options: Options, is_needed: bool) -> str | None:
    """The SPDX expression of its licence texts, several of them joined by OR; None: it has none we know.

    An archive is read through for it only when `is_needed`: its members come in any order.
    """
    if found.kind is source.Kind.ARCHIVE and not is_needed:
        return None
    known = {name for text in _texts(found, options) if (name := licence.of_text(text)) is not None}
    return " OR ".join(sorted(known)) or None


def _texts(found: Source, options: Options) -> Iterator[str]:
    if found.kind is source.Kind.ARCHIVE:
        members = (
            data
            for member, data in source.stream(found, options)
            if isinstance(data, bytes) and is_at_top(member.path, depth=1)
        )
        for _, data in zip(range(MOST), members, strict=False):
            yield data.decode("utf-8", "replace")
        return
    with source.reader(found) as files:
        for entry in _at_top(found, options):
            read = files.read(entry)
            if isinstance(read, Read):
                yield read.data.decode("utf-8", "replace")


def _at_top(found: Source, options: Options) -> list[Found]:
    if found.kind is source.Kind.BARE:
        walk = (entry for entry in source.walk(found, options) if is_at_top(entry.path, depth=0))
        return [entry for _, entry in zip(range(MOST), walk, strict=False) if not entry.refused]
    names = sorted(path.name for path in found.path.iterdir() if is_at_top(path.name, depth=0))
    return [Found(printable(name), 0, 0, raw=os.fsencode(name)) for name in names[:MOST]]


def is_at_top(path: str, *, depth: int) -> bool:
    """Whether this is a licence text not deeper than so many directories."""
    return path.count("/") <= depth and NAME.fullmatch(path.rpartition("/")[2]) is not None
