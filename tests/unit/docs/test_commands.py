"""Every command in the README and in docs/ is one that there is: subcommand, options, files, services.

Nothing is run here; `tests/integration/docs/test_commands.py` runs what a test can.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from services.core.settings import PROJECT
from tests.documents import Command, blocks, pages, typed
from tests.typed import RATCHET, check, check_variable, options_of

TYPED = typed()


@pytest.mark.parametrize("command", TYPED, ids=lambda command: f"{command.where} {command.text[:60]}")
def test_a_command_is_one_that_there_is(command: Command) -> None:
    check(command.words)
    for assignment in command.environment:
        check_variable(assignment)


def test_commands_are_found() -> None:
    """If the blocks were read wrongly, nothing above would fail."""
    assert len(TYPED) > 250
    assert {"README.md", "docs/quickstart.md", "docs/reference/cli.md"} <= {command.page for command in TYPED}


SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
TREES = ("services", "docs", "deploy", "sql", "tests", "bench", "recipes", "requirements", "fuzz")


def prose(path: Path) -> str:
    """A page without its code blocks."""
    text = path.read_text(encoding="utf-8").split("\n")
    for block in blocks(path):
        text[block.line - 1 : block.line + len(block.lines) + 1] = [""] * (len(block.lines) + 2)
    return "\n".join(text)


def spans(paths: Iterable[Path]) -> list[tuple[str, str]]:
    return [(str(path.relative_to(PROJECT)), span) for path in paths for span in SPAN.findall(prose(path))]


@pytest.mark.parametrize(
    ("page", "span"),
    [each for each in spans(pages()) if each[1].startswith("ratchet ")],
    ids=lambda each: each[:60],
)
def test_a_command_in_the_text_is_one_that_there_is(page: str, span: str) -> None:
    """Its name and its options; arguments may be left out, or be words to replace."""
    words = span.replace("…", " ").split()[1:]
    if not words or words[0].isupper():
        return
    if words[0].startswith("-"):
        assert words[0] in options_of(RATCHET)
        return
    used = {word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)}
    for name in words[0].split("|"):
        assert name in RATCHET.commands, f"ratchet has no command {name!r}"
        command = RATCHET.commands[name]
        inner = getattr(command, "commands", {})
        if inner and len(words) > 1 and re.fullmatch(r"[a-z|-]+", words[1]):
            assert set(words[1].split("|")) <= inner.keys(), span
        known = options_of(command).union(*map(options_of, inner.values()))
        assert used <= known, f"{name}: {used - known}"


@pytest.mark.parametrize(
    ("page", "span"),
    [each for each in spans(pages()) if re.match(rf"({'|'.join(TREES)})/[\w./*-]+($| )", each[1])],
    ids=lambda each: each[:60],
)
def test_a_file_in_the_text_is_one_that_there_is(page: str, span: str) -> None:
    assert any(PROJECT.glob(span.split(maxsplit=1)[0].rstrip("/"))), span


@pytest.mark.parametrize(
    ("page", "span"),
    [each for each in spans(pages()) if re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+=\S*", each[1])],
    ids=lambda each: each[:60],
)
def test_a_setting_in_the_text_is_one_that_there_is(page: str, span: str) -> None:
    check_variable(span)


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (f"{block.page}:{block.line}", line)
        for path in pages()
        for block in blocks(path)
        if block.language == "ini"
        for line in block.lines
        if line and not line.startswith("#")
    ],
)
def test_a_line_of_an_env_file_is_a_setting(where: str, line: str) -> None:
    check_variable(line)
