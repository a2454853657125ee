"""What a promotion asks of the kernel, in order: files, name, row, `current`."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.core.settings import PROJECT
from services.core.target import Target
from tests.integration.trainer.test_ledger import texts

ROUND = """
import json, sys
from pathlib import Path
from services.core.db import Database
from services.core.target import Target
from tests.integration.trainer.test_promotions import Life
life = Life(Database(Target(**json.loads(sys.argv[1])), application="traced"), Path(sys.argv[2]))
opened = life.open()
print("opened", file=sys.stderr, flush=True)
life.close(opened)
"""
CALLS = "fsync,fdatasync,rename,renameat,renameat2,symlink,symlinkat,write,sendto,chmod,fchmod,openat"


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace watches the system calls")
def test_a_promotion_reaches_the_disk_in_order(
    target: Target, store: Callable[[list[str]], None], tmp_path: Path
) -> None:
    """fsync of each file and of their folder, rename, fsync of the track, COMMIT, symlink, rename, fsync."""
    store(texts(20))
    password = target.password.get_secret_value()
    described = json.dumps({**target.model_dump(mode="json"), "password": password})
    trace, adapters = tmp_path / "trace", tmp_path / "adapters"
    command = ["strace", "-f", "-y", "-s", "64", "-e", f"trace={CALLS}", "-o", trace, sys.executable]
    done = subprocess.run(
        [*command, "-c", ROUND, described, adapters], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    _, opened, after = trace.read_text(errors="replace").partition('"opened')
    assert opened
    assert told(after, adapters / "moved") == [
        "fsync ..",
        "fsync NEW/adapter_config.json",
        "fsync NEW/adapter_model.safetensors",
        "fsync NEW/manifest.json",
        "fsync NEW",
        "rename NEW round-0001",
        "fsync .",
        "COMMIT",
        "symlink round-0001 NEW",
        "rename NEW current",
        "fsync .",
    ]


def told(trace: str, track: Path) -> list[str]:
    """The calls that order the rest, in short; of commits the first one only, which records the adapter."""
    found: list[str] = []
    for line in trace.splitlines():
        call, _, rest = re.sub(r"^\d+ +", "", line).partition("(")
        names = [short(name, track) for name in re.findall(r'"([^"]*)"', rest)]
        if call == "sendto" and "COMMIT" in rest and any("fsync" in each for each in found):
            found += ["COMMIT"] if "COMMIT" not in found else []
        elif call in ("fsync", "fdatasync") and (path := re.match(r"\d+<(.*?)>", rest)):
            found.append(f"fsync {short(path[1], track)}")
        elif call.startswith(("rename", "symlink")) and ".seals" not in rest:
            found.append(f"{re.sub('at2?$', '', call)} {' '.join(names)}")
    return found


def short(path: str, track: Path) -> str:
    path = re.sub(r"\.publishing-(round-\d+|current)-\d+", "NEW", path)
    if path == str(track.parent):
        return ".."
    return path.removeprefix(str(track)).removeprefix("/") or "."
