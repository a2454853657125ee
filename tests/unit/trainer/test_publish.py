"""Publishing an adapter: whole or not at all."""

import errno
import json
import os
from pathlib import Path

import pytest

from services.core.errors import PublishError
from services.trainer.publish import CURRENT, TEMPORARY, point_current, publish, settle, verify


def write(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(b"weights")


def test_what_is_published_verifies(tmp_path: Path) -> None:
    """The manifest holds every file's hash; nothing temporary remains; any user can read it."""
    manifest = publish(tmp_path, "round-0001", write, {"track": "t"})
    assert verify(tmp_path / "round-0001") == manifest
    assert set(manifest["files"]) == {"adapter_config.json", "adapter_model.safetensors"}
    assert [path.name for path in tmp_path.iterdir()] == ["round-0001"]
    assert (tmp_path / "round-0001" / "adapter_model.safetensors").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_damaged_adapter_is_named(tmp_path: Path, damage: str) -> None:
    """One flipped byte, or one file less."""
    publish(tmp_path, "round-0001", write, {})
    weights = tmp_path / "round-0001" / "adapter_model.safetensors"
    weights.unlink() if damage == "missing" else weights.write_bytes(b"weighty")
    with pytest.raises(PublishError, match=f"adapter_model.safetensors is {damage}"):
        verify(tmp_path / "round-0001")


def test_a_pickle_is_never_published(tmp_path: Path) -> None:
    """training_args.bin and its like run code when they are loaded."""

    def with_pickle(folder: Path) -> None:
        (folder / "training_args.bin").write_bytes(b"")

    with pytest.raises(PublishError, match="pickle"):
        publish(tmp_path, "round-0001", with_pickle, {})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_one_before(tmp_path: Path) -> None:
    """ENOSPC while writing: a clear error, the champion untouched, no temporaries."""
    publish(tmp_path, "round-0001", write, {})
    point_current(tmp_path, "round-0001")

    def full(folder: Path) -> None:
        write(folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(PublishError, match="No space left on device"):
        publish(tmp_path, "round-0002", full, {})
    verify(tmp_path / CURRENT)
    assert sorted(path.name for path in tmp_path.iterdir()) == [CURRENT, "round-0001"]


def test_current_moves_in_one_step(tmp_path: Path) -> None:
    """A symlink that is replaced, never removed."""
    for name in ("round-0001", "round-0002"):
        publish(tmp_path, name, write, {"name": name})
        point_current(tmp_path, name)
        assert json.loads((tmp_path / CURRENT / "manifest.json").read_text())["name"] == name


def test_settling_follows_the_ledger(tmp_path: Path) -> None:
    """After a crash: temporaries and unrecorded adapters go, `current` points to the champion."""
    for name in ("round-0001", "round-0002", "round-0003"):
        publish(tmp_path, name, write, {})
    point_current(tmp_path, "round-0001")
    (tmp_path / f"{TEMPORARY}round-0004-17").mkdir()
    settle(tmp_path, "round-0002", {"round-0001", "round-0002"})
    assert (tmp_path / CURRENT).readlink() == Path("round-0002")
    assert sorted(path.name for path in tmp_path.iterdir()) == [CURRENT, "round-0001", "round-0002"]
