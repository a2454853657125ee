"""What a source holds now beside what is known of it: which files are to be read, and which are gone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from services.processor.claims import Entry
from services.processor.forgotten import Tombstones
from services.processor.reasons import BY_THE_WALK, TRIED_AGAIN
from services.processor.sources.archives import ITSELF
from services.processor.sources.walk import Walk
from services.processor.values import Found, Known, Rejection


@dataclass
class Comparison:
    """One source, compared once. Its methods yield what is new or changed, and tell `gone` of the rest."""

    known: Iterator[Known]  # in the order of their paths
    forgotten: Tombstones
    rules: int  # digest of today's
    gone: Callable[[Known], None]
    stop: Callable[[], object]
    unchanged: int = 0

    def tree(self, walk: Walk) -> Iterator[Entry]:
        """Both in the order of paths."""
        row = next(self.known, None)
        for entry in walk:
            if self.stop():
                return
            found = self.forgotten.marked(entry)
            while row is not None and row.path < found.path:
                self._pass_over(row, walk.unlisted)
                row = next(self.known, None)
            is_known = row is not None and row.path == found.path
            if row is not None and is_known and _is_unchanged(found, row, self.rules):
                self.unchanged += 1
            else:
                yield Entry(found, is_known)
            if is_known:
                row = next(self.known, None)
        while row is not None:
            self._pass_over(row, walk.unlisted)
            row = next(self.known, None)

    def archive(self, members: Iterable[tuple[Found, bytes | Rejection]]) -> Iterator[Entry]:
        """The members come in an order of their own: all are yielded."""
        known = {row.path: row for row in self.known}
        read_to_its_end = True
        for member, data in members:
            if self.stop():
                return
            found = self.forgotten.marked(member)
            is_known = known.pop(found.path, None) is not None
            if found.refused is not None and member.refused is None:
                yield Entry(found, is_known)
            elif isinstance(data, Rejection):
                read_to_its_end &= found.path != ITSELF
                yield Entry(replace(found, refused=data), is_known)
            else:
                yield Entry(found, is_known, data)
        if read_to_its_end:  # else what did not come may well be there, as in one that is being copied
            for row in known.values():
                self._pass_over(row, ())

    def _pass_over(self, row: Known, unlisted: Sequence[str]) -> None:
        """Not met. unlisted: directories of which nothing is known now."""
        if not (row.retired or row.path.startswith(tuple(unlisted))):
            self.gone(row)


def _is_unchanged(found: Found, known: Known, rules: int) -> bool:
    """Whether what the database knows still holds, without a look at the bytes."""
    if known.retired or (found.size_bytes, found.mtime_ns) != (known.size_bytes, known.mtime_ns):
        return False
    if found.refused is not None:
        return known.reason == found.refused.reason
    return known.rules == rules and known.reason not in BY_THE_WALK and known.reason not in TRIED_AGAIN
