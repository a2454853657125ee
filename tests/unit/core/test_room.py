"""How full the disks are."""

from pathlib import Path

from services.core.room import room


def test_a_disk_is_told_once(tmp_path: Path) -> None:
    """However many folders lie on it, and also for a folder that is not there yet."""
    (disk,) = room([tmp_path / "not" / "yet", tmp_path])
    assert disk["path"] == str(tmp_path)
    assert 0 < disk["free_bytes"] <= disk["total_bytes"]


def test_the_root_stands_for_what_is_nowhere() -> None:
    """A path of which no part exists is on the root's disk."""
    (disk,) = room([Path("/nothing/is/here")])
    assert disk["path"] == "/"
