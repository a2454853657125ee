"""Which lines of a text another one has, too: a longest common subsequence, and lines that moved.

Bit vectors (Hyyrö: Bit-parallel LCS-length computation revisited, AWOCA 2004) in Python's long integers:
as many steps as lines, each over all lines of the other text at once, so that the cost is known before.
White space is left aside.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

WHITE_SPACE = b" \t\r\f\v"
MOVED_BYTES = 10  # visible ones of a line that is recognised elsewhere; shorter ones are alike by chance
ANCHORED_CELLS = 1_000_000  # lines by lines, from which texts are cut at anchors first: half the time
MAX_CELLS = 100_000_000  # lines of one by lines of the other: 12 MB and 0.2 s

Pair = tuple[int, int]  # a line of the new text and the same one of the old


class Block(NamedTuple):
    """Lines that follow one another in both texts, from 0."""

    new: int
    old: int
    lines: int


def bare(data: bytes) -> bytes:
    """A text without the white space in its lines. A line feed ends each, and nothing else ends one."""
    bare = data.translate(None, WHITE_SPACE)
    return bare if data.endswith(b"\n") or not data else bare + b"\n"


def blocks(new: bytes, old: bytes) -> list[Block] | None:
    """What two bare texts share, in the order of the new one; None when they are too long and too different.

    In the old one's order too, but for lines that moved: what each text has once beside all that is shared.
    """
    begin, tail = _common_ends(new, old)
    head = new.count(b"\n", 0, begin)
    new_lines, old_lines = (text[begin : len(text) - tail].split(b"\n")[:-1] for text in (new, old))
    pairs = _pairs(new_lines, old_lines)
    if pairs is None:
        return None
    pairs += _moved(new_lines, old_lines, pairs)
    pairs.sort()
    shared = [Block(0, 0, head)] if head else []
    shared += _runs(pairs, head)
    if tail:
        lines = new.count(b"\n", len(new) - tail)
        shared.append(Block(head + len(new_lines), head + len(old_lines), lines))
    return shared


def _common_ends(new: bytes, old: bytes) -> tuple[int, int]:
    """How many bytes of whole lines both begin with, and how many more they end with."""
    most = min(len(new), len(old))
    head = new.rfind(b"\n", 0, _longest(most, lambda size: new[:size] == old[:size])) + 1
    most -= head
    tail = _longest(most, lambda size: new[len(new) - size :] == old[len(old) - size :])
    if all(len(text) - tail == head or text[len(text) - tail - 1] == 0x0A for text in (new, old)):
        return head, tail
    return head, len(new) - new.find(b"\n", len(new) - tail) - 1 if tail else 0


def _longest(most: int, is_common: Callable[[int], bool]) -> int:
    """The greatest size up to `most` that is common, as all smaller ones are."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if is_common(middle):
            least = middle
        else:
            most = middle - 1
    return least


def _pairs(new: Sequence[bytes], old: Sequence[bytes]) -> list[Pair] | None:
    """Ascending; of long texts between each two anchors what is longest."""
    if len(new) * len(old) <= ANCHORED_CELLS:
        return _longest_common(new, old)
    pairs: list[Pair] = []
    row = column = 0
    for anchor in (*_anchors(new, old), (len(new), len(old))):
        between = _longest_common(new[row : anchor[0]], old[column : anchor[1]])
        if between is None:
            return None
        pairs += [(row + right, column + down) for right, down in between]
        pairs.append(anchor)
        row, column = anchor[0] + 1, anchor[1] + 1
    return pairs[:-1]


def _anchors(new: Sequence[bytes], old: Sequence[bytes]) -> list[Pair]:
    """The longest ascending sequence of lines that each text has once (Bram Cohen's patience diff)."""
    once = {line for line, times in Counter(new).items() if times == 1}
    once &= {line for line, times in Counter(old).items() if times == 1}
    places = {line: at for at, line in enumerate(old) if line in once}
    pairs = [(at, places[line]) for at, line in enumerate(new) if line in once]
    columns: list[int] = []  # the least last one of an ascending sequence of each length
    ends: list[int] = []  # and the pair that it is of
    before: list[int] = []  # the pair before each pair
    for number, (_, column) in enumerate(pairs):
        length = bisect_left(columns, column)
        before.append(ends[length - 1] if length else -1)
        columns[length : length + 1], ends[length : length + 1] = [column], [number]
    chain = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _longest_common(new: Sequence[bytes], old: Sequence[bytes]) -> list[Pair] | None:
    """Ascending. Lines that only one of the texts has take no part."""
    if not new or not old:
        return []
    if new == old:
        return [(at, at) for at in range(len(new))]
    met = frozenset(old)
    rows = [at for at, line in enumerate(new) if line in met]
    met = met.intersection(new)
    columns = [at for at, line in enumerate(old) if line in met]
    if len(rows) * len(columns) > MAX_CELLS:
        return None
    left, right = [new[at] for at in rows], [old[at] for at in columns]
    if len(rows) < len(columns):  # bits for the shorter side: 10,000 at most
        return [(rows[row], columns[column]) for column, row in _common(right, left)]
    return [(rows[row], columns[column]) for row, column in _common(left, right)]


def _common(rows: Sequence[bytes], columns: Sequence[bytes]) -> list[Pair]:
    """Indices of a longest common subsequence, ascending."""
    places: dict[bytes, int] = {}  # line → a bit for each column that holds it
    for at, line in enumerate(columns):
        places[line] = places.get(line, 0) | 1 << at
    mask = vector = (1 << len(columns)) - 1
    vectors = [vector]  # a bit is 0 where the length of the longest subsequence grows
    for line in rows:
        matched = vector & places[line]
        vector = (vector + matched | vector - matched) & mask
        vectors.append(vector)
    pairs = []
    row, column = len(rows), len(columns)
    while row and column:
        if vectors[row] >> column - 1 & 1:
            column -= 1
            continue
        row -= 1
        if vectors[row] >> column - 1 & 1:
            column -= 1
            pairs.append((row, column))
    pairs.reverse()
    return pairs


def _moved(new: Sequence[bytes], old: Sequence[bytes], pairs: Iterable[Pair]) -> list[Pair]:
    rows, columns = set(range(len(new))), set(range(len(old)))
    for row, column in pairs:
        rows.remove(row)
        columns.remove(column)
    if not rows or not columns:
        return []
    came = Counter(new[row] for row in rows)
    gone = Counter(old[column] for column in columns)
    once = {line for line, times in came.items() if times == 1 == gone[line] and len(line) >= MOVED_BYTES}
    places = {old[column]: column for column in columns if old[column] in once}
    return [(row, places[new[row]]) for row in rows if new[row] in once]


def _runs(pairs: Iterable[Pair], offset: int) -> list[Block]:
    """Pairs that follow one another in both texts as one block each."""
    runs: list[Block] = []
    start = was = (-2, -2)
    for pair in pairs:
        if pair[0] != was[0] + 1 or pair[1] != was[1] + 1:
            runs.append(Block(start[0] + offset, start[1] + offset, was[0] - start[0] + 1))
            start = pair
        was = pair
    runs.append(Block(start[0] + offset, start[1] + offset, was[0] - start[0] + 1))
    return runs[1:]
