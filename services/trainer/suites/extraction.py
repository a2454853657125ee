"""The program in what a model wrote: a continuation of the prompt, or a fenced block of an answer."""

import re
import textwrap
import warnings

from services.trainer.suites.formats import Task

STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")  # Chen et al. 2021, section 2.3
FENCED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*\n(?P<code>.*?)(?:^[ \t]*(?P=fence)|\Z)", re.MULTILINE | re.DOTALL
)
MOST_CHARACTERS = 100_000  # of a text that is compiled here, never run
INDENT = " " * 4


def continued(task: Task, text: str) -> str:
    """The prompt and what a base model went on with, up to the first statement outside the function."""
    ends = (at for stop in STOPS if (at := text.find(stop)) >= 0)
    return task.asked + text[: min(ends, default=len(text))]


def answered(task: Task, text: str) -> str:
    """The program in a chat model's answer: of its fenced blocks the first that defines the entry point.

    Imports and helpers of the prompt are put before it. A block that does not define it is taken as what
    comes after the prompt, indented where it was not. An answer without a fence is a block itself.
    """
    blocks = [found["code"] for found in FENCED.finditer(text)] or [text]
    definition = re.compile(rf"^(?:async )?def {re.escape(task.entry_point)}\b", re.MULTILINE)
    whole = next((block for block in blocks if definition.search(block)), None)
    if whole is not None:
        signature = definition.search(task.opening)
        before = task.opening[: signature.start()] if signature else ""
        return f"{before}\n{whole}" if before else whole
    as_it_is, indented = (task.prompt + body for body in (blocks[0], textwrap.indent(blocks[0], INDENT)))
    return indented if not _compiles(as_it_is) and _compiles(indented) else as_it_is


def _compiles(program: str) -> bool:
    if len(program) > MOST_CHARACTERS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program's, which are not ours to print
            compile(program, "<generated>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
