"""guide.md: what is worth more than a line of a command, and examples; in the docs and behind `--help`."""

import re
from pathlib import Path

FILE = Path(__file__).with_suffix(".md")
SECTION = re.compile(r"^## (?P<name>\S+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```\n(?P<lines>.*?)^```", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    """The Markdown of each command, of a group in one."""
    return {match["name"]: match["text"].strip() for match in SECTION.finditer(FILE.read_text("utf-8"))}


def examples(command: str) -> list[str]:
    """The lines that show `plan`, or `recipe show`; of a group those of all its commands."""
    shown = CODE.finditer(sections().get(command.partition(" ")[0], ""))
    lines = [line for match in shown for line in match["lines"].splitlines()]
    return [line for line in lines if re.search(rf"\bratchet {re.escape(command)}\b", line)]
