"""The order in which publishing reaches the disk, and a disk that is full at any point of it."""

import errno
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.core.errors import PublishError
from services.core.settings import PROJECT
from services.trainer import seals
from services.trainer.publish import CURRENT, TEMPORARY, point_current, publish, settle, verify
from tests import tiny_adapter

Call = tuple[str, ...]  # a function of os, and the names of the files it was called for
PATHS = {"mkdir": 1, "chmod": 1, "fsync": 1, "rename": 2, "replace": 2, "symlink": 2}  # arguments that are


class Disk:
    """What goes to the disk, in order; `fails_at` is the call that finds it full."""

    def __init__(self, track_dir: Path) -> None:
        self.calls: list[Call] = []
        self.fails_at: int | None = None
        self._own = f"-{os.getpid()}"
        self._track_dir = track_dir

    def record(self, name: str, *paths: object) -> None:
        if self.fails_at == len(self.calls):
            self.calls.append((name, "full"))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.calls.append((name, *map(self._named, paths)))

    def _named(self, path: object) -> str:
        path = str(Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else path)
        return os.path.relpath(path, self._track_dir).replace(self._own, "") if "/" in path else path


@pytest.fixture
def disk(tmp_path: Path, monkeypatch) -> Iterator[Disk]:
    """Every call by which Python changes a disk; files are noticed when they are opened to be written."""
    watched, really_open = Disk(tmp_path / "track"), io.open

    def watch(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            watched.record(name, *args[: PATHS[name]])
            return real(*args, **kwargs)

        return call

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if set(mode) & set("wax+"):
            watched.record("write", file)
        return really_open(file, mode, *args, **kwargs)

    for name in PATHS:
        monkeypatch.setattr(os, name, watch(name, getattr(os, name)))
    monkeypatch.setattr(io, "open", opened)
    yield watched
    monkeypatch.undo()


def test_what_a_name_promises_is_on_the_disk_before_the_name(disk: Disk, tmp_path: Path) -> None:
    """Files, their folder, the name, the folder of names; then `current`, in the same way."""
    publish(tmp_path / "track", "round-0001", tiny_adapter.make, {})
    point_current(tmp_path / "track", "round-0001")
    new = f"{TEMPORARY}round-0001"
    durable = [call for call in disk.calls if call[0] in ("fsync", "rename", "replace", "symlink")]
    assert [call for call in durable if seals.SEALS not in call[-1]] == [
        ("fsync", ".."),  # the track's folder was new
        ("fsync", f"{new}/adapter_config.json"),
        ("fsync", f"{new}/adapter_model.safetensors"),
        ("fsync", f"{new}/manifest.json"),
        ("fsync", new),
        ("rename", new, "round-0001"),
        ("fsync", "."),
        ("symlink", "round-0001", f"{TEMPORARY}{CURRENT}"),
        ("replace", f"{TEMPORARY}{CURRENT}", CURRENT),
        ("fsync", "."),
    ]
    writes = [number for number, call in enumerate(disk.calls) if call[0] in ("write", "chmod")]
    named = disk.calls.index(("rename", new, "round-0001"))
    after = [disk.calls[number] for number in writes if number > named]
    assert all(seals.SEALS in call[1] for call in after), "nothing of the adapter is written after its name"


def test_a_disk_that_is_full_at_any_call_leaves_the_one_before(disk: Disk, tmp_path: Path) -> None:
    """`publish` and `point_current`, failed at each call in turn, and settled as after a restart."""
    track = tmp_path / "track"
    publish(track, "round-0001", tiny_adapter.make, {})
    point_current(track, "round-0001")
    before = verify(track / CURRENT)
    outcomes, reasons = [], set()
    for call in range(100):
        disk.calls.clear()
        disk.fails_at = call
        try:
            publish(track, "round-0002", lambda folder: tiny_adapter.make(folder, seed=2), {})
            point_current(track, "round-0002")
            outcomes.append("published")
        except PublishError as exc:
            reasons.add("No space left on device" in str(exc))
            outcomes.append("refused")
        disk.fails_at = None
        if len(disk.calls) <= call:  # it was not reached
            break
        settle(track, "round-0001", {"round-0001"})
        assert verify(track / CURRENT) == before
        assert sorted(path.name for path in track.iterdir()) == [seals.SEALS, CURRENT, "round-0001"]
        assert [path.name for path in (track / seals.SEALS).iterdir()] == ["round-0001.json"]
    assert reasons == {True}
    assert outcomes.count("refused") > 12
    assert outcomes[-1] == "published"


FULL_DISK = """
import json, os, subprocess, sys
from pathlib import Path
from services.core.errors import PublishError
from services.trainer import seals
from services.trainer.publish import CURRENT, point_current, publish, settle, verify
from tests import tiny_adapter

disk, limit = Path(sys.argv[1]), sys.argv[2]
subprocess.run(["mount", "-t", "tmpfs", "-o", limit, "tmpfs", disk], check=True)
track, outcomes = disk / "track", []
publish(track, "round-0001", tiny_adapter.make, {})
point_current(track, "round-0001")
before = verify(track / CURRENT)

def fill(left):
    filler = disk / "filler"
    filler.mkdir()
    state = os.statvfs(disk)
    if "nr_inodes" in limit:
        for number in range(os.statvfs(disk).f_ffree - left):
            (filler / str(number)).touch()
    else:
        (filler / "0").write_bytes(bytes(state.f_frsize * max(0, state.f_bavail - left)))

for left in range(40):
    fill(left)
    where = "publish"
    try:
        publish(track, "round-0002", lambda folder: tiny_adapter.make(folder, seed=2), {})
        where = "point_current"
        point_current(track, "round-0002")
        outcomes.append("published")
    except PublishError as exc:
        assert "No space left on device" in str(exc), exc
        outcomes.append(where)
    if outcomes[-1] != "published":
        assert (track / CURRENT).readlink() == Path("round-0001")
        assert verify(track / CURRENT) == before
        assert not list(track.glob(".publishing-round*"))
    for path in (disk / "filler").iterdir():
        path.unlink()
    (disk / "filler").rmdir()
    settle(track, "round-0001", {"round-0001"})
    assert verify(track / CURRENT) == before
    assert sorted(path.name for path in track.iterdir()) == [seals.SEALS, CURRENT, "round-0001"]
print(json.dumps(outcomes))
"""


@pytest.mark.parametrize("limit", ["size=512k", "size=4m,nr_inodes=60"])
def test_a_small_disk_leaves_the_one_before(limit: str, tmp_path: Path) -> None:
    """A file system of its own, filled but for 0, 1, 2, … pages or inodes; the kernel says ENOSPC itself."""
    (tmp_path / "disk").mkdir()
    cage = ["unshare", "--user", "--map-root-user", "--mount"]
    tried = ["sh", "-c", f"mount -t tmpfs tmpfs {tmp_path / 'disk'}"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*cage, *tried], capture_output=True, check=False).returncode
    ):
        pytest.skip("a file system of a given size needs a user namespace")
    command = [*cage, sys.executable, "-c", FULL_DISK, tmp_path / "disk", limit]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert outcomes[0] == "publish"
    assert outcomes[-1] == "published"
    assert ("point_current" in outcomes) == ("nr_inodes" in limit)  # a link needs no page, but an inode
