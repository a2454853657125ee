"""A receipt read once, from its first line to its last: every line checked, little of it kept.

What is wrong is said as a ReceiptError that names the line where it can be told.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from services.core.errors import ReceiptError
from services.core.models import ContentRole
from services.trainer.receipts.lines import (
    FORMAT,
    NAME,
    ROLES,
    Added,
    Content,
    End,
    Header,
    Line,
    Solution,
    Source,
    Task,
    decode,
)
from services.trainer.receipts.merkle import Tree

MOST_LINE_BYTES = 64 * 2**20  # of a text that lies in a hundred thousand places
Item = Content | Task


@dataclass
class Receipt:
    """What a receipt says in sum. A content in several repositories counts for each of them."""

    path: Path
    header: Header
    sources: dict[str, Source] = field(default_factory=dict)
    lines: int = 1
    sha256: str = ""  # of the file
    root: str = ""
    contents: Counter[ContentRole] = field(default_factory=Counter)
    learned_in: Counter[str] = field(default_factory=Counter)  # source → contents that were learned
    licences: Counter[str] = field(default_factory=Counter)  # of what was learned; "": not known
    languages: Counter[str] = field(default_factory=Counter)  # of what was learned
    learned_bytes: int = 0
    seen: int = 0
    not_seen: int = 0  # contents or tasks that were to be learned from and were in no step
    tokens: int = 0
    planted: int = 0  # contents in which a fake secret stood
    added: Added | None = None
    tasks: Counter[ContentRole] = field(default_factory=Counter)
    practised_of: Counter[str] = field(default_factory=Counter)  # task set → tasks that were to be practised
    episodes: int = 0
    solved: int = 0  # of them
    solutions: int = 0  # programs of reinforcement rounds that were to be learned
    solutions_seen: int = 0  # times that one of them was in a step

    @property
    def name(self) -> str:
        return f"{self.header.track}/{self.header.adapter}"


def read(folder: Path, on_item: Callable[[Item], None] = lambda _: None) -> Receipt:
    """The receipt in an adapter's folder, whole and in agreement with itself; each item to `on_item`.

    Raises ReceiptError for one that is missing, damaged or made by a later version.
    """
    path = folder / NAME
    try:
        with path.open("rb") as file:
            return _Reader(path, file).read(on_item)
    except OSError as exc:
        raise ReceiptError(f"{path} cannot be read: {exc.strerror or exc}") from exc


class _Reader:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._tree = Tree()
        self._digest = hashlib.sha256()
        self._snapshot = hashlib.sha256()
        self._furthest = 0  # role of the last content, by its place in ROLES

    def read(self, on_item: Callable[[Item], None]) -> Receipt:
        lines = self._decoded()
        first = next(lines, None)
        if not isinstance(first, Header):
            raise self._damaged("it does not begin with a header")
        receipt = Receipt(self._path, first)
        for line in lines:
            match line:
                case Content():
                    self._take(receipt, line)
                    on_item(line)
                case Task():
                    self._take_task(receipt, line)
                    on_item(line)
                case Source() if not (receipt.contents or receipt.tasks):
                    receipt.sources[line.name] = line
                case Solution() if receipt.added is None:
                    self._take_solution(receipt, line)
                case Added() if receipt.added is None:
                    receipt.added = line
                    receipt.tokens += line.tokens
                case End():
                    receipt.lines, receipt.root = line.lines, line.root
                    self._check_end(line)
                    break
                case _:
                    raise self._damaged(f"line {self._tree.size} ({line.kind}) is out of place")
        else:
            raise self._damaged(
                f"it is cut off after line {self._tree.size}: the line that ends it is missing"
            )
        if self._file.read(1):
            raise self._damaged("something was written behind the line that ends it")
        self._check_sums(receipt)
        receipt.sha256 = self._digest.hexdigest()
        return receipt

    def _decoded(self) -> Iterator[Line]:
        while data := self._file.readline(MOST_LINE_BYTES):
            number = self._tree.size + 1
            if not data.endswith(b"\n"):
                raise self._damaged(f"it is cut off inside line {number}")
            self._digest.update(data)
            try:
                line = decode(data)
            except ValueError as exc:
                raise self._damaged(f"line {number} is no line of a receipt{_later(data)}") from exc
            if not isinstance(line, End):
                self._tree.add(data)
            yield line

    def _place(self, item: Item) -> None:
        """In the order of roles, as the snapshot's hash takes them."""
        place = ROLES.index(item.role)
        if place < self._furthest:
            raise self._damaged(f"line {self._tree.size} ({item.role}) is out of place")
        self._furthest = place
        self._snapshot.update(item.role.encode() + bytes.fromhex(item.sha256))

    def _take_task(self, receipt: Receipt, task: Task) -> None:
        self._place(task)
        receipt.tasks[task.role] += 1
        if task.is_learned:
            receipt.practised_of[task.task_set] += 1
            receipt.episodes += task.episodes or 0
            receipt.solved += task.solved or 0
            receipt.not_seen += not task.episodes
            receipt.tokens += task.tokens or 0

    def _take_solution(self, receipt: Receipt, solution: Solution) -> None:
        self._furthest = len(ROLES)  # no content or task comes behind it
        self._snapshot.update(
            b"solution" + bytes.fromhex(solution.task_sha256) + bytes.fromhex(solution.sha256)
        )
        receipt.solutions += 1
        receipt.solutions_seen += solution.seen
        receipt.tokens += solution.tokens

    def _take(self, receipt: Receipt, content: Content) -> None:
        self._place(content)
        if content.judged is not None:
            self._snapshot.update(repr(content.judged).encode())
        receipt.contents[content.role] += 1
        if not content.is_learned:
            return
        names = {file[0] for file in content.files}
        if unknown := names - receipt.sources.keys():
            raise self._damaged(
                f"line {self._tree.size} names a source that it does not list: {min(unknown)!r}"
            )
        receipt.learned_in.update(names)
        receipt.licences.update(_licences(content, receipt))
        receipt.languages[content.language] += 1
        receipt.learned_bytes += content.bytes
        receipt.seen += content.seen or 0
        receipt.not_seen += not content.seen
        receipt.planted += content.planted is not None
        receipt.tokens += content.tokens or 0

    def _check_end(self, end: End) -> None:
        found = self._tree.size
        if found != end.lines:
            what = "removed" if found < end.lines else "added"
            raise self._damaged(f"lines were {what}: it has {found}, and was written with {end.lines}")
        if self._tree.root.hex() != end.root:
            raise self._damaged(
                "lines were changed, exchanged or moved since it was written: the root is another"
            )

    def _check_sums(self, receipt: Receipt) -> None:
        """What the header says of the lines. A receipt that was made anew around a lie fails here."""
        header = receipt.header
        counts = {role: receipt.contents[role] + receipt.tasks[role] for role in ROLES}
        if counts != {role: header.counts.get(role, 0) for role in ROLES}:
            said = ", ".join(f"{number} {role}" for role, number in header.counts.items())
            raise self._damaged(f"its header counts {said}, its lines are others")
        if receipt.tokens != header.tokens:
            raise self._damaged(f"its header says {header.tokens} tokens, its lines {receipt.tokens}")
        if self._snapshot.hexdigest() != header.snapshot:
            raise self._damaged(f"its lines are not those of the snapshot {header.snapshot[:12]}…")

    def _damaged(self, why: str) -> ReceiptError:
        return ReceiptError(f"{self._path} is damaged: {why}")


def _licences(content: Content, receipt: Receipt) -> list[str]:
    """A text's own, or those of the repositories that it lies in."""
    if content.licence:
        return [content.licence]
    return sorted({receipt.sources[file[0]].licence or "" for file in content.files}) or [""]


def _later(data: bytes) -> str:
    """What to say of a line in another format."""
    try:
        found = json.loads(data)["format"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": its format is {found}, this version of Ratchet reads {FORMAT}" if found != FORMAT else ""
