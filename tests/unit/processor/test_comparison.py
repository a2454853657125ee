"""What a source holds beside what is known of it, without either."""

from collections.abc import Iterable, Iterator

from services.processor.claims import Entry
from services.processor.comparison import Comparison
from services.processor.forgotten import Tombstones
from services.processor.reasons import Reason
from services.processor.sources.archives import ITSELF
from services.processor.values import Found, Known, Rejection

RULES = 7
NONE = Tombstones()
VANISHED = Rejection(Reason.VANISHED, "")


class Tree:
    """A walk over these paths."""

    def __init__(self, *paths: str, unlisted: Iterable[str] = ()) -> None:
        self._paths = paths
        self.directories: list[str] = []
        self.unlisted = list(unlisted)

    def __iter__(self) -> Iterator[Found]:
        return iter([found(path) for path in self._paths])


def found(path: str, size: int = 10) -> Found:
    return Found(path, size, 1)


def known(*paths: str, reason: str | None = None, retired: bool = False, rules: int = RULES) -> list[Known]:
    return [Known(number, path, 10, 1, reason, retired, rules) for number, path in enumerate(paths, 1)]


def compared(rows: Iterable[Known], forgotten: Tombstones = NONE) -> tuple[Comparison, list[str]]:
    gone: list[str] = []
    told = Comparison(iter(rows), forgotten, RULES, lambda row: gone.append(row.path), lambda: False)
    return told, gone


def paths(entries: Iterable[Entry]) -> list[tuple[str, bool]]:
    return [(entry.found.path, entry.is_known) for entry in entries]


def test_what_is_known_and_as_it_was_is_not_read() -> None:
    """It is counted."""
    comparison, gone = compared(known("a.py", "b.py"))
    assert paths(comparison.tree(Tree("a.py", "b.py"))) == []
    assert (comparison.unchanged, gone) == (2, [])


def test_what_is_new_or_was_judged_by_other_rules_is_read() -> None:
    """And it is told whether it has a row."""
    comparison, _ = compared(known("a.py", rules=RULES - 1))
    assert paths(comparison.tree(Tree("a.py", "b.py"))) == [("a.py", True), ("b.py", False)]


def test_what_could_not_be_read_is_tried_again() -> None:
    """Though nothing about it has changed."""
    comparison, _ = compared(known("a.py", reason=Reason.UNREADABLE))
    assert paths(comparison.tree(Tree("a.py"))) == [("a.py", True)]


def test_what_was_not_met_is_gone() -> None:
    """Before, between and after what was."""
    comparison, gone = compared(known("a.py", "b.py", "c.py", "d.py"))
    assert paths(comparison.tree(Tree("b.py"))) == []
    assert gone == ["a.py", "c.py", "d.py"]


def test_of_a_directory_that_cannot_be_listed_nothing_is_gone() -> None:
    """Nor of one of which nothing at all was met."""
    comparison, gone = compared(known("a/b.py", "a/c.py", "d.py"))
    assert paths(comparison.tree(Tree(unlisted=["a/"]))) == []
    assert gone == ["d.py"]


def test_what_is_retired_is_not_gone_once_more() -> None:
    """It has its row, and comes back as what is known."""
    comparison, gone = compared(known("a.py", "b.py", retired=True))
    assert paths(comparison.tree(Tree("b.py"))) == [("b.py", True)]
    assert gone == []


def test_what_is_forgotten_is_refused_unread() -> None:
    """By its path."""
    comparison, _ = compared([], Tombstones((("a/", 3),)))
    (entry,) = comparison.tree(Tree("a/b.py"))
    assert entry.found.refused is not None
    assert entry.found.refused.reason is Reason.FORGOTTEN


def test_members_of_an_archive_are_all_read() -> None:
    """With their bytes; those that are not in it any more are gone."""
    comparison, gone = compared(known("a.py", "b.py"))
    entries = list(comparison.archive([(found("b.py"), b"b"), (found("a2.py"), b"a")]))
    assert paths(entries) == [("b.py", True), ("a2.py", False)]
    assert [entry.data for entry in entries] == [b"b", b"a"]
    assert gone == ["a.py"]


def test_of_an_archive_that_breaks_off_nothing_is_gone() -> None:
    """What did not come may well be in it."""
    comparison, gone = compared(known("a.py"))
    (entry,) = comparison.archive([(found(ITSELF), VANISHED)])
    assert entry.found.refused == VANISHED
    assert gone == []
