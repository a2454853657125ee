"""File events of directories we listed, and of no others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.processor import watch
from services.processor.watch import Watcher


class Never:
    """A stop signal that never comes."""

    def __bool__(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        return False


@pytest.fixture
def ingest(tmp_path: Path) -> Path:
    (tmp_path / "ingest" / "repo" / "src").mkdir(parents=True)
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    return tmp_path / "ingest"


@pytest.fixture
def watcher(ingest: Path) -> Iterator[Watcher]:
    watcher = Watcher(ingest, Never())  # type: ignore[arg-type]
    yield watcher
    watcher.close()


def test_a_change_names_its_source(ingest: Path, watcher: Watcher) -> None:
    """A write deep in a source wakes the scan of that source alone."""
    assert watcher.follow(["", "repo/", "repo/src/"])
    (ingest / "repo" / "src" / "a.py").write_text("x")
    assert watcher.wait(60) == {"repo"}


def test_a_new_source_is_noticed(ingest: Path, watcher: Watcher) -> None:
    """As a change of the ingest folder itself."""
    watcher.follow([""])
    (ingest / "another").mkdir()
    assert watcher.wait(60) == {"another", "."}


def test_a_link_is_not_watched_through(ingest: Path, watcher: Watcher) -> None:
    """The kernel watches the directories we listed: nothing behind a link, as the library would."""
    (ingest / "repo" / "escape").symlink_to(ingest.parent / "outside")
    before = _watched_inodes()
    watcher.follow(["", "repo/", "repo/src/", "repo/escape/"])
    new = _watched_inodes() - before
    assert new == {(ingest / part).stat().st_ino for part in ("", "repo", "repo/src")}


def test_a_name_that_is_not_utf8_means_looking_oneself(ingest: Path, watcher: Watcher) -> None:
    """The library cannot say it: everything is looked at, and watched anew."""
    watcher.follow(["", "repo/"])
    (ingest / "repo" / "caf\udce9.py").write_text("x")
    assert watcher.wait(60) is None
    assert watcher.follow(["", "repo/"])
    (ingest / "repo" / "b.py").write_text("x")
    assert watcher.wait(60) == {"repo"}


def _watched_inodes() -> set[int]:
    found = set()
    for descriptor in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = descriptor.read_text().splitlines()
        except OSError:
            continue
        found |= {int(line.split("ino:")[1].split()[0], 16) for line in lines if line.startswith("inotify")}
    return found


def test_the_same_directories_are_not_watched_anew(watcher: Watcher) -> None:
    """Only a change of the set asks for another look."""
    assert watcher.follow(["", "repo/"])
    assert not watcher.follow(["repo/", ""])


def test_without_events_one_must_look(ingest: Path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    """When the kernel has no watch left, that is said once and the caller polls."""

    def full(*_args):
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watch, "RustNotify", full)
    watcher = Watcher(ingest, Never())  # type: ignore[arg-type]
    for _ in range(3):
        assert not watcher.follow([""])
        assert watcher.wait(0.01) is None
    assert caplog.text.count("no file events") == 1
