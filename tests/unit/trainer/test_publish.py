"""Publishing an adapter: whole or not at all."""

import json
import os
import shutil
from pathlib import Path

import pytest

from services.core.errors import PublishError
from services.trainer import seals
from services.trainer.publish import (
    CURRENT,
    TEMPORARY,
    follow,
    point_current,
    publish,
    resolve,
    settle,
    verify,
    verify_sealed,
)
from tests import tiny_adapter

WEIGHTS = "adapter_model.safetensors"


def names(track_dir: Path) -> list[str]:
    return sorted(path.name for path in track_dir.iterdir())


def flip(path: Path) -> None:
    """The last bit of the file, without a change of its size."""
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))


def test_what_is_published_verifies(tmp_path: Path) -> None:
    """The manifest holds every file's hash; nothing temporary remains; any user can read it."""
    manifest = publish(tmp_path, "round-0001", tiny_adapter.make, {"track": "t"})
    assert verify(tmp_path / "round-0001") == manifest
    assert set(manifest["files"]) == {"adapter_config.json", WEIGHTS}
    assert names(tmp_path) == [seals.SEALS, "round-0001"]
    assert (tmp_path / "round-0001" / WEIGHTS).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("check", [verify, verify_sealed])
@pytest.mark.parametrize("damage", ["changed", "missing", "not in the manifest"])
def test_a_damaged_adapter_is_named(tmp_path: Path, damage: str, check) -> None:
    """One flipped bit, one file less, one file more."""
    publish(tmp_path, "round-0001", tiny_adapter.make, {})
    weights = tmp_path / "round-0001" / WEIGHTS
    if damage == "missing":
        weights.unlink()
    elif damage == "changed":
        flip(weights)
    else:
        weights = weights.with_name("more.json")
        weights.write_text("{}")
    with pytest.raises(PublishError, match=f"{weights.name} is {damage}"):
        check(tmp_path / "round-0001")


def test_a_look_at_a_sealed_adapter_reads_no_weights(tmp_path: Path, monkeypatch) -> None:
    """As long as nothing was written to it. A copy is read again, and sealed then."""
    manifest = publish(tmp_path, "round-0001", tiny_adapter.make, {})
    shutil.copytree(tmp_path / "round-0001", tmp_path / "round-0002")
    hashed: list[Path] = []
    hashing = "services.trainer.publish._sha256"
    monkeypatch.setattr(hashing, lambda path: hashed.append(path) or manifest["files"][path.name])
    assert verify_sealed(tmp_path / "round-0001") == manifest
    assert hashed == []
    assert verify_sealed(tmp_path / "round-0002") == manifest
    assert {path.name for path in hashed} == {"adapter_config.json", WEIGHTS}
    hashed.clear()
    verify_sealed(tmp_path / "round-0002")
    assert hashed == []


def test_times_set_back_do_not_hide_a_change(tmp_path: Path) -> None:
    """A program may set a file's mtime; the time of the inode's change is the kernel's own."""
    publish(tmp_path, "round-0001", tiny_adapter.make, {})
    weights = tmp_path / "round-0001" / WEIGHTS
    before = weights.stat()
    flip(weights)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(PublishError, match="is changed"):
        verify_sealed(tmp_path / "round-0001")


def test_current_moves_in_one_step(tmp_path: Path) -> None:
    """A symlink that is replaced, never removed."""
    for name in ("round-0001", "round-0002"):
        publish(tmp_path, name, tiny_adapter.make, {"name": name})
        point_current(tmp_path, name)
        assert json.loads((tmp_path / CURRENT / "manifest.json").read_text())["name"] == name


def test_a_resolved_champion_stays_the_one_it_was(tmp_path: Path) -> None:
    """However `current` moves from then on; without a champion there is nothing to resolve."""
    for name in ("round-0001", "round-0002"):
        publish(tmp_path, name, tiny_adapter.make, {"name": name})
    with pytest.raises(PublishError, match="leads to no adapter"):
        resolve(tmp_path)
    point_current(tmp_path, "round-0001")
    folder = resolve(tmp_path)
    point_current(tmp_path, "round-0002")
    assert verify(folder)["name"] == "round-0001"
    follow(tmp_path, None)
    assert verify(folder)["name"] == "round-0001"


def test_settling_follows_the_ledger(tmp_path: Path) -> None:
    """After a crash: temporaries and unrecorded adapters go, `current` points to the champion."""
    for name in ("round-0001", "round-0002", "round-0003"):
        publish(tmp_path, name, tiny_adapter.make, {})
    point_current(tmp_path, "round-0001")
    (tmp_path / f"{TEMPORARY}round-0004-17").mkdir()
    (tmp_path / seals.SEALS / ".round-0004.json-17").touch()
    settle(tmp_path, "round-0002", {"round-0001", "round-0002"})
    assert (tmp_path / CURRENT).readlink() == Path("round-0002")
    assert names(tmp_path) == [seals.SEALS, CURRENT, "round-0001", "round-0002"]
    assert names(tmp_path / seals.SEALS) == ["round-0001.json", "round-0002.json"]
