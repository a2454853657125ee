"""Text to a syntax tree, or the reason why not: it took too long, or it does not parse."""

import re
import resource
import symtable
import time
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path

from tree_sitter import Language, Parser, Tree

from services.processor.reasons import Reason
from services.processor.stages.grammars import GRAMMARS
from services.processor.values import Rejection

MAX_CPU_SECONDS = 2.0  # honest code parses at 2–10 MB/s, files have about 1 MB at most
MAX_GROWTH_BYTES = 200 << 20  # of the process while it parses; 1 MB of code takes 60 MB
MAX_DEPTH = 500  # of the tree
GUARDED_FROM = 3_000  # bytes; of those that heed the guard the worst take 40 MB or 0.2 s for so few
READ_BYTES = 1 << 16  # handed to the parser at a time
LOOK_SECONDS = 0.01  # between two looks at time and memory, which grows by up to 1 MB/ms
MAX_INDENT = 200  # looked back over to the start of a line
DEPTH_SAMPLES = 8
DEPTH_FROM = 20_000  # nodes; trees of fewer are no burden however deep
MACRO_LANGUAGES = frozenset({"c", "c++"})
# A macro alone on a line, and one between `class` and the name: the grammars read both as the start of
# something else, and lose what follows. They are parsed as blanks, so that every byte stays where it is.
MACRO_LINE = re.compile(rb"\n[A-Z][A-Z0-9_]{3,80}+(?:\([\w, ]{0,80}+\))?(?=[ \t\r]{0,80}+\n)")
MACROS_IN_HEAD = tuple(  # one for each word: a literal prefix makes a fast search
    re.compile(
        rb"(" + word + rb"[ \t]{1,8}+)([A-Z][A-Z0-9_]{2,80}+(?:\([\w, \"]{0,80}+\))?)"
        rb"(?=[ \t]{1,8}+\w{1,80}+\s{0,80}+(?:final\s{0,80}+)?[:{])"
    )
    for word in (b"class", b"struct", b"union")
)
MAX_BRACKETS = 90  # Python's own limit is 200, its parser's stack may end sooner
# Shares of the bytes that are in no recognised part. Of 5,100 files of public repositories the worst were
# C 45 %, C++ 68 %, Kotlin 71 % (its grammar is the weakest), Go 26 % (test data of its parser), all others
# 6 %; prose that is taken for C or C++ has 30 % and more, but no units.
MAX_ERROR_SHARE = {"c": 0.75, "c++": 0.75, "kotlin": 0.8}
MAX_ERROR_SHARE_ELSE = 0.1
MAX_ERROR_SHARE_WITHOUT_UNITS = 0.25
BRACKETS = re.compile(r"[(\[{)\]}]")
# What the grammar tolerates of Python 2, at the start of a line: print as a statement and `except X, e:`.
# Files with backticks, `<>` or exec alone are not noticed. A literal prefix each makes a fast search.
PYTHON_2 = (re.compile(rb"print[ \t]++[^\s=(.,:)\]]"), re.compile(rb"xcept[ \t]++[\w.]{1,200}+,"))


@cache
def parser(module: str, entry: str) -> Parser:
    return Parser(Language(getattr(import_module(module), entry)()))


def parse(language: str, text: str, data: bytes) -> Tree | Rejection:
    """The tree of a text, `data` in UTF-8; or why its language does not have it."""
    grammar = GRAMMARS[language]
    if language in MACRO_LANGUAGES:
        for macro in MACROS_IN_HEAD:
            data = macro.sub(_blank_name, data)
        data = MACRO_LINE.sub(_blank, data)
    # TypeScript is two grammars: an element is not valid in one, `<T>x` as a cast not in the other.
    entries = [grammar.entry]
    if language == "typescript":
        entries.insert(0 if b"</" in data or b"/>" in data else 1, "language_tsx")
    tree = _tree(grammar.module, entries[0], data)
    if len(entries) > 1 and isinstance(tree, Tree) and tree.root_node.has_error:
        other = _tree(grammar.module, entries[1], data)
        if isinstance(other, Tree) and not other.root_node.has_error:
            tree = other
    if isinstance(tree, Rejection):
        return tree
    refused = _too_deep(tree) or (_python(tree, text, data) if language == "python" else None)
    return refused or tree


def refuse_errors(tree: Tree, language: str, data: bytes, *, has_units: bool) -> Rejection | None:
    """Refuses what is mostly not the language; a grammar stumbles over macros, so some errors may stay."""
    if language == "python" or not tree.root_node.has_error:
        return None
    wrong_bytes, first = 0, len(data)
    waiting = [tree.root_node]
    while waiting:
        node = waiting.pop()
        children = node.children
        if node.is_error:
            # What was recognised inside an error is not lost: one `#if` can put all of a file into one.
            recognised = sum(child.end_byte - child.start_byte for child in children if child.child_count)
            wrong_bytes += node.end_byte - node.start_byte - recognised
            first = min(first, node.start_byte)
        waiting += [child for child in children if child.has_error]
    share, most = wrong_bytes / max(1, len(data)), MAX_ERROR_SHARE.get(language, MAX_ERROR_SHARE_ELSE)
    if not has_units:
        most = min(most, MAX_ERROR_SHARE_WITHOUT_UNITS)
    if share <= most:
        return None
    line = data.count(b"\n", 0, first) + 1
    return Rejection(
        Reason.SYNTAX_ERROR, f"line {line}: {share:.0%} of the text do not parse, at most {most:.0%}"
    )


def _blank(found: re.Match[bytes]) -> bytes:
    return b"\n" + b" " * (len(found[0]) - 1)


def _blank_name(found: re.Match[bytes]) -> bytes:
    return found[1] + b" " * len(found[2])


def _tree(module: str, entry: str, data: bytes) -> Tree | Rejection:
    used = parser(module, entry)
    if len(data) < GUARDED_FROM:
        return used.parse(data)
    guard, whole, views = _Guard(), memoryview(data), []

    def read(offset: int, _: object) -> memoryview:
        views.append(view := whole[offset : offset + READ_BYTES])
        return view

    try:
        return used.parse(read, progress_callback=guard.stop)
    except ValueError:  # what the binding raises when the callback stopped it
        used.reset()
        return Rejection(Reason.SYNTAX_ERROR, f"the parser was stopped: {guard.why}")
    finally:  # the binding (0.26.1) never lets go of what `read` returned: an empty shell costs little
        for view in views:
            view.release()


def _too_deep(tree: Tree) -> Rejection | None:
    """Samples the depth at even steps: what nests for a good part of a file nests at one of them."""
    nodes = tree.root_node.descendant_count
    if nodes < DEPTH_FROM:
        return None
    cursor = tree.walk()
    for step in range(1, DEPTH_SAMPLES):
        cursor.goto_descendant(nodes * step // DEPTH_SAMPLES)
        if cursor.depth > MAX_DEPTH:
            return Rejection(Reason.SYNTAX_ERROR, f"nested {cursor.depth} levels deep, at most {MAX_DEPTH}")
    return None


def _is_python_2(data: bytes) -> bool:
    """Whether it may be: a docstring can look like it too."""
    return any(
        data[max(0, found.start() - MAX_INDENT) : found.start()].rpartition(b"\n")[2].strip(b" \t;:")
        in (b"", b"e")
        for pattern in PYTHON_2
        for found in pattern.finditer(data)
    )


def _python(tree: Tree, text: str, data: bytes) -> Rejection | None:
    """Python's own parser has the last word on what the grammar does not know, or knows of Python 2."""
    if not (tree.root_node.has_error or _is_python_2(data)):
        return None
    if (depth := _bracket_depth(text)) > MAX_BRACKETS:
        return Rejection(Reason.SYNTAX_ERROR, f"brackets nested {depth} levels deep, at most {MAX_BRACKETS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symtable.symtable(text, "file", "exec")
    except SyntaxError as exc:
        return Rejection(Reason.SYNTAX_ERROR, f"line {exc.lineno}: {exc.msg[:200]}")
    except (RecursionError, MemoryError, ValueError, OverflowError) as exc:
        return Rejection(Reason.SYNTAX_ERROR, f"too deeply nested for the parser: {type(exc).__name__}")
    return None


def _bracket_depth(text: str) -> int:
    depth = deepest = 0
    for bracket in BRACKETS.findall(text):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return deepest


class _Guard:
    """Stops a parse that input made for it keeps busy.

    Asked at every hundred steps of the parser, it only reads a clock; most texts are parsed before the
    first look is due.
    """

    def __init__(self) -> None:
        self.why = "no progress"
        self._next_look = time.perf_counter() + LOOK_SECONDS
        self._most_bytes = 0
        self._most_cpu_seconds = 0.0

    def stop(self, _offset: int, _has_error: bool) -> bool:
        return time.perf_counter() > self._next_look and self._look()

    def _look(self) -> bool:
        """Of the process, whose limits count from the first look; a busy machine must not refuse files."""
        resident, used = _resident_bytes(), time.process_time()
        self._most_bytes = self._most_bytes or resident + MAX_GROWTH_BYTES
        self._most_cpu_seconds = self._most_cpu_seconds or used + MAX_CPU_SECONDS
        if resident > self._most_bytes:
            self.why = f"it took more than {MAX_GROWTH_BYTES >> 20} MiB"
            return True
        if used > self._most_cpu_seconds:
            self.why = f"it took more than {MAX_CPU_SECONDS:g} s"
            return True
        self._next_look = time.perf_counter() + LOOK_SECONDS
        return False


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
