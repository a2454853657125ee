"""Any file that calls itself an archive ends in rows: paths that stay inside, each once, within caps."""

import os
import sys
from pathlib import Path

import atheris
import harness

sys.path.insert(0, harness.PROJECT)
with atheris.instrument_imports(include=["services.processor"]):
    from services.processor import thresholds
    from services.processor.sources import archives
    from services.processor.sources.options import Options

SUFFIXES = [".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".py.gz", ".py.xz", ".py.zst"]
FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")


def target(data: bytes) -> None:
    if not data:
        return
    path = FOLDER / f"ratchet-fuzz-{os.getpid()}{SUFFIXES[data[0] % len(SUFFIXES)]}"
    path.write_bytes(data[1:])
    met = set()
    for found, outcome in archives.members(path, Options()):
        assert found.path not in met
        met.add(found.path)
        found.path.encode()
        assert "\0" not in found.path
        if isinstance(outcome, bytes):
            assert ".." not in found.path.split("/")
            assert not found.path.startswith("/")
            assert len(outcome) <= thresholds.MAX_FILE_BYTES
    path.unlink()


harness.run(target)
