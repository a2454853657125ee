"""The named parts of a code: functions, methods, types and modules with their bodies, by tree-sitter.

The tree is walked without recursion, and only where a unit can be (grammars.py says where).
"""

import re
from bisect import bisect_left
from functools import cache
from typing import NamedTuple

from tree_sitter import Language, Node

from services.processor.stages import fingerprints, syntax
from services.processor.stages.definitions import MAX_NAME_BYTES, Define, definer
from services.processor.stages.grammars import GRAMMARS
from services.processor.values import Rejection, Unit

OWNERS_OF_METHODS = frozenset({"class", "struct", "enum", "trait", "impl", "interface"})
ALWAYS_ENTERED = OWNERS_OF_METHODS | {"module"}
LINE_BYTES = 200  # looked back from `) {` for the word that its line begins with
CONTROL = (
    b"if",
    b"for",
    b"while",
    b"switch",
    b"} else",
    b"else",
    b"} catch",
    b"catch",
    b"using",
    b"lock",
    b"foreach",
)
CLOSING = ord(")")
UNNAMED = (b"=>", b"function(", b"function (")
ERROR_ID = 0xFFFF  # of an ERROR node, in every grammar


def split(language: str, text: str) -> tuple[Unit, ...] | Rejection:
    """The units of a text in order of their first byte, or why it does not parse.

    `language` as language.detect names it. A language without a grammar here has no units and is not parsed.
    Never raises, whatever the text.
    """
    if language not in GRAMMARS:
        return ()
    data = text.encode()
    tree = syntax.parse(language, text, data)
    if isinstance(tree, Rejection):
        return tree
    rows = _rows(tree.root_node, _plan(language, tree.language), data)
    if refused := syntax.refuse_errors(tree, language, data, has_units=bool(rows)):
        return refused
    rows.sort()
    spans = [(start, -end, last - first + 1) for start, end, first, last, *_ in rows]
    prints = fingerprints.of_units(language, data, spans)
    return tuple(
        [
            Unit(kind, name.decode(errors="ignore"), start, -end, first, last, comment, fingerprint)
            for (start, end, first, last, comment, kind, name), fingerprint in zip(rows, prints, strict=True)
        ]
    )


# A unit in the order that sorts units: start_byte, -end_byte (of two that begin together the outer one comes
# first), start_line, end_line, comment_byte, kind, name
_Row = tuple[int, int, int, int, int, str, bytes]


class _Plan(NamedTuple):
    """A grammar, with its nodes' names replaced by the numbers that they have in the tree."""

    definers: dict[int, Define]
    certain: frozenset[int]  # looked at always; all other nodes only where a signal lies in them
    containers: dict[int, str]
    wrappers: dict[int, bool]  # → whether it widens
    leading: frozenset[int]
    signals: tuple[re.Pattern[bytes], ...]
    is_curly: bool


class _Wrapper(NamedTuple):
    """What a node around a unit adds to it."""

    comment_byte: int
    node: Node | None  # takes the unit's place when it holds just this one


@cache
def _plan(name: str, language: Language) -> _Plan:
    grammar = GRAMMARS[name]
    numbers: dict[str, list[int]] = {}
    for number in range(language.node_kind_count):
        if language.node_kind_is_named(number):
            numbers.setdefault(language.node_kind_for_id(number) or "", []).append(number)
    both = grammar.wrappers | grammar.widening
    certain = grammar.units.keys() | grammar.containers.keys() | both
    return _Plan(
        {number: definer(grammar, language, node) for node in grammar.units for number in numbers[node]},
        frozenset(number for node in certain - grammar.gated for number in numbers[node]) | {ERROR_ID},
        {number: owner for node, owner in grammar.containers.items() for number in numbers[node]}
        | {ERROR_ID: ""},
        {number: node in grammar.widening for node in both for number in numbers[node]},
        frozenset(number for node in grammar.leading for number in numbers[node]),
        tuple(map(re.compile, grammar.signals)),
        grammar.is_curly,
    )


def _rows(root: Node, plan: _Plan, data: bytes) -> list[_Row]:
    definers, certain, containers, wrappers, leading, _, _ = plan
    signals = _signals(plan, data)
    rows: list[_Row] = []
    waiting: list[tuple[Node, str, _Wrapper | None]] = [(root, "", None)]
    while waiting:
        parent, owner, wrapper = waiting.pop()
        children = parent.named_children
        if wrapper and wrapper.node and sum(child.kind_id in definers for child in children) > 1:
            wrapper = None
        for index, child in enumerate(children):
            number = child.kind_id
            if number in leading:
                continue
            if number not in certain and not _has_one(signals, child):
                continue
            if number in definers and (found := definers[number](child, data)):
                kind, name, body = found
                if name:
                    begin = wrapper.comment_byte if wrapper else _comment_byte(children, index, leading, data)
                    rows.append(_row(kind, name, owner, (wrapper and wrapper.node) or child, begin))
                wrapper = None
                if body and (kind in ALWAYS_ENTERED or _has_one(signals, body)):
                    waiting.append((body, kind, None))
            elif number in wrappers:
                begin = wrapper.comment_byte if wrapper else _comment_byte(children, index, leading, data)
                waiting.append((child, owner, _Wrapper(begin, child if wrappers[number] else None)))
            else:
                waiting.append((child, containers.get(number) or owner, None))
    return rows


def _row(kind: str, name: bytes, owner: str, node: Node, comment_byte: int) -> _Row:
    if kind == "function" and owner in OWNERS_OF_METHODS:
        kind = "method"
    end_row, end_column = node.end_point
    end_line = end_row + (end_column > 0)  # at column 0 its last byte was the line break
    name = name[:MAX_NAME_BYTES].strip(b"\"'")
    return node.start_byte, -node.end_byte, node.start_point[0] + 1, end_line, comment_byte, kind, name


def _comment_byte(siblings: list[Node], index: int, leading: frozenset[int], data: bytes) -> int:
    """Where the comments and attributes right above a node begin; a blank line ends them, other code too."""
    begin = siblings[index].start_byte
    while index and siblings[index - 1].kind_id in leading:
        index -= 1
        above = siblings[index]
        gap = data[above.end_byte - 1 : begin]  # some grammars end a comment behind its line break
        line = data[max(0, above.start_byte - LINE_BYTES) : above.start_byte]
        line = line.rpartition(b"\n")[2]
        if gap.count(b"\n") > 1 or (line and not line.isspace() and b"\n" in gap):
            break
        begin = above.start_byte
    return begin


def _signals(plan: _Plan, data: bytes) -> list[int]:
    """Where units inside code may begin, in order, and a last one behind the text."""
    # The last byte of a signal is sure to lie in its unit; a `{` would lie in the body, too.
    signals = [
        found.start() if plan.is_curly else found.end() - 1
        for pattern in plan.signals
        for found in pattern.finditer(data)
    ]
    if plan.is_curly:
        signals = [at for at in signals if _may_name(data, at)]
    signals.sort()
    signals.append(len(data))
    return signals


def _may_name(data: bytes, at: int) -> bool:
    """Whether a signal can be a unit's, in the languages with `=>` and methods without a keyword.

    The head of a statement such as `if (…) {` is not, nor is a function that nothing on its line names.
    """
    line = data[max(0, at - LINE_BYTES) : at].rpartition(b"\n")[2].lstrip()
    if data[at] == CLOSING:
        return not line.startswith(CONTROL) and b"function" not in line
    if data.startswith(UNNAMED, at):
        return b"=" in line or b":" in line or line[:1] in (b")", b"}", b"")
    return True


def _has_one(signals: list[int], node: Node) -> bool:
    return signals[bisect_left(signals, node.start_byte)] < node.end_byte
