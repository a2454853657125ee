"""docs/reference/cli.md is what the commands and the guide say."""

import re

from services.cli import reference
from services.cli.commands import guide


def test_the_page_is_up_to_date() -> None:
    assert reference.PAGE.read_text("utf-8") == reference.page(), "run python -m services.cli.reference"


def test_every_command_has_a_section_in_the_guide_and_no_other_has() -> None:
    named = [match["name"] for match in guide.SECTION.finditer(guide.FILE.read_text("utf-8"))]
    assert sorted(named) == sorted(set(re.findall(r"^## (\S+)$", reference.page(), re.MULTILINE)))


def test_text_keeps_its_code_and_loses_its_markup() -> None:
    assert reference._escaped("a < b * `c < d * e`") == "a &lt; b \\* `c < d * e`"
