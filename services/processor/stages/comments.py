"""Comments and docstrings told from code, in one pass over lines that have lost their indentation."""

import re

from services.processor.stages.languages import BLOCK_COMMENT, LINE_COMMENT

DOCSTRING_PREFIXES = frozenset("rRuU")
LINE_COMMENTS = {
    mark: re.compile(rf"(\n{re.escape(mark)}[^\n]*+)") for mark in sorted(set(LINE_COMMENT.values()))
}


def part(flat: str, language: str) -> tuple[str, str]:
    """Comments and docstrings, and all else.

    Each line of `flat` follows a newline and begins with what is visible.

    A comment behind code on the same line counts as code.
    """
    if language == "python":
        comments, code = _part_docstrings(flat)
    else:
        comments, code = _part_blocks(flat, language)
    if (mark := LINE_COMMENT.get(language)) and "\n" + mark in code:
        parts = LINE_COMMENTS[mark].split(code)
        comments += parts[1::2]
        code = "".join(parts[::2])
    return "".join(comments), code


def _part_blocks(flat: str, language: str) -> tuple[list[str], str]:
    if language not in BLOCK_COMMENT:
        return [], flat
    begin, end = BLOCK_COMMENT[language]
    comments, code, at = [], [], 0
    while (start := flat.find("\n" + begin, at)) >= 0:
        code.append(flat[at:start])
        at = _end(flat, "\n", _end(flat, end, start + 1 + len(begin)))
        comments.append(flat[start:at])
    code.append(flat[at:])
    return comments, "".join(code)


def _part_docstrings(flat: str) -> tuple[list[str], str]:
    """Strings in three quotes that begin a line are documentation, all others code."""
    comments, code, at, seen = [], [], 0, 0
    double, single = _end(flat, '"""', 0), _end(flat, "'''", 0)
    while (start := min(double, single)) < len(flat):
        quotes = flat[start : start + 3]
        seen = min(_end(flat, quotes, start + 3) + 3, len(flat))
        line = start - 2 if flat[start - 1] in DOCSTRING_PREFIXES else start - 1
        if flat[line] == "\n":
            code.append(flat[at:line])
            comments.append(flat[line:seen])
            at = seen
        double = double if double >= seen else _end(flat, '"""', seen)
        single = single if single >= seen else _end(flat, "'''", seen)
    code.append(flat[at:])
    return comments, "".join(code)


def _end(flat: str, sought: str, start: int) -> int:
    """Where it stands next; the end of the text when it does not."""
    found = flat.find(sought, start)
    return len(flat) if found < 0 else found
