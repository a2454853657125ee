"""Figures of a text: what limits and ramps look at, each computed once, when asked for.

Characters and lines are counted over the whole text, numpy and str doing the work. What needs comments
told from code looks at the first MEASURED_LINES lines. Nothing here is exact as a parser is: the
second look (units) parses; these figures decide whether a file is worth it.
"""

from collections import Counter

from services.processor.stages import comments, patterns
from services.processor.stages.characters import Characters
from services.processor.stages.languages import INDENT_COLUMNS, LINE_COMMENT, TWO_COLUMNS
from services.processor.stages.once import once

MEASURED_LINES = 600  # of longer files the beginning stands for the whole
MEASURED_STRINGS = 12_000  # characters of code searched for string literals
MEASURED_NAMES = 2_000  # characters of code searched for identifiers
MEASURED_WORDS = 2_000  # characters of code whose words are counted
NOTICE_CHARACTERS = 2_500  # of the first comments, where a licence notice stands
NOTICE_WORDS = (
    "copyright",
    "license",
    "licence",
    "spdx-",
    "warranty",
    "all rights reserved",
    "hereby granted",
)
NOTICE_BEGINNING = 12  # characters: the text begins with its comments
DEEP_LEVELS = 4
FEW_WORDS = 50  # below that every sequence is a large part
DISTINCT_WORDS = 0.4  # of all
SHORT_NAMES = {"go": (1,)}  # characters; up to three elsewhere: Effective Go asks for short names
SUSPECT_SHARE = 0.16  # of a sequence, in the beginning: then the whole is counted
RARE_PAIR = 0.08  # of all characters: then no four words make up 0.16, nor three 0.18
DIGITS = b"0123456789"
NAME_BYTES = bytes(byte if chr(byte).isalpha() or byte in b"_" else 0x20 for byte in range(128)) + b"x" * 128


class Figures(Characters):
    """Shares are of 0 to 1; lines of code are those neither blank nor comment, without their indentation."""

    # Comments and code, of the beginning

    @once
    def _flat(self) -> str:
        """The lines that are not blank, without indentation, each after a newline."""
        return "\n" + "\n".join(filter(None, map(str.strip, self.lines[:MEASURED_LINES])))

    @once
    def _parted(self) -> tuple[str, str]:
        """Comments and docstrings; and all else."""
        return comments.part(self._flat, self.language)

    @once
    def comment(self) -> str:
        return self._parted[0]

    @once
    def code(self) -> str:
        """The lines of code, each between newlines."""
        return self._parted[1] + "\n"

    @once
    def code_lines(self) -> list[str]:
        return self._parted[1].split("\n")[1:]

    @once
    def written(self) -> int:
        return max(len(self.code_lines), 1)

    @once
    def comments(self) -> float:
        """Characters of comments and docstrings among all but indentation."""
        return len(self.comment) / max(len(self.comment) + len(self.code), 1)

    @once
    def documented(self) -> float:
        """Lines of comments and docstrings among all that are not blank; those of a licence do not count."""
        comments = self.comment.count("\n")
        return (comments - self._notice) / (comments + self.written)

    @once
    def _notice(self) -> int:
        """Lines of comment at the top up to the last that speaks of rights: they document nothing."""
        begin = self.comment[:NOTICE_BEGINNING].lower()
        if not begin or not self._flat[:NOTICE_BEGINNING].lower().startswith(begin):
            return 0
        head = self.comment[:NOTICE_CHARACTERS].lower()
        spoken = max(map(head.rfind, NOTICE_WORDS))
        if spoken < 0:
            return 0
        return head.count("\n", 0, spoken)

    @once
    def unfinished(self) -> float:
        """TODO marks and code commented out, a line."""
        comment = self.comment
        marks = sum(map(comment.count, ("TODO", "FIXME", "XXX", "HACK")))
        out = len(patterns.COMMENTED_OUT.findall(comment)) if self.language in LINE_COMMENT else 0
        return (marks + out) / (comment.count("\n") + self.written)

    # What the code consists of

    @once
    def words(self) -> int:
        """Words in the beginning; enough to tell thirty from fewer."""
        return len(self._words) if self.characters < MEASURED_WORDS else len(self._words) + 30

    @once
    def _words(self) -> list[str]:
        return self.code[:MEASURED_WORDS].split()

    @once
    def top_words(self) -> tuple[float, float, float]:
        """Characters in the commonest sequence of two, three and four words, among those of all words.

        After RedPajama's rps_doc_frac_chars_top_ngram, which OpenCoder uses. Counted only where fewer
        than DISTINCT_WORDS of the words are distinct: above that no sequence is as common as a limit.
        """
        tops = _tops(self._words)
        if max(tops) >= SUSPECT_SHARE and len(self.code) > MEASURED_WORDS:
            return _tops(self.code.split())  # a beginning full of constants says little of the whole
        return tops

    @once
    def top_2(self) -> float:
        return self.top_words[0]

    @once
    def top_3(self) -> float:
        return self.top_words[1]

    @once
    def top_4(self) -> float:
        return self.top_words[2]

    @once
    def repeated(self) -> float:
        """Lines of code that occur more than once, among all; braces alone do not count."""
        lines = self.code_lines
        if 2 * (1 - self.unique) < 0.5:  # no more than that are repeated
            return 0.0
        counts = Counter(lines)
        return sum(n for line, n in counts.items() if n > 1 and len(line) > 2) / self.written

    @once
    def unique(self) -> float:
        """Distinct lines of code among all."""
        return len(set(self.code_lines)) / self.written

    @once
    def tables(self) -> float:
        """Lines of code that hold literals and end with a comma."""
        if self.code.count(",\n") < 0.5 * self.written:
            return 0.0
        return len(patterns.TABLE_LINE.findall(self.code)) / self.written

    @once
    def strings(self) -> float:
        """Characters between quotes on one line, among those of code."""
        code = self.code[:MEASURED_STRINGS]
        found = patterns.DOUBLE_QUOTED.findall(code)
        if self.language in patterns.QUOTES_SINGLY:
            found += patterns.SINGLE_QUOTED.findall(code)
        return min(1.0, sum(map(len, found)) / len(code))

    @once
    def hexadecimal(self) -> float:
        if self.code.count("0x") < 8:
            return 0.0
        return sum(map(len, patterns.HEX_WORD.findall(self.code))) / len(self.code)

    @once
    def imports(self) -> float:
        return (self.code.count("\nimport ") + self.code.count("\nfrom ")) / self.written

    @once
    def directives(self) -> float:
        """Lines for the C preprocessor."""
        return self.code.count("\n#") / self.written

    @once
    def passes(self) -> float:
        return self.code.count("\npass\n") / self.written

    @once
    def prints(self) -> float:
        return self.code.count("\nprint(") / self.written

    @once
    def asserts(self) -> float:
        return self._asserted / self.written

    @once
    def _asserted(self) -> int:
        return self.code.count("assert")

    @once
    def checks(self) -> float:
        """Assertions and errors raised, a line of code."""
        raised = sum(map(self.code.count, patterns.RAISES.get(self.language, ())))
        return (self._asserted + raised) / self.written

    # How it is built

    @once
    def defined(self) -> int:
        """Functions and types; in languages with braces, blocks that no control flow opens."""
        if pattern := patterns.DEFINITION.get(self.language):
            return len(pattern.findall(self.code))
        heads = [line for line in self.code_lines if line and line[-1] == "{"]
        controls = len([*filter(None, map(patterns.CONTROL.match, heads))])
        opened = len(heads) - self.code.count("\n{\n") - controls
        return max(0, opened + self._head.count("\n{\n"))

    @once
    def definitions(self) -> float:
        return self.defined / self.written

    @once
    def body(self) -> float:
        """Lines of code a definition."""
        return self.written / self.defined if self.defined else 0.0

    @once
    def _head(self) -> str:
        """The beginning as it is indented."""
        return (
            self.text
            if len(self.lines) <= MEASURED_LINES
            else "\n" + "\n".join(self.lines[:MEASURED_LINES]) + "\n"
        )

    @once
    def deep(self) -> float:
        """Lines nested deeper than four levels."""
        columns = DEEP_LEVELS * (INDENT_COLUMNS // 2 if self.language in TWO_COLUMNS else INDENT_COLUMNS)
        deep = self._head.count("\n" + " " * (columns + 1)) + self._head.count(
            "\n" + "\t" * (DEEP_LEVELS + 1)
        )
        return deep / self.written

    @once
    def names(self) -> float:
        """Identifiers that are not short among the distinct ones."""
        names = set(self.code[:MEASURED_NAMES].encode().translate(NAME_BYTES, DIGITS).split())
        lengths = [*map(len, names)]
        short = SHORT_NAMES.get(self.language, (1, 2, 3))
        return 1 - sum(map(lengths.count, short)) / len(lengths) if lengths else 0.0


def _tops(words: list[str]) -> tuple[float, float, float]:
    if len(words) < FEW_WORDS or len(set(words)) > DISTINCT_WORDS * len(words):
        return 0.0, 0.0, 0.0
    total = sum(map(len, words))
    if (pairs := _top(words, 2, total)) < RARE_PAIR:
        return pairs, 0.0, 0.0
    return pairs, _top(words, 3, total), _top(words, 4, total)


def _top(words: list[str], n: int, total: int) -> float:
    """Characters in the commonest sequence of n words, among all."""
    sequence, count = Counter(zip(*(words[i:] for i in range(n)), strict=False)).most_common(1)[0]
    return count * sum(map(len, sequence)) / total if count > 1 else 0.0
