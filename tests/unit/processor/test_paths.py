"""Names as the database holds them: printable, and without credentials."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.sources import source
from services.processor.sources.options import Options
from services.processor.sources.paths import printable, printable_bytes, without_tokens

GITHUB = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
AWS = "AKIA" + "Q3EGTKD2PLMNB7XA"
GITLAB = "glpat-" + "aB3dE5fG7hJ9kL1mN3pQ"


@pytest.mark.parametrize("token", [GITHUB, AWS, GITLAB])
@pytest.mark.parametrize(
    "name", ["{}", "{}.py", "backup {}.sql", "keys/{}/main.rs", "a/{}.tar.gz", "ö-{}.py"]
)
def test_a_credential_in_a_name_is_replaced_and_the_suffix_stays(name: str, token: str) -> None:
    """The suffix tells the language; a file with a name like this is still worth reading."""
    shown = printable(name.format(token))
    assert token not in shown
    assert "REDACTED_CREDENTIAL_" in shown
    assert Path(shown).suffix == Path(name).suffix
    assert printable_bytes(name.format(token).encode()) == shown


def test_two_credentials_are_two_names() -> None:
    """Or one of two files would be passed over."""
    assert without_tokens(f"{GITHUB}.py") != without_tokens(f"{GITHUB[:-1]}x.py")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_replacing_again_changes_nothing(name: str) -> None:
    """A path that is shown is a path that can be asked for."""
    assert without_tokens(without_tokens(name)) == without_tokens(name)
    assert without_tokens(without_tokens(f"{name}{GITHUB}")) == without_tokens(f"{name}{GITHUB}")


@pytest.mark.parametrize(
    "name", ["main.py", "app.4f3c2d1e5b6a7980.js", "0123456789abcdef" * 2, "information.py"]
)
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert printable(name) == name


def test_a_file_behind_such_a_name_is_found_and_read(tmp_path: Path) -> None:
    """The walk keeps how the disk spells it, also of a directory above."""
    below = tmp_path / "repo" / f"keys-{GITHUB}"
    below.mkdir(parents=True)
    (below / f"{AWS}.py").write_text("x = 1\n")
    (found,) = source.find(tmp_path)
    (entry,) = source.walk(found, Options())
    assert GITHUB not in entry.path
    assert AWS not in entry.path
    with source.reader(found) as files:
        assert files.read(entry).data == b"x = 1\n"
