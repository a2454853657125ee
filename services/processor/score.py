"""How much a kept file teaches: 0–100, the sum of points for stated reasons.

Pure, deterministic, linear in the file. Each reason looks at one figure and gives more points the
better that figure is, from nought at one end of a ramp to its maximum at the other (RAMPS), so
the score is monotone in each of them. Languages without functions (markup, data, build files) get
no points for structure, substance, naming and checks, and so stay well below a threshold of 70.

The ends of the ramps were set on the files of eighteen Python packages (flask, networkx, sympy,
rich, …): 54 % of what is kept reaches 70, from 10 % (stubs) to 80 % a package. A change of anything
here raises SCORER_VERSION, and stored texts are scored again at the next scan.
"""

import re
from dataclasses import dataclass

from services.processor.values import Code, Score

SCORER_VERSION = 1
MAX_SCORED_LINES = 5_000  # the score of a longer file is that of its beginning
MAX_NAMED = 30_000  # characters searched for identifiers
TAB = 4  # columns
LEVEL = 4  # columns of a nesting level; 2 where that is the custom
TWO_COLUMNS = frozenset({"javascript", "typescript", "ruby", "scala"})

CODE = frozenset(
    {
        "python", "rust", "go", "java", "javascript", "typescript", "c", "c++", "c#", "ruby", "php", "kotlin",
        "swift", "scala", "shell", "sql",
    }
)  # fmt: skip
HASH = frozenset({"python", "ruby", "shell", "yaml", "toml", "makefile", "cmake", "dockerfile"})

DEFINITION = {
    "python": re.compile(r"(?:async )?(?:def|class) "),
    "ruby": re.compile(r"(?:def|class|module) "),
    "go": re.compile(r"(?:func|type) "),
    "shell": re.compile(r"function \w|\w{1,80} ?\(\)"),
    "sql": re.compile(r"(?:create|alter|select|insert|update|delete|with)\b", re.IGNORECASE),
    "rust": re.compile(
        r"(?:pub(?:\([a-z:]{1,40}\))? )?(?:(?:async|unsafe|const|extern) ){0,3}"
        r"(?:fn|struct|enum|trait|impl|mod|macro_rules!)\b"
    ),
}
CONTROL = re.compile(r"\}? ?(?:if|else|for|while|switch|catch|do|try|match|when|return|synchronized|using)\b")
CHECK = re.compile(
    r"assert|raise\b|throw\b|panic!|expect\(|Err\(|errors?\.New|return err\b|static_assert|@Test|#\[test"
)
COMMENTED_OUT = re.compile(
    r"(?:#|//) ?(?:[\w.]{1,60} ?(?:=|\+=) ?\S|[\w.]{1,60}\(.{0,200}\);?$|"
    r"(?:if|for|while|return|import)\b.{0,200}[:;{)]$)"
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,80}")

# reason → (figure, points at most, the figure where they begin, the figure where they are full)
RAMPS: dict[str, tuple[str, int, float, float]] = {
    "documentation": ("documented", 20, 0.0, 0.35),  # comment and docstring lines among all lines
    "structure": ("definitions", 15, 0.01, 0.06),  # functions and types a code line: one in 16 is full
    "substance": ("body", 10, 3.0, 10.0),  # code lines a definition: signatures alone teach nothing
    "naming": ("named", 15, 0.60, 0.95),  # distinct identifiers of at least four characters
    "uniqueness": ("unique", 10, 0.70, 1.0),  # distinct lines among those of some length
    "flatness": ("deep", 10, 0.15, 0.0),  # code lines nested deeper than four levels
    "line_length": ("long", 5, 0.06, 0.0),  # lines beyond 100 characters
    "finished": ("unfinished", 5, 0.03, 0.0),  # TODO marks and commented-out code a line
    "size": ("code", 5, 10.0, 60.0),  # code lines: enough to show a whole
    "checks": ("checks", 5, 0.0, 0.05),  # assertions, raised errors a code line: tests above all
}
OF_CODE_ONLY = frozenset({"structure", "substance", "naming", "checks"})


@dataclass(frozen=True, slots=True)
class Figures:
    """What the ramps look at: shares and means of one file."""

    documented: float
    definitions: float
    body: float
    named: float
    unique: float
    deep: float
    long: float
    unfinished: float
    code: float
    checks: float


def score(code: Code) -> Score:
    figures = measure(code)
    points = {
        reason: _points(getattr(figures, figure), most, begin, full)
        for reason, (figure, most, begin, full) in RAMPS.items()
        if code.language in CODE or reason not in OF_CODE_ONLY
    }
    return Score(sum(points.values()), points, SCORER_VERSION)


def _points(figure: float, most: int, begin: float, full: float) -> int:
    """Points on a straight ramp from `begin` (none) to `full` (`most`), level beyond both."""
    return round(most * min(1.0, max(0.0, (figure - begin) / (full - begin))))


def measure(code: Code) -> Figures:
    lines = code.lines[:MAX_SCORED_LINES]
    comments, code_lines = _split(lines, code.language)
    documented, written = len(comments), max(len(code_lines), 1)
    all_lines = max(documented + len(code_lines), 1)
    stripped = [line.strip() for line in code_lines]
    telling = [line for line in stripped if len(line) >= 12]
    definitions = _definitions(code_lines, stripped, code.language)
    width = 4 * (2 if code.language in TWO_COLUMNS else LEVEL) + 1
    deep = sum(1 for line in code_lines if line[0] in " \t" and line.expandtabs(TAB)[:width].isspace())
    unfinished = sum(1 for line in comments if UNFINISHED.search(line) or COMMENTED_OUT.match(line))
    return Figures(
        documented=documented / all_lines,
        definitions=definitions / written,
        body=written / definitions if definitions else 0.0,
        named=_named(code.text[:MAX_NAMED]),
        unique=len(set(telling)) / len(telling) if telling else 0.0,
        deep=deep / written,
        long=sum(1 for line in lines if len(line) > 100) / len(lines),
        unfinished=unfinished / all_lines,
        code=float(len(code_lines)),
        checks=sum(1 for line in stripped if CHECK.search(line)) / written,
    )


def _split(lines: list[str], language: str) -> tuple[list[str], list[str]]:
    """Lines that document (comments and docstrings, stripped) and lines of code, blank ones in neither."""
    comments: list[str] = []
    code: list[str] = []
    single = "#" if language in HASH else "--" if language == "sql" else ";" if language == "ini" else "//"
    until = ""  # the delimiter that ends the comment or docstring we are in
    for line in lines:
        stripped = line.strip()
        if not stripped:
            continue
        if until:
            comments.append(stripped)
            if until in stripped:
                until = ""
            continue
        if stripped.startswith(single):
            comments.append(stripped)
        elif opened := _opens(stripped, language):
            comments.append(stripped)
            delimiter, start = opened
            until = "" if delimiter in stripped[start:] else delimiter
        else:
            code.append(line)
    return comments, code


def _opens(stripped: str, language: str) -> tuple[str, int] | None:
    """The delimiter that ends a block comment or docstring begun by this line, and where its text starts."""
    if language == "python":
        head = stripped[1:] if stripped[0] in "rRuU" else stripped
        if head.startswith(('"""', "'''")):
            return head[:3], len(stripped) - len(head) + 3
    elif stripped.startswith("/*"):
        return "*/", 2
    elif stripped.startswith("<!--"):
        return "-->", 4
    elif language == "ruby" and stripped.startswith("=begin"):
        return "=end", 6
    return None


def _definitions(code_lines: list[str], stripped: list[str], language: str) -> int:
    if language in DEFINITION:
        pattern = DEFINITION[language]
        return sum(1 for line in stripped if pattern.match(line))
    if language not in CODE:
        return 0
    # Languages with braces: a head that opens a block, or a block that opens below its head
    return sum(
        1
        for line, text in zip(code_lines, stripped, strict=True)
        if (text[-1] == "{" and len(text) > 1 and not CONTROL.match(text)) or line.rstrip() == "{"
    )


def _named(text: str) -> float:
    """The share of distinct identifiers long enough to say something."""
    names = set(IDENTIFIER.findall(text))
    return sum(1 for name in names if len(name) >= 4) / len(names) if names else 0.0
