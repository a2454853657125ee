"""docs/reference/settings.md says what `.env.example` and Settings say."""

import pytest

from services.core.reference import EXAMPLE, PAGE, page, sections
from services.core.settings import NAMES, PROJECT

TEXT = EXAMPLE.read_text(encoding="utf-8")


def test_the_page_is_what_the_example_and_the_fields_say() -> None:
    """`python -m services.core.reference` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page(TEXT)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_one_row(name: str) -> None:
    assert page(TEXT).count(f"\n| `{name}` |") == 1


def test_every_assignment_of_the_example_is_a_row() -> None:
    """None is lost for standing in an unexpected place."""
    rows = [row.name for section in sections(TEXT) for row in section.rows]
    assert rows == [line.strip("#").partition("=")[0] for line in TEXT.splitlines() if _assigns(line)]


def test_the_first_setting_of_a_section_says_what_it_means() -> None:
    assert all(section.rows[0].meaning for section in sections(TEXT))


def test_a_page_that_a_section_names_is_there() -> None:
    named = [section.page for section in sections(TEXT) if section.page]
    assert named
    assert all((PROJECT / each).is_file() for each in named)


def test_a_secret_shows_no_default() -> None:
    secrets = [line for line in page(TEXT).splitlines() if "| secret |" in line]
    assert len(secrets) >= 5
    assert all("| secret | – |" in line for line in secrets)


def _assigns(line: str) -> bool:
    name, equals, _ = line.strip("#").partition("=")
    return bool(equals) and name.isupper() and name.replace("_", "").isalnum()
