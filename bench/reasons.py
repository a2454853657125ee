"""What the filters refuse and why, what the score passes, and what both cost. Ends with one line of JSON.

    .venv/bin/python bench/reasons.py PATH…

Each PATH is a repository or a package: its files are decoded, told apart by language, filtered and
scored in this process, without database. Printed for each: files by reason; by language the share
of kept files that reach 70; the best, middle and worst file. Then, over all files kept, CPU
microseconds a file for decoding, language, filters and score, and for each figure when it is
computed on its own.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from services.processor.reasons import Reason  # noqa: E402
from services.processor.stages import decode, filters, language, score  # noqa: E402
from services.processor.stages.languages import CODE  # noqa: E402
from services.processor.thresholds import LIMITS  # noqa: E402
from services.processor.values import Code, Rejection, Score  # noqa: E402

PASSES = 70  # the default of QUALITY_THRESHOLD
SKIPPED = {".git", "__pycache__", "node_modules"}
STAGES = ("decode", "language", "filters", "score")


def files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and not SKIPPED & set(path.parts):
            yield path


class Clock:
    """CPU seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._since = time.process_time()

    def start(self) -> None:
        self._since = time.process_time()

    def lap(self, stage: str) -> None:
        now = time.process_time()
        self.seconds[stage] += now - self._since
        self._since = now


def judge(path: str, data: bytes, clock: Clock) -> tuple[Code, Score] | Rejection:
    """The first look of the processor, as far as filters and score, timed by stage."""
    clock.start()
    if refused := language.refuse_by_name(path) or filters.refuse_by_name(path):
        clock.lap("language")
        return refused
    text = decode.decode(data)
    clock.lap("decode")
    if isinstance(text, Rejection):
        return text
    spoken = language.detect(path, text)
    clock.lap("language")
    if isinstance(spoken, Rejection):
        return spoken
    code = Code(path, spoken, text, text.encode(), text.splitlines())
    clock.lap("decode")
    refused = filters.refuse(code)
    clock.lap("filters")
    if refused:
        return refused
    scored = score.score(code)
    clock.lap("score")
    return code, scored


def look(root: Path, clock: Clock) -> tuple[list[tuple[Code, Score]], Counter[str], int]:
    """Print the tables of one repository; what is kept of it, its reasons and the bytes judged."""
    kept: list[tuple[Code, Score]] = []
    reasons: Counter[str] = Counter()
    examples: dict[str, str] = {}
    size = 0
    for path in files(root):
        if path.stat().st_size > 2_000_000:
            reasons[Reason.TOO_LARGE] += 1
            continue
        data, name = path.read_bytes(), str(path.relative_to(root))
        outcome = judge(name, data, clock)
        size += len(data)
        if isinstance(outcome, Rejection):
            reasons[outcome.reason] += 1
            examples.setdefault(outcome.reason, f"{name}: {outcome.detail}")
        else:
            kept.append(outcome)
    print(f"\n== {root.name}: {len(kept)} of {len(kept) + sum(reasons.values())} files kept")
    for reason, count in reasons.most_common():
        print(f"  {reason:<24}{count:>6}  {examples.get(reason, '')[:100]}")
    print_shares(kept)
    return kept, reasons, size


def print_shares(kept: list[tuple[Code, Score]]) -> None:
    values: dict[str, list[int]] = defaultdict(list)
    for code, scored in kept:
        values[code.language].append(scored.value)
    for name, of_language in sorted(values.items(), key=lambda item: -len(item[1])):
        share = sum(value >= PASSES for value in of_language) / len(of_language)
        quartiles = statistics.quantiles(of_language, n=4) if len(of_language) > 1 else of_language * 3
        shown = "  ".join(f"{value:.0f}" for value in quartiles)
        print(f"  {name:<12}{len(of_language):>6} kept  {share:>6.1%} reach {PASSES}  quartiles {shown}")
    ranked = sorted(
        (item for item in kept if item[0].language in CODE), key=lambda item: (item[1].value, item[0].path)
    )
    middle = len(ranked) // 2
    for word, part in (("best", ranked[-3:]), ("middle", ranked[middle : middle + 3]), ("worst", ranked[:3])):
        for code, scored in part:
            print(f"  {word:<8}{scored.value:>4}  {code.path}")


def microseconds_by_figure(kept: list[tuple[Code, Score]]) -> dict[str, float]:
    """CPU time of each figure in the order they are asked for: each pays for what it is first to need."""
    names = dict.fromkeys([limit.figure for limit in LIMITS] + [ramp.figure for ramp in score.RAMPS.values()])
    spent: defaultdict[str, float] = defaultdict(float)
    for code, _ in kept:
        fresh = Code(code.path, code.language, code.text, code.data, code.lines)
        wanted = {figure for figure, *_ in filters.LIMITS_OF[code.language]}
        wanted |= {ramp.figure for ramp in score.RAMPS.values() if code.language in ramp.languages}
        for name in names:
            if name in wanted:
                start = time.perf_counter()
                getattr(fresh.figures, name)
                spent[name] += time.perf_counter() - start
    return {
        name: round(1e6 * seconds / len(kept), 1)
        for name, seconds in sorted(spent.items(), key=lambda item: -item[1])
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    args = parser.parse_args()
    clock, size = Clock(), 0
    kept: list[tuple[Code, Score]] = []
    reasons: Counter[str] = Counter()
    shares = {}
    for root in args.paths:
        kept_here, reasons_here, size_here = look(root, clock)
        kept += kept_here
        reasons += reasons_here
        size += size_here
        of_code = [scored.value for code, scored in kept_here if code.language in CODE]
        shares[root.name] = round(sum(value >= PASSES for value in of_code) / max(len(of_code), 1), 3)
    mean = sum(len(code.data) for code, _ in kept) / len(kept)
    stages = {stage: round(1e6 * clock.seconds[stage] / len(kept), 1) for stage in STAGES}
    figures = microseconds_by_figure(kept)
    print(f"\n{len(kept)} files kept, {mean:,.0f} bytes on average; CPU microseconds a kept file:")
    print("  " + "  ".join(f"{stage} {microseconds}" for stage, microseconds in stages.items()))
    print("by figure: " + "  ".join(f"{name} {microseconds}" for name, microseconds in figures.items()))
    print(
        json.dumps(
            {
                "kept": len(kept),
                "refused": sum(reasons.values()),
                "mean_bytes": round(mean),
                "microseconds": stages,
                "filters_and_score_us": round(stages["filters"] + stages["score"], 1),
                "reach_70": shares,
                "reasons": dict(reasons.most_common()),
            }
        )
    )


if __name__ == "__main__":
    main()
