"""Code worth keeping, or the reason why not: pure rules, each linear in the size of the file.

A rule takes a Code and returns a Rejection or None; RULES is the order they are asked in.
"""

import re
import string
import symtable
import warnings
from collections.abc import Callable

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.values import Code, Rejection

LETTERS = string.ascii_letters.encode() + bytes(range(0x80, 0x100))  # beyond ASCII all count as letters
DIGITS = string.digits.encode()
BLANKS = string.whitespace.encode()
MARKUP = frozenset({"html", "json", "markdown", "xml"})  # StarCoder2 exempts them from the line lengths
DATA = frozenset({"json", "yaml"})

# Names that tools write: lock files, protocol compilers, bundlers (after github-linguist's generated.rb)
GENERATED_NAMES = frozenset(
    {
        "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "composer.lock",
        "Cargo.lock", "poetry.lock", "uv.lock", "Pipfile.lock", "Gemfile.lock", "go.sum", "flake.lock",
    }
)  # fmt: skip
GENERATED_SUFFIXES = (
    "_pb2.py", "_pb2_grpc.py", "_pb2.pyi", ".pb.go", ".pb.cc", ".pb.h", ".pb.ts", ".g.dart",
    ".designer.cs", ".Designer.cs", ".g.cs", "_generated.go", ".generated.ts", ".map",
)  # fmt: skip
MINIFIED_SUFFIXES = (".min.js", ".min.mjs", ".min.css", ".bundle.js", "-min.js")

# StarCoder2's phrases, and the two that generators themselves agreed on
GENERATED_PHRASES = re.compile(
    r"auto[- ]?generated|automatically generated|generated automatically|"
    r"this (?:file|code) (?:is|was|has been) generated|@generated|do not edit"
)
NOT_BASE64 = bytes(set(range(256)) - set((string.ascii_letters + string.digits + "+/=\n").encode()))
BASE64_CLASSES = bytes(0x20 if byte in NOT_BASE64 else 0x78 for byte in range(256))
BASE64 = re.compile(rb"x{%d,}+" % thresholds.MIN_BASE64_RUN)
HEX_PAIRS = re.compile(rb"(?:(?:0x|\\x)[0-9a-fA-F]{2}(?:,\s{0,40}+|\b\s{0,40}+)){8,}+")
UNICODE_ESCAPES = re.compile(rb"(?:\\u[0-9a-fA-F]{4}){8,}+")
TAG = re.compile(r"<[^<>]{0,2000}+>")


def refuse_by_name(path: str) -> Rejection | None:
    name = path.rpartition("/")[2]
    if name in GENERATED_NAMES or name.endswith(GENERATED_SUFFIXES):
        return Rejection(Reason.GENERATED, f"name {name[-60:]}")
    if name.endswith(MINIFIED_SUFFIXES):
        return Rejection(Reason.MINIFIED, f"name {name[-60:]}")
    return None


def refuse(code: Code) -> Rejection | None:
    """The first rule that refuses this code, or None when it may stay."""
    return next((refused for rule in RULES if (refused := rule(code))), None)


def _length(code: Code) -> Rejection | None:
    characters, lines = len(code.text), len(code.lines)
    if characters < thresholds.MIN_CHARACTERS:
        return Rejection(Reason.TOO_SHORT, f"{characters} characters, at least {thresholds.MIN_CHARACTERS}")
    most = thresholds.MAX_DATA_LINES if code.language in DATA else thresholds.MAX_LINES
    if lines > most:
        return Rejection(Reason.TOO_MANY_LINES, f"{lines} lines, at most {most} of {code.language}")
    return None


def _generated(code: Code) -> Rejection | None:
    head = "\n".join(line[:500] for line in code.lines[: thresholds.GENERATED_WITHIN]).lower()
    if found := GENERATED_PHRASES.search(head):
        return Rejection(Reason.GENERATED, f"says {found[0]!r}")
    return None


def _minified(code: Code) -> Rejection | None:
    characters = len(code.text)
    if characters < thresholds.MINIFIED_FROM or code.language in MARKUP:
        return None
    blanks = len(code.data) - len(code.data.translate(None, BLANKS))
    if blanks < thresholds.MIN_BLANKS * characters:
        return Rejection(Reason.MINIFIED, f"{blanks / characters:.1%} blanks")
    return None


def _line_lengths(code: Code) -> Rejection | None:
    longest = max(map(len, code.lines))
    most = thresholds.MAX_LINE_OF_MARKUP if code.language in MARKUP else thresholds.MAX_LINE
    if longest > most:
        return Rejection(Reason.LONG_LINE, f"{longest} characters, at most {most}")
    mean = len(code.text) / len(code.lines)
    if mean > thresholds.MEAN_LINE and code.language not in MARKUP:
        figures = f"mean {mean:.0f} characters, at most {thresholds.MEAN_LINE}"
        return Rejection(Reason.LONG_LINES_ON_AVERAGE, figures)
    return None


def _characters(code: Code) -> Rejection | None:
    size = len(code.data)
    letters = size - len(code.data.translate(None, LETTERS))
    if letters < thresholds.MIN_ALPHABETIC * size:
        return Rejection(Reason.LOW_ALPHABETIC, f"{letters / size:.0%} letters")
    digits = size - len(code.data.translate(None, DIGITS))
    if digits > thresholds.MAX_DIGITS * size:
        return Rejection(Reason.MANY_DIGITS, f"{digits / size:.0%} digits")
    return None


def _encoded(code: Code) -> Rejection | None:
    data = code.data
    runs: list[int] = []
    classes = data.translate(BASE64_CLASSES)  # x where base64 may be, for a search at memchr's speed
    if b"x" * thresholds.MIN_BASE64_RUN in classes:
        runs += _base64_runs(data, classes)
    if data.count(b"0x") + data.count(b"\\x") >= 8:
        runs += [len(match[0]) for match in HEX_PAIRS.finditer(data)]
    if data.count(b"\\u") >= 8:
        runs += [len(match[0]) for match in UNICODE_ESCAPES.finditer(data)]
    longest, total = max(runs, default=0), sum(runs)
    if longest > thresholds.MAX_ENCODED_RUN or total > thresholds.MAX_ENCODED_SHARE * len(data):
        return Rejection(Reason.ENCODED_DATA, f"longest {longest} bytes, {total / len(data):.0%} in all")
    return None


def _base64_runs(data: bytes, classes: bytes) -> list[int]:
    """Lengths of the runs that look encoded: a list of words, one a line, has no long line in it."""
    runs = []
    for match in BASE64.finditer(classes):
        lines = data[match.start() : match.end()].split(b"\n")
        if max(map(len, lines)) >= 40:  # encoders wrap at 64 or 76
            runs.append(match.end() - match.start())
    return runs


def _visible_markup(code: Code) -> Rejection | None:
    if code.language != "html":
        return None
    visible = sum(map(len, TAG.sub(" ", code.text).split()))
    if visible < thresholds.MIN_VISIBLE_CHARACTERS or visible < thresholds.MIN_VISIBLE_SHARE * len(code.text):
        return Rejection(Reason.HIDDEN_MARKUP, f"{visible} of {len(code.text)} characters are visible")
    return None


def _syntax(code: Code) -> Rejection | None:
    """Python that Python does not parse. symtable takes half the time of ast and builds no tree."""
    if code.language != "python" or len(code.data) > thresholds.MAX_PARSED_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symtable.symtable(code.text, "file", "exec")
    except SyntaxError as exc:
        return Rejection(Reason.SYNTAX_ERROR, f"line {exc.lineno}: {exc.msg[:200]}")
    except (RecursionError, MemoryError, ValueError, OverflowError) as exc:
        return Rejection(Reason.SYNTAX_ERROR, f"too deeply nested for the parser: {type(exc).__name__}")
    return None


RULES: tuple[Callable[[Code], Rejection | None], ...] = (
    _length,
    _generated,
    _minified,
    _line_lengths,
    _characters,
    _encoded,
    _visible_markup,
    _syntax,
)
