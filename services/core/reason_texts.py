"""Every reason in one line, for a person who asks why a file is not there, or why a text has its score."""

from collections.abc import Mapping
from dataclasses import dataclass

# By the codes of services/processor/reasons.py
TEXTS: Mapping[str, str] = {
    "symlink": "a symbolic link, which is never followed",
    "special_file": "a FIFO, socket or device, which is never opened",
    "vendored": "a directory of other people's or installed code; all below it is left out",
    "ignored": "named by .gitignore or .ratchetignore, or left out by the options of its source",
    "too_deep": "in a directory nested deeper than any repository nests",
    "path_too_long": "a path too long for the index",
    "binary_type": "a name that only binary files have",
    "unreadable": "could not be read; tried again at every scan",
    "vanished": "gone between being listed and being read",
    "too_large": "more bytes than any file worth training on",
    "empty": "nothing but white space",
    "binary": "binary: NUL at its beginning, or many control characters",
    "nul_byte": "holds a NUL character",
    "not_utf8": "not strict UTF-8; other encodings are not guessed",
    "too_short": "too few characters to complete",
    "too_many_lines": "more lines than code of its language has",
    "unknown_language": "neither name, shebang nor content says a language we train on",
    "long_line": "one line beyond what people write",
    "long_lines_on_average": "lines that are on average longer than people write",
    "low_alphabetic": "few letters: a table, a drawing, a dump",
    "many_digits": "a table of numbers",
    "mostly_blank": "more white space than all else",
    "short_lines_on_average": "a column of numbers or brackets",
    "too_few_words": "hardly anything but comments and punctuation",
    "mostly_comments": "nothing to learn but prose",
    "mostly_imports": "a list of what lies elsewhere",
    "mostly_directives": "C that only includes and defines",
    "mostly_strings": "messages or tables of words, not code",
    "mostly_asserts": "one assertion after the other",
    "empty_bodies": "classes and functions without a body",
    "mostly_prints": "output and nothing else",
    "hexadecimal": "hexadecimal numbers make up too much of it",
    "data_table": "literals written out as code",
    "repeated_lines": "most lines occur more than once",
    "repeated_words": "the same few words over and over",
    "generated": "its name or its first lines say that a program wrote it",
    "minified": "written for machines: hardly a line break or a blank",
    "encoded_data": "base64, hexadecimal or \\u escapes make up too much of it",
    "hidden_markup": "HTML with hardly any visible text",
    "syntax_error": "the parser of its language does not accept it",
    "near_duplicate": "another file that is nearly the same has a better score",
    "contaminated": "holds a task or a solution of a benchmark the model is measured by",
    "licence_denied": "its licence, or that of its source, is not among those allowed",
    "forgotten": "taken back by `ratchet forget`, its path or its text; `--undo` lifts that",
    "archive_broken": "the archive cannot be read from here on",
    "archive_too_large": "more members, bytes or expansion than an archive may have",
    "archive_encrypted": "a member that needs a password",
    "archive_path": "a member whose name leads out of the archive",
    "judge_timeout": "judging it took longer than any file may take",
    "judge_crashed": "it ended the process that judged it, or needed too much memory",
}


@dataclass(frozen=True)
class Points:
    """What a reason of the score looks at, and its points at most."""

    most: int
    text: str


# By the names of services/processor/stages/score.py, of its version 2
POINTS: Mapping[str, Points] = {
    "structure": Points(22, "functions and types a line of code"),
    "documentation": Points(7, "comments and docstrings among its lines"),
    "uniqueness": Points(18, "distinct lines of code among all"),
    "naming": Points(7, "distinct names that are not short"),
    "wording": Points(16, "letters, not digits and signs, in what is visible"),
    "flatness": Points(12, "few lines nested deeper than four levels"),
    "substance": Points(3, "lines a definition: signatures alone teach nothing"),
    "line_length": Points(6, "few lines beyond 100 characters"),
    "finished": Points(3, "few TODO marks and little commented-out code"),
    "size": Points(3, "enough lines of code to show a whole"),
    "checks": Points(3, "assertions and raised errors a line of code"),
}


def text(reason: str | None) -> str | None:
    """The line for a code as the database holds it; None without one, or for one of another version."""
    return None if reason is None else TEXTS.get(reason)
