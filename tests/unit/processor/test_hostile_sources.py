"""A whole ingest folder made to harm, read under strace: nothing outside is touched, nothing is run."""

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.unit.processor.repositories import Made

READ_ALL = """
import json, resource, sys
from pathlib import Path
from services.processor.sources import git, history, options, source
rows = {}
for found in source.find(Path(sys.argv[1])):
    said = options.Options() if found.kind is source.Kind.LOOSE else options.read(found.path)
    rows[found.printable] = row = {}
    if found.kind in source.STREAMS:
        for item, outcome in source.stream(found, said):
            row[item.path] = getattr(outcome, "reason", None) or outcome.decode()
        continue
    with source.reader(found) as files:
        for item in source.walk(found, said):
            outcome = item.refused or files.read(item)
            row[item.path] = getattr(outcome, "reason", None) or outcome.data.decode(errors="replace")
    rows[found.printable + " history"] = len(list(history.History(found.path)))
print(json.dumps([rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


EVIL_CONFIG = """
[core]
    fsmonitor = touch {0}/ran
    hooksPath = {0}
[include]
    path = {0}/secret.py
"""


def hostile(ingest: Path, outside: Path) -> None:
    """Every way we know to make a reader look at `outside`, run a program or need too much memory."""
    tree = ingest / "tree"
    tree.mkdir(parents=True)
    (tree / "a.py").write_text("inside")
    (tree / "to_file.py").symlink_to(outside / "secret.py")
    (tree / "to_folder").symlink_to(outside)
    (tree / "loop").symlink_to(".")
    (tree / ".gitignore").symlink_to(outside / "secret.py")
    (tree / ".git").write_text(f"gitdir: {outside}/work/.git\n")
    os.mkfifo(tree / "pipe.py")
    with (tree / "sparse.py").open("wb") as file:
        file.truncate(10 * 10**9)

    work = Made(ingest / "work", bare=False)
    work.commit({"a.py": b"inside"})
    (work.path / "a.py").write_text("inside")
    (work.path / ".git/config").write_text(EVIL_CONFIG.format(outside))
    (work.path / ".git/objects/info").mkdir(exist_ok=True)
    (work.path / ".git/objects/info/alternates").write_text(f"{outside}/work/.git/objects\n")
    (work.path / ".git/commondir").write_text(f"{outside}/work/.git\n")
    hook = work.path / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {outside}/ran\n")
    hook.chmod(0o755)

    bare = Made(ingest / "bare")
    bare.commit({"a.py": b"inside"})
    (bare.path / "objects/pack/pack-x.idx").symlink_to(outside / "secret.py")
    (bare.path / "packed-refs").symlink_to(outside / "secret.py")

    (ingest / "linked").symlink_to(outside)
    (ingest / "linked.zip").symlink_to(outside / "secret.py")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind in (("link.py", tarfile.SYMTYPE), ("hard.py", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, str(outside / "secret.py")
            tar.addfile(info)
        for name in ("../../outside.py", "after.py"):
            info = tarfile.TarInfo(name)
            info.size = 6
            tar.addfile(info, io.BytesIO(b"inside"))
    (ingest / "links.tar.gz").write_bytes(gzip.compress(buffer.getvalue()))
    (ingest / "zeros.py.gz").write_bytes(gzip.compress(bytes(60_000_000), 1))
    (ingest / "zeros.py.xz").write_bytes(lzma.compress(bytes(20_000_000), preset=1))
    (ingest / "zeros.py.bz2").write_bytes(bz2.compress(bytes(20_000_000)))
    with zipfile.ZipFile(ingest / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.py", bytes(20_000_000))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace watches the system calls")
def test_nothing_outside_is_touched_and_nothing_run(tmp_path: Path) -> None:
    """Links, FIFOs, sparse files, repositories and archives that lead out; in little memory."""
    outside, ingest = tmp_path / "outside", tmp_path / "ingest"
    Made(outside / "work", bare=False).commit({"a.py": b"outside"})
    (outside / "secret.py").write_text("outside")
    hostile(ingest, outside)
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-s", "0", "-e", "trace=%file,%process", "-o", trace, sys.executable]
    done = subprocess.run(
        [*command, "-c", READ_ALL, ingest],
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if b"ptrace" in done.stderr.lower():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr.decode()
    calls = trace.read_text(errors="replace").splitlines()
    assert [call for call in calls if str(outside) in call] == []
    assert sum("execve(" in call for call in calls) == 1, "the interpreter itself"
    rows, most_kilobytes = json.loads(done.stdout)
    assert most_kilobytes < 200_000
    assert rows["tree"] == {
        "a.py": "inside",
        ".gitignore": "symlink",
        "loop": "symlink",
        "pipe.py": "special_file",
        "sparse.py": "too_large",
        "to_file.py": "symlink",
        "to_folder": "symlink",
    }
    assert rows["work"] == {"a.py": "inside"}
    assert (rows["work history"], rows["bare history"], rows["tree history"]) == (1, 1, 0)
    assert rows["bare"] == {"a.py": "inside"}
    assert rows["."] == {"linked": "symlink", "linked.zip": "symlink"}
    assert rows["links.tar.gz"] == {
        "link.py": "symlink",
        "hard.py": "symlink",
        "../../outside.py": "archive_path",
        "after.py": "inside",
    }
    for name in ("zeros.py.gz", "zeros.py.xz", "zeros.py.bz2", "bomb.zip"):
        assert rows[name] == {"zeros.py": "too_large"}
