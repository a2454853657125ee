"""Every threshold of the processor, its source beside it.

LIMITS is the table of the filters: which figure (services/processor/stages/figures.py) may not leave which
bounds, in which languages, and who says so. A file is refused by the first limit it passes, in
the order of the table: cheap figures first.

StarCoder2: arXiv 2402.19173 §2.1. OpenCoder: opc_data_filtering, code_filter_config. refact: its file
filter. Where they disagree, we take the bound that keeps good code of real repositories; the
source then says what the other bound would have cost.
"""

from dataclasses import dataclass
from math import inf

from services.processor.reasons import Reason
from services.processor.stages.languages import ALL, CODE, DATA, MARKUP

# Reading
MAX_FILE_BYTES = 1_000_000  # the seed's cap
MAX_DEPTH = 64  # directories; the deepest of the Linux tree is 11
MAX_PATH_BYTES = 1_500  # a PostgreSQL index entry holds 2,704
GIT_BINARY_PREFIX = 8_000  # bytes; git calls a file binary when NUL is among them (xdiff-interface.c)
MAX_CONTROL_SHARE = 0.01  # of bytes that no text editor writes; ours

# Generated code
GENERATED_WITHIN = 5  # first lines; StarCoder2

# Units that are compared with those of other texts: smaller ones are alike by chance. 175 bytes of code
# without comments and white space are 50 tokens (3.5 each, the median of 7,450 units of eight public
# repositories; of those with 45 to 55 tokens half have 175 or more).
FINGERPRINT_LINES = 5
FINGERPRINT_BYTES = 175

# Encoded data
MIN_BASE64_RUN = 64  # characters; StarCoder2

EXEMPT = MARKUP | {"json"}  # StarCoder2 exempts them from the line lengths
TABULAR = frozenset({"json", "yaml"})
PROGRAMS = CODE - {"shell", "sql"}  # OpenCoder asks less of scripts


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of one figure: below `least` or above `most` a file is refused."""

    reason: Reason
    figure: str
    languages: frozenset[str]
    source: str
    least: float = -inf
    most: float = inf
    from_characters: int = 0  # shorter files say too little
    from_lines: int = 0  # likewise, lines of code


LIMITS = (
    # Size
    Limit(Reason.TOO_SHORT, "characters", ALL, "OpenCoder; the seed's shortest sample", least=50),
    Limit(Reason.TOO_MANY_LINES, "line_count", ALL - TABULAR, "StarCoder2, OpenCoder", most=100_000),
    Limit(Reason.TOO_MANY_LINES, "line_count", TABULAR, "StarCoder2; OpenCoder 1,000", most=512),
    Limit(
        Reason.MINIFIED,
        "blanks",
        ALL - EXEMPT,
        "ours: minified code has 1–3 %, code 15–35 %",
        least=0.04,
        from_characters=1_000,
    ),
    # Lines
    Limit(Reason.LONG_LINE, "longest_line", ALL - EXEMPT, "StarCoder2, OpenCoder", most=1_000),
    Limit(Reason.LONG_LINE, "longest_line", EXEMPT, "StarCoder2", most=100_000),
    Limit(Reason.LONG_LINES_ON_AVERAGE, "mean_line", ALL - EXEMPT, "StarCoder2, OpenCoder", most=100),
    Limit(Reason.SHORT_LINES_ON_AVERAGE, "mean_line", ALL, "OpenCoder", least=5),
    # Characters
    Limit(
        Reason.MOSTLY_BLANK, "blanks", CODE, "OpenCoder: 0.5, which columns of Java and C++ reach", most=0.6
    ),
    Limit(
        Reason.LOW_ALPHABETIC,
        "letters",
        ALL,
        "StarCoder2; OpenCoder's half of what is visible refuses macros and matrices",
        least=0.25,
    ),
    Limit(Reason.MANY_DIGITS, "digits", ALL - {"sql"}, "OpenCoder: 0.2; refact: 0.3 of all", most=0.25),
    Limit(Reason.MANY_DIGITS, "digits", frozenset({"sql"}), "OpenCoder", most=0.3),
    # Encoded data: base64, hexadecimal pairs, \u escapes
    Limit(Reason.ENCODED_DATA, "longest_encoded", ALL, "StarCoder2, OpenCoder", most=1_024),
    Limit(Reason.ENCODED_DATA, "encoded_share", ALL, "StarCoder2, OpenCoder", most=0.5),
    # HTML
    Limit(Reason.HIDDEN_MARKUP, "visible_markup", frozenset({"html"}), "StarCoder2, OpenCoder", least=100),
    Limit(
        Reason.HIDDEN_MARKUP, "visible_markup_share", frozenset({"html"}), "StarCoder2, OpenCoder", least=0.2
    ),
    # What it consists of
    Limit(
        Reason.MOSTLY_COMMENTS,
        "comments",
        CODE,
        "OpenCoder: 0.8 (NeMo Curator: 0.85), which documented interfaces and licence headers reach",
        most=0.95,
    ),
    Limit(Reason.TOO_FEW_WORDS, "words", DATA | {"python"}, "OpenCoder", least=10),
    Limit(Reason.TOO_FEW_WORDS, "words", CODE - {"python"}, "OpenCoder: 30, comments counted", least=10),
    Limit(Reason.HEXADECIMAL, "hexadecimal", ALL, "OpenCoder", most=0.4),
    Limit(Reason.MOSTLY_STRINGS, "strings", PROGRAMS, "OpenCoder", most=0.6),
    Limit(Reason.DATA_TABLE, "tables", CODE - {"shell"}, "ours", most=0.7, from_lines=20),
    Limit(Reason.MOSTLY_IMPORTS, "imports", frozenset({"python"}), "OpenCoder", most=0.3, from_lines=5),
    Limit(Reason.MOSTLY_DIRECTIVES, "directives", frozenset({"c", "c++"}), "OpenCoder", most=0.8),
    Limit(
        Reason.EMPTY_BODIES,
        "passes",
        frozenset({"python"}),
        "OpenCoder: 0.05, which two `except: pass` in 40 lines reach",
        most=0.1,
    ),
    Limit(Reason.MOSTLY_PRINTS, "prints", frozenset({"python"}), "OpenCoder", most=0.4),
    Limit(
        Reason.MOSTLY_ASSERTS,
        "asserts",
        PROGRAMS - {"go"},
        "OpenCoder: 0.4, which good tests reach",
        most=0.6,
    ),
    # Repetition
    Limit(Reason.REPEATED_LINES, "repeated", CODE, "OpenCoder", most=0.7),
    Limit(Reason.REPEATED_LINES, "repeated", DATA, "OpenCoder", most=0.75),
    Limit(Reason.REPEATED_WORDS, "top_2", ALL, "OpenCoder, after RedPajama", most=0.20),
    Limit(Reason.REPEATED_WORDS, "top_3", ALL, "OpenCoder, after RedPajama", most=0.18),
    Limit(Reason.REPEATED_WORDS, "top_4", ALL, "OpenCoder, after RedPajama", most=0.16),
)
