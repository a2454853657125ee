"""What is to be forgotten: a source, a folder of it, or a file of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from services.core.db import Transaction
from services.core.errors import ForgetError

LOOSE = "."  # the source of files that lie in the ingest folder itself


@dataclass(frozen=True)
class Target:
    source: str
    source_id: int
    path: str  # below the source; a folder's with a slash at its end; empty: the whole source

    @property
    def shown(self) -> str:
        return f"{self.source}/{self.path}" if self.path else self.source

    @property
    def query(self) -> dict[str, Any]:
        """The parameters by which queries know it."""
        return {"source": self.source, "source_id": self.source_id, "path": self.path}


def find(tx: Transaction, asked: str) -> Target:
    """What SOURCE, SOURCE/folder, SOURCE/folder/ or SOURCE/path/to/file names, there now or not any more.

    Raises ForgetError, with the nearest names, when the database knows no such source or path.
    """
    name, slash, path = asked.removeprefix("./").partition("/")
    source_id = tx.value("forget_source", source=name)
    if source_id is None and not slash:  # perhaps a file that lies in the ingest folder itself
        loose = tx.value("forget_source", source=LOOSE)
        if loose is not None and tx.one("forget_is_path", source_id=loose, path=name).is_file:
            return Target(LOOSE, loose, name)
    if source_id is None:
        names = [row.name for row in tx.all("forget_nearest_sources")]
        raise ForgetError(f"there is no source {name!r}: {_hint(name, names, 'nothing was taken in yet')}")
    if not path:
        return Target(name, source_id, "")
    bare = path.rstrip("/")
    there = tx.one("forget_is_path", source_id=source_id, path=bare)
    if there.is_file and not path.endswith("/"):
        return Target(name, source_id, path)
    if there.is_folder:
        return Target(name, source_id, bare + "/")
    known = [row.path for row in tx.all("forget_paths", source_id=source_id)]
    raise ForgetError(f"{name} has no {path!r} and never had: {_hint(path, known, 'no file of it is known')}")


def _hint(asked: str, known: Iterable[str], none: str) -> str:
    names = list(known)
    if not names:
        return none
    near = get_close_matches(asked, names, n=3, cutoff=0.5)
    return f"did you mean {', '.join(near)}?" if near else f"for example {', '.join(names[:3])}"
