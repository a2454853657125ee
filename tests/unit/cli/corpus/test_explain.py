"""Showing what others wrote, and finding what a person means."""

import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from services.cli.asking.locate import locate
from services.cli.printing.inert import inert
from services.core.reason_texts import TEXTS, text
from services.processor.reasons import Reason


@given(st.text())
def test_nothing_that_a_terminal_obeys_comes_through(name: str) -> None:
    """No control, no format character, no lone surrogate."""
    assert {unicodedata.category(char) for char in inert(name)}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_what_can_be_printed_stays_as_it_is(name: str) -> None:
    assert inert(name) == name


def test_every_reason_has_a_line_for_a_person() -> None:
    """And no two the same."""
    assert TEXTS.keys() == set(Reason)
    assert len(set(TEXTS.values())) == len(TEXTS)


def test_a_reason_of_another_version_has_none() -> None:
    assert text("no_such_reason") is None


def test_a_path_in_the_ingest_folder_comes_first(tmp_path: Path) -> None:
    """Unless it begins with ./, ../ or /."""
    for folder in ("ingest/repo", "here/repo"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("1")
    found = locate("repo/a.py", tmp_path / "ingest", tmp_path / "here")
    assert (found.name, found.path) == ("repo", "a.py")
    assert locate("./repo/a.py", tmp_path / "ingest", tmp_path / "here").file == tmp_path / "here/repo/a.py"


def test_a_path_through_a_link_into_the_ingest_folder_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "ingest" / "repo").mkdir(parents=True)
    (tmp_path / "ingest" / "repo" / "a.py").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "ingest")
    found = locate(str(tmp_path / "link" / "repo" / "a.py"), tmp_path / "ingest", tmp_path)
    assert (found.name, found.path) == ("repo", "a.py")


def test_a_link_to_a_directory_is_no_directory(tmp_path: Path) -> None:
    """The walk refuses it as a link, and so it is explained."""
    (tmp_path / "ingest" / "repo").mkdir(parents=True)
    (tmp_path / "ingest" / "repo" / "link").symlink_to("/")
    assert locate("repo/link", tmp_path / "ingest", tmp_path).path == "link"
