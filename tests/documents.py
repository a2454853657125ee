"""What the documentation tells people to type: commands in code blocks, taken apart as a shell would."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.core.settings import PROJECT

DOCS = PROJECT / "docs"
SHELL = ("bash", "sh", "console")
PROGRAMS = (  # what a line in a block without a language begins with, if it is a command
    "ratchet", "make", "docker-compose", "docker", "curl", "cp", "git", "pip", "python", ".venv/bin/python",
)  # fmt: skip
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[^\n`]*)$")
ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)
NO_COMMAND = re.compile(r"\s*(#|\w+\(\) *\{)")  # a comment, or the definition of a function
OPERATORS = {"|", "||", "&&", ";", "&"}
REDIRECTIONS = {">", ">>", "<"}


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    page: str  # relative to the project
    line: int  # of its fence, from 1
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """One program of a command line, as a shell would start it."""

    page: str
    line: int
    environment: tuple[str, ...]  # NAME=value before it
    words: tuple[str, ...]  # program and arguments, redirections left out
    text: str  # the whole line
    fed: bool  # reads what another program writes, or a file

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """The README and every page of the documentation."""
    return [PROJECT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    page, at = str(path.relative_to(PROJECT)), 0
    while at < len(lines):
        opened = FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        end = next(
            number
            for number in range(at + 1, len(lines))
            if lines[number].strip() == opened["fence"] and lines[number].startswith(opened["indent"])
        )
        inside = tuple(line.removeprefix(opened["indent"]) for line in lines[at + 1 : end])
        yield Block(page, at + 1, opened["language"].strip(), inside)
        at = end + 1


def commands(path: Path) -> list[Command]:
    """Every program that the blocks of a page start, in order."""
    return [
        command
        for block in blocks(path)
        for line, text in _command_lines(block)
        for command in _split(block.page, line, text)
    ]


def typed() -> list[Command]:
    """Every command of every page."""
    return [command for page in pages() for command in commands(page)]


def _command_lines(block: Block) -> Iterator[tuple[int, str]]:
    """Whole command lines with their numbers: continuations joined, output of a console left out."""
    held, begun = "", 0
    for number, line in enumerate(block.lines, block.line + 1):
        text = line
        if not held:
            if block.language == "console" or (not block.language and line.startswith("$ ")):
                if not line.startswith("$ "):
                    continue
                text = line.removeprefix("$ ")
            elif block.language not in SHELL and not (not block.language and _is_command(line)):
                continue
            begun = number
        held += text
        if held.endswith("\\"):
            held = held[:-1]
            continue
        if held.strip() and not NO_COMMAND.match(held):
            yield begun, held.strip()
        held = ""


def _is_command(line: str) -> bool:
    words = line.split()
    while words and ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    return bool(words) and words[0] in PROGRAMS


def _split(page: str, line: int, text: str) -> Iterator[Command]:
    lexer = shlex.shlex(_without_placeholders(text), posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    parts: list[tuple[list[str], bool]] = [([], False)]
    skip = False
    for token in lexer:
        if token in OPERATORS:
            parts.append(([], token == "|"))
        elif token in REDIRECTIONS:
            skip = True
            parts[-1] = (parts[-1][0], parts[-1][1] or token == "<")
        elif skip:
            skip = False
        else:
            parts[-1][0].append(token)
    for words, fed in parts:
        count = next((at for at, word in enumerate(words) if not ASSIGNMENT.fullmatch(word)), len(words))
        if words:
            yield Command(page, line, tuple(words[:count]), tuple(words[count:]), text, fed)


def _without_placeholders(text: str) -> str:
    """`<recipe>` is a word to be replaced, not two redirections."""
    return re.sub(r"<([a-z][a-z ]*)>", lambda found: found[1].replace(" ", "-").upper(), text)
