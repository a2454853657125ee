"""The peer's arm of bench/ingest.py: datatrove reads code, filters, scores, and drops near duplicates.

    PYTHON bench/datatrove_peer.py CORPUS PATHS OUT [WORKERS]

CORPUS is a folder, PATHS a file that names one file below it a line, OUT a folder that is emptied first.
Runs in an environment of its own, which has datatrove[processing]==0.10.1 and nothing of ours. Its MinHash
is that of StarCoder2 and of ours: 5-grams, 14 bands of 8 rows. Words are told apart by a regular
expression; datatrove's own tokenizer for English takes four times as long. Between its stages it writes
JSON lines and signatures, as it is made to. The last line printed is RESULT and a JSON object.
"""

# mypy: disable-error-code="import-not-found"

import json
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("LOGURU_LEVEL", "WARNING")

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.filters import LambdaFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.readers.base import BaseDiskReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.word_tokenizers import WordTokenizer

CONFIG = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8, hash_config=HashConfig(precision=64))


class Words(WordTokenizer):  # type: ignore[misc]
    """Runs of word characters: the cheapest tokenizer the library's interface allows."""

    pattern = re.compile(r"\w+")

    def word_tokenize(self, text: str) -> list[str]:
        return self.pattern.findall(text)

    def sent_tokenize(self, text: str) -> list[str]:
        return text.split("\n")

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [found.span() for found in self.pattern.finditer(text)]


class CodeReader(BaseDiskReader):  # type: ignore[misc]
    """One document a file, decoded as UTF-8 or else as Latin-1."""

    name = "code"

    def read_file(self, filepath: str) -> Iterator[Any]:
        with self.data_folder.open(filepath, "rb") as file:
            data = file.read()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        if document := self.get_document_from_dict({"text": text, "id": filepath}, filepath, 0):
            yield document


def is_good(document: Any) -> bool:
    """A few of the usual limits, and a score of lines, letters and comments: less than ours looks at."""
    text: str = document.text
    if not 50 <= len(text) <= 1_000_000:
        return False
    lines = text.split("\n")
    if max(map(len, lines)) > 1_000 or len(text) / len(lines) > 100:
        return False
    letters = sum(map(str.isalnum, text)) / len(text)
    comments = sum(line.lstrip()[:1] in ("#", "/", "*") for line in lines) / len(lines)
    document.metadata["score"] = 30 * min(1, len(lines) / 50) + 40 * letters + 30 * min(1, 5 * comments)
    return letters >= 0.25


def stages(corpus: str, paths: str, out: str, workers: int) -> Iterator[tuple[str, list[Any], int]]:
    """Name, steps and number of tasks of each stage."""
    words = Words()
    yield "read", [
        CodeReader(corpus, paths_file=paths),
        LambdaFilter(is_good),
        JsonlWriter(f"{out}/filtered", compression=None),
    ], workers  # fmt: skip
    yield "signatures", [
        JsonlReader(f"{out}/filtered"),
        MinhashDedupSignature(output_folder=f"{out}/signatures", config=CONFIG, language=words),
    ], workers  # fmt: skip
    yield "buckets", [
        MinhashDedupBuckets(
            input_folder=f"{out}/signatures", output_folder=f"{out}/buckets", config=CONFIG
        )
    ], CONFIG.num_buckets  # fmt: skip
    yield "clusters", [
        MinhashDedupCluster(input_folder=f"{out}/buckets", output_folder=f"{out}/removed", config=CONFIG)
    ], 1  # fmt: skip
    yield "kept", [
        JsonlReader(f"{out}/filtered"),
        MinhashDedupFilter(input_folder=f"{out}/removed"),
        JsonlWriter(f"{out}/kept", compression=None),
    ], workers  # fmt: skip


def main(corpus: str, paths: str, out: str, workers: int = 1) -> None:
    shutil.rmtree(out, ignore_errors=True)
    Path(out).mkdir(parents=True)
    begun, used = time.monotonic(), cpu_seconds()
    wall: dict[str, float] = {}
    for name, steps, tasks in stages(corpus, paths, out, workers):
        at = time.monotonic()
        LocalPipelineExecutor(
            pipeline=steps,
            tasks=tasks,
            workers=min(workers, tasks),
            start_method="fork",
            logging_dir=f"{out}/logs/{name}",
            skip_completed=False,
        ).run()
        wall[name] = round(time.monotonic() - at, 2)
    result = {
        "files": count_lines(Path(paths)),
        "wall_s": round(time.monotonic() - begun, 2),
        "cpu_s": round(cpu_seconds() - used, 2),
        "passed": sum(map(count_lines, Path(out, "filtered").iterdir())),
        "kept": sum(map(count_lines, Path(out, "kept").iterdir())),
        "stages": wall,
    }
    print("RESULT", json.dumps(result))


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 1)
