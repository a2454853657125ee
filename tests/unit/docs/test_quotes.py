"""What the guides quote of `ratchet plan` is what it says."""

import itertools
import shlex

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from tests.documents import DOCS, blocks

QUOTED = [
    (block.lines[0], quote)
    for path in sorted((DOCS / "guides").glob("*.md"))
    for block, quote in itertools.pairwise(blocks(path))
    if block.lines[0].startswith("ratchet plan") and quote.language == "text"
]


@pytest.mark.parametrize(("command", "quote"), QUOTED, ids=[command for command, _ in QUOTED])
def test_a_plan_is_quoted_as_it_is(command: str, quote, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line up to an ellipsis."""
    for name in ("RATCHET_HOME", "CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = CliRunner().invoke(app, shlex.split(command)[1:]).output
    for line in quote.lines:
        assert line.partition("…")[0].strip() in said


def test_plans_are_quoted() -> None:
    assert len(QUOTED) >= 3
