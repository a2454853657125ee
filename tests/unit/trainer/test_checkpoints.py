"""Checkpoints: only a complete one is resumed from."""

from pathlib import Path

import pytest

from services.trainer.checkpoints import is_valid, newest_valid, seal


def checkpoint(folder: Path, step: int, *, sealed: bool = True) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "optimizer.pt").write_bytes(bytes(1000))
    (path / "trainer_state.json").write_text("{}")
    if sealed:
        seal(path)
    return path


def test_the_newest_is_taken_by_step_not_by_name(tmp_path: Path) -> None:
    """10 is newer than 9."""
    checkpoint(tmp_path, 9)
    newest = checkpoint(tmp_path, 10)
    assert newest_valid(tmp_path) == newest


def truncate(path: Path) -> None:
    (path / "optimizer.pt").write_bytes(bytes(999))


def flip(path: Path) -> None:
    (path / "optimizer.pt").write_bytes(bytes(999) + b"\x01")


def remove(path: Path) -> None:
    (path / "trainer_state.json").unlink()


@pytest.mark.parametrize("damage", [truncate, flip, remove])
def test_a_damaged_one_is_passed_over(tmp_path: Path, damage: object) -> None:
    """Truncated, bit-flipped or a file short: the one before is taken."""
    good = checkpoint(tmp_path, 5)
    damage(checkpoint(tmp_path, 10))  # type: ignore[operator]
    assert newest_valid(tmp_path) == good


def test_one_killed_while_it_was_written_is_passed_over(tmp_path: Path) -> None:
    """No seal, no checkpoint."""
    assert not is_valid(checkpoint(tmp_path, 5, sealed=False))
    assert newest_valid(tmp_path) is None
