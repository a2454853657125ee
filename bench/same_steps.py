"""Our arm of bench/ingest.py against datatrove: the same steps by the processor's functions, in one process.

    .venv/bin/python bench/same_steps.py CORPUS PATHS OUT

Read, decode, tell the language, filter, score, address, MinHash, decide what is kept, write that as JSON
lines. Left out is what the peer has not: secrets, licences, decontamination, units. The last line printed is
RESULT and a JSON object.
"""

import json
import resource
import sys
import time
from pathlib import Path

if __name__ == "__main__":  # not bench/, whose secrets.py is not Python's
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import msgspec

from services.processor import clusters
from services.processor.judge import judge_path
from services.processor.stages import decode, dedup, filters, language, minhash, score, words
from services.processor.values import Code, Rejection


def look(path: str, data: bytes) -> tuple[clusters.Candidate, Code] | None:
    """What the processor makes of a file, without the steps that the peer has not; None: it is refused."""
    if judge_path(path):
        return None
    text = decode.decode(data)
    if isinstance(text, Rejection):
        return None
    spoken = language.detect(path, text)
    if isinstance(spoken, Rejection):
        return None
    code = Code(path, spoken, text, text.encode(), text.splitlines())
    if filters.refuse(code):
        return None
    bands = minhash.keys_of(words.ngrams(words.hashes_of(code.figures.folded)))
    return clusters.Candidate(dedup.address(code.data), score.score(code).value, bands), code


def main(corpus: Path, paths: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    names = paths.read_text(encoding="utf-8").splitlines()
    begun, used = time.monotonic(), cpu_seconds()
    encode = msgspec.json.Encoder().encode
    candidates: dict[bytes, clusters.Candidate] = {}
    lines: dict[bytes, bytes] = {}  # of each text once
    passed = 0
    for name in names:
        with open(f"{corpus}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - half the time of read_bytes
            found = look(name, file.read())
        if found is None:
            continue
        passed += 1
        candidate, code = found
        if candidate.sha256 not in candidates:
            candidates[candidate.sha256] = candidate
            told = {"language": code.language, "score": candidate.score}
            lines[candidate.sha256] = encode({"text": code.text, "id": name, "metadata": told})
    decision = clusters.decide(list(candidates.values()), {}, {})
    with (out / "kept.jsonl").open("wb") as file:
        for address in decision.kept:
            file.write(lines[address] + b"\n")
    result = {
        "files": len(names),
        "wall_s": round(time.monotonic() - begun, 2),
        "cpu_s": round(cpu_seconds() - used, 2),
        "passed": passed,
        "distinct": len(candidates),
        "kept": len(decision.kept),
    }
    print("RESULT", json.dumps(result))


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
