"""The scripts and styles that are served: as they were released, and not too much of them."""

import hashlib
import re
from pathlib import Path

import pytest

from services.core.settings import PROJECT

STATIC = PROJECT / "services" / "metrics" / "static"
TEMPLATES = PROJECT / "services" / "metrics" / "templates"
VENDOR = STATIC / "vendor"
LISTED = dict(
    re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)
)
MOST_JAVASCRIPT = 150_000  # bytes, all pages together


def test_every_vendored_file_is_listed() -> None:
    """Name, version, licence and hash stand in the README beside them."""
    assert set(LISTED) == {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".css")}


@pytest.mark.parametrize("name", LISTED)
def test_a_vendored_file_is_what_was_released(name: str) -> None:
    """Its SHA-256 is that of the README; nobody mends a copy in place."""
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == LISTED[name]


@pytest.mark.parametrize("name", ["htmx", "sse", "idiomorph", "uPlot"])
def test_each_library_has_its_licence(name: str) -> None:
    """Its text lies beside it."""
    assert (VENDOR / f"LICENSE-{name}.txt").stat().st_size > 500


def test_there_is_little_javascript() -> None:
    """All of it, uncompressed, own and others': as much as one photograph."""
    assert sum(path.stat().st_size for path in STATIC.rglob("*.js")) <= MOST_JAVASCRIPT


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.name)
def test_no_template_needs_what_the_policy_forbids(template: Path) -> None:
    """No inline script, style or handler, and nothing from another host."""
    text = template.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", text)
