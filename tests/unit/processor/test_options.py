"""What a person may say of a source, and what is said back when it cannot be meant."""

from pathlib import Path

import pytest

from services.core.errors import ConfigurationError
from services.processor.sources import options


def test_without_a_file_everything_is_taken(tmp_path: Path) -> None:
    """And no licence is said."""
    chosen = options.read(tmp_path / "repo")
    assert chosen.refuse("any/path.py") is None
    assert (chosen.licence, chosen.digest) == (None, "")


def test_the_file_beside_the_source_is_read(tmp_path: Path) -> None:
    """Its digest changes with it."""
    (tmp_path / "repo.tar.gz.ratchet.yaml").write_text("include: '*.py'\nexclude: [gen/]\nlicence: MIT\n")
    chosen = options.read(tmp_path / "repo.tar.gz")
    assert chosen.licence == "MIT"
    assert chosen.refuse("a.py") is None
    assert chosen.refuse("a.js") is not None
    assert chosen.refuse("gen/a.py") is not None
    assert chosen.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("inlcude: [a]", "'inlcude' is no key"),
        ("include: 7", "include: '7', expected a list"),
        ("include: [[a]]", "include: .*expected a pattern"),
        ("exclude: ['a*b*c*d*e']", "exclude: 'a\\*b\\*c\\*d\\*e', expected a pattern"),
        ("licence: [MIT]", "licence: .*expected an SPDX expression"),
        ("- a", "found a list"),
        ("a: [", "not YAML"),
        ("!!python/object/apply:os.system [id]", "not YAML"),
        ("- " * 5_000, "not YAML"),
        ("x" * 70_000, "at most 64000"),
        ("include: [&a [x], &b [*a, *a], [*b, *b]]", "aliases"),
    ],
)
def test_what_cannot_be_meant_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The file, the key and the value."""
    (tmp_path / "repo.ratchet.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=said) as failure:
        options.read(tmp_path / "repo")
    assert "repo.ratchet.yaml" in str(failure.value)


def test_bytes_that_are_not_utf8_are_an_error(tmp_path: Path) -> None:
    """Like any other malformed file."""
    (tmp_path / "repo.ratchet.yaml").write_bytes(b"include: ['\xff']")
    with pytest.raises(ConfigurationError, match="not YAML in UTF-8"):
        options.read(tmp_path / "repo")
