"""Offline runs of W&B, read back from the files that `wandb sync` would send."""

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wandb.proto.wandb_internal_pb2 import Record

BLOCK, HEADER, FILE_HEADER = 32768, 7, 7  # bytes of a .wandb file: LevelDB's log format after a header
FULL, LAST = 1, 4  # types of its chunks that end a record
WRITING = 30.0  # seconds


def records(path: Path) -> Iterator[bytes]:
    """The records of a LevelDB log, put together from their chunks."""
    content, at, record = path.read_bytes(), FILE_HEADER, b""
    while at + HEADER <= len(content):
        left = BLOCK - at % BLOCK
        if left < HEADER:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", content, at)
        if at + HEADER + size > len(content):
            return  # it is being written
        record += content[at + HEADER : at + HEADER + size]
        at += HEADER + size
        if kind in (FULL, LAST):
            yield record
            record = b""


def written(path: Path) -> list[Record]:
    """All that `wandb sync` would send.

    wandb's own process writes the file, and ends it a moment after the run was finished.
    """
    deadline = time.monotonic() + WRITING
    while True:
        found = [Record.FromString(content) for content in records(path)]
        if any(record.HasField("exit") for record in found):
            return found
        assert time.monotonic() < deadline, f"{path} has no end after {WRITING} s"
        time.sleep(0.05)


def runs(folder: Path) -> list[Path]:
    """The files of offline runs, the oldest first."""
    return sorted(folder.glob("wandb/wandb/offline-run-*/*.wandb"))


def history(folder: Path, number: int = 0) -> list[dict[str, Any]]:
    """What an offline run logged, step by step."""
    return [
        {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
        for record in written(runs(folder)[number])
        if record.HasField("history")
    ]
