"""Demonstration code for an ingest folder that is empty."""

import pytest

from services.cli.stack import demo
from services.core.errors import StackError


@pytest.fixture
def ingest(tmp_path):
    return tmp_path / "ingest"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def test_an_empty_folder_is_filled_with_several_hundred_real_files(ingest, home):
    """The figures told are those of the files that are there."""
    filled = demo.fill_if_empty(ingest, home)
    assert filled is not None
    assert 400 <= filled.files <= 700
    assert len(list(ingest.rglob("*.py"))) == filled.files


def test_every_package_is_one_source_with_its_licence(ingest, home):
    filled = demo.fill_if_empty(ingest, home)
    assert filled is not None
    sources = {path.name for path in ingest.iterdir()}
    assert sources == set(filled.packages)
    for name in sources:
        files = [path.name.lower() for path in (ingest / name).iterdir() if path.is_file()]
        assert any(file.startswith(demo.LICENCE) for file in files), name


def test_it_is_done_once_in_the_life_of_a_home(ingest, home):
    """Who empties the folder wants it empty."""
    demo.fill_if_empty(ingest, home)
    for path in sorted(ingest.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert demo.fill_if_empty(ingest, home) is None
    assert list(ingest.iterdir()) == []


def test_a_folder_with_code_is_left_as_it_is(ingest, home):
    (ingest / "mine").mkdir(parents=True)
    assert demo.fill_if_empty(ingest, home) is None
    assert [path.name for path in ingest.iterdir()] == ["mine"]


def test_hidden_files_do_not_count(ingest, home):
    """A folder under version control is kept by a .gitkeep."""
    ingest.mkdir()
    (ingest / ".gitkeep").touch()
    assert demo.fill_if_empty(ingest, home) is not None


def test_a_copy_that_was_interrupted_is_finished(ingest, home):
    """Killed in the middle: the folder is no longer empty, and not yet filled."""
    expected = demo.fill_if_empty(ingest, home)
    (home / "demonstration").write_text("begun\n")
    (ingest / "flask").rename(ingest / ".flask.unfinished")
    assert demo.fill_if_empty(ingest, home) == expected
    assert (ingest / "flask" / "flask" / "__init__.py").exists()
    assert not (ingest / ".flask.unfinished").exists()


def test_a_folder_that_cannot_be_used_is_named(tmp_path, home):
    (tmp_path / "ingest").write_text("a file, not a folder")
    with pytest.raises(StackError, match="INGEST_DIR"):
        demo.fill_if_empty(tmp_path / "ingest", home)


def test_packages_are_taken_in_order_until_there_is_enough(tmp_path):
    """What is not installed or has no files is passed over."""
    packages = [
        demo.Package(str(n), ((tmp_path, tmp_path),) * size, ()) for n, size in enumerate((300, 0, 250, 9))
    ]
    assert [package.name for package in demo.choose(iter(packages))] == ["0", "2"]
