"""docs/how-to/troubleshooting.md quotes messages that Ratchet really says."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from services.core.settings import PROJECT
from tests.documents import DOCS

PAGE = (DOCS / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
PLAIN = ("docker-compose.yml", "deploy/setup.sh", "deploy/env.sh")  # where words are not Python's
GAP = "…"


def literal(node: ast.AST) -> str | None:
    """A string of the code; what an f-string fills in is a gap."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else GAP for part in node.values]
        return "".join(map(str, parts))
    return None


def _strings(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (text for node in ast.walk(tree) if (text := literal(node)))


@cache
def said() -> list[str]:
    """Every string in the code, as one reads it: without backticks and line ends."""
    texts = [text for path in (PROJECT / "services").rglob("*.py") for text in _strings(path)]
    texts += [(PROJECT / name).read_text(encoding="utf-8") for name in PLAIN]
    return [as_read(text) for text in texts]


def as_read(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("`", ""))


def is_said(message: str) -> bool:
    """Whether one string of the code has all of the message's fixed parts, in this order."""
    parts = [part for part in as_read(message).split(GAP) if part.strip()]
    pattern = re.compile(".*?".join(map(re.escape, parts)), re.DOTALL)
    return any(pattern.search(text) for text in said() if all(part in text for part in parts))


@pytest.mark.parametrize("message", HEADINGS)
def test_a_message_is_one_that_is_said(message: str) -> None:
    assert is_said(message), "no string of the code has these words any more"


@pytest.mark.parametrize(
    "section", re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:], ids=lambda text: text[:50]
)
def test_a_message_has_a_reason_and_a_cure(section: str) -> None:
    assert "**Why:**" in section
    assert "**Cure:**" in section


def test_no_message_is_there_twice() -> None:
    assert len(HEADINGS) == len(set(HEADINGS)) >= 40


def test_what_nobody_says_is_found_out() -> None:
    assert not is_said("… is a message that … nobody says")
