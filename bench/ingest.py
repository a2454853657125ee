"""How fast ingestion is: against datatrove, against its own floors, with two workers, over an unchanged tree.

    .venv/bin/python bench/ingest.py --quick [PATH…]
    .venv/bin/python bench/ingest.py --growth --sizes 10000,100000,1000000 --workers 16

One corpus for everything in one run: the paths given, or the default of bench/corpus.py. Datatrove is
installed into an environment of its own below .ratchet/bench on the first run; where that cannot be, its
figures are null. Ends with one line of JSON. docs/reference/ingest-performance.md says what was measured.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # not bench/, whose secrets.py is not Python's
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench import corpus as corpora
from bench import full, same_steps, stages
from bench.corpus import Corpus
from bench.full import Run, Server, say
from bench.stages import Stages
from services.core.settings import PROJECT
from services.core.target import Target

HOME = PROJECT / ".ratchet" / "bench"
PEER = ("datatrove[processing,io]==0.10.1",)
INSTALL_SECONDS = 300.0
ROUNDS = 2  # of each pair of arms, one after the other in turn
QUICK_SECONDS = 480.0  # after which no further round begins
QUICK_FILES, FILES = 12_000, 40_000
RESCANS = 3

Figures = dict[str, Any]


def main() -> None:
    options = _options()
    if options.growth:
        from bench import growth

        figures = growth.measure(options)
    else:
        figures = measure(options.paths, options.files or (QUICK_FILES if options.quick else FILES), options)
    print(json.dumps(figures))


def measure(paths: list[Path], most: int, options: argparse.Namespace) -> Figures:
    """Every figure on one corpus; null for what could not be measured, and why is printed."""
    home: Path = options.home
    deadline = time.monotonic() + QUICK_SECONDS if options.quick else float("inf")
    say(
        f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores; gathering the corpus"
    )
    corpus = corpora.gather(paths, most, home / "ingest", home / "sdists")
    figures = _describe(corpus, home)
    if not options.without_peer:
        figures |= compare(corpus, home, deadline, options.rounds)
    server = Server(home / "home")
    try:
        figures |= ingest(corpus, server, deadline, options.rounds)
    finally:
        server.stop()
        shutil.rmtree(corpus.folder, ignore_errors=True)
    order = ("same_steps_vs_datatrove", "full_files_per_cpu_s", "two_workers_speedup", "rescan_files_per_s",
             "kept_vs_datatrove")  # fmt: skip
    return {name: figures.pop(name, None) for name in order} | figures


def _describe(corpus: Corpus, home: Path) -> Figures:
    """What the corpus is. Leaves the list of files that pass our filters for the comparison."""
    languages: Counter[str] = Counter()
    passed = []
    for name in corpus.files:
        if found := same_steps.look(name, (corpus.folder / name).read_bytes()):
            languages[found[1].language] += 1
            passed.append(name)
    (home / "passed.txt").write_text("".join(f"{name}\n" for name in passed), encoding="utf-8")
    say(f"corpus: {', '.join(corpus.sources)}")
    say(f"{len(corpus.files):,} files, {corpus.bytes / 1e6:,.0f} MB; {len(passed):,} pass our filters:"
        f" {', '.join(f'{name} {count:,}' for name, count in languages.most_common(12))}")  # fmt: skip
    return {
        "corpus": list(corpus.sources),
        "files": len(corpus.files),
        "megabytes": round(corpus.bytes / 1e6, 1),
        "passed": len(passed),
        "load_average": round(os.getloadavg()[0], 1),
    }


# The same steps as datatrove


def compare(corpus: Corpus, home: Path, deadline: float, rounds: int) -> Figures:
    """Both arms in turn, each in a process of its own, on the files that pass our filters."""
    python = _peer(home / "datatrove")
    if python is None:
        say("datatrove cannot be installed here: no comparison")
        return {}
    bench = PROJECT / "bench"
    ours, theirs = [], []
    for number in range(1, rounds + 1):
        ours.append(_arm([sys.executable, str(bench / "same_steps.py")], corpus, home, "ours"))
        theirs.append(_arm([str(python), str(bench / "datatrove_peer.py")], corpus, home, "theirs"))
        say(f"round {number}, same steps, one process each:"
            f" ours {_speeds(ours[-1])}, datatrove {_speeds(theirs[-1])}")  # fmt: skip
        if time.monotonic() + theirs[-1]["wall_s"] > deadline - QUICK_SECONDS / 2:
            break
    cpu, wall = (
        min(run[name] for run in theirs) / min(run[name] for run in ours) for name in ("cpu_s", "wall_s")
    )
    kept = ours[-1]["kept"] / theirs[-1]["kept"]
    say(f"ours takes 1/{cpu:.2f} of the CPU and 1/{wall:.2f} of the wall time; kept {ours[-1]['kept']:,}"
        f" and {theirs[-1]['kept']:,}: {kept:.4f}")  # fmt: skip
    return {
        "same_steps_vs_datatrove": round(min(cpu, wall), 2),
        "kept_vs_datatrove": round(kept, 4),
        "same_steps_cpu_ratio": round(cpu, 2),
        "same_steps_wall_ratio": round(wall, 2),
        "same_steps_ours": ours,
        "same_steps_datatrove": theirs,
    }


def _arm(command: list[str], corpus: Corpus, home: Path, name: str) -> dict[str, Any]:
    arguments = [str(corpus.folder), str(home / "passed.txt"), str(home / name)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[-1]} failed:\n{done.stderr[-3000:]}")
    shutil.rmtree(home / name, ignore_errors=True)
    result: dict[str, Any] = json.loads(done.stdout.rpartition("RESULT ")[2])
    return result


def _speeds(run: dict[str, Any]) -> str:
    files: int = run["files"]
    return f"{files / run['cpu_s']:,.0f} files/CPU-s, {files / run['wall_s']:,.0f} files/s"


def _peer(folder: Path) -> Path | None:
    """The Python that has datatrove; made on the first run, None where it cannot be."""
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if ready.exists():
        return python
    say("installing datatrove into an environment of its own")
    commands = (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", *PEER],
    )
    try:
        for command in commands:
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS, capture_output=True)
    except (subprocess.SubprocessError, OSError):
        return None
    ready.touch()
    return python


# Full ingestion


def ingest(corpus: Corpus, server: Server, deadline: float, rounds: int) -> Figures:
    """One worker and two in turn; then the stages by themselves, and an unchanged tree."""
    runs: dict[int, list[Run]] = {1: [], 2: []}
    figures: Figures = {}
    for number in range(1, rounds + 1):
        begun = time.monotonic()
        for workers in (1, 2):
            with server.database() as target:
                runs[workers].append(run := full.ingest(server, target, corpus.folder, workers))
                say(f"round {number}, {workers} worker{'s' * (workers > 1)}: {run}")
                if workers == number == 1:
                    figures |= _rescan(target, corpus)
                    by_themselves = stages.measure(corpus.folder, server, target)
        if time.monotonic() + (time.monotonic() - begun) > deadline:
            break
    best = min(runs[1], key=lambda run: run.cpu_s)
    figures |= _stages(by_themselves, best)
    walls = {workers: [run.wall_s for run in runs[workers]] for workers in runs}
    best_speedup = min(walls[1]) / min(walls[2])
    median_speedup = statistics.median(walls[1]) / statistics.median(walls[2])
    ceiling = full.two_process_speedup(rounds)
    say(
        f"two workers {best_speedup:.2f} × one (best of {len(walls[1])}), {median_speedup:.2f} × (median);"
        f" two processes that share nothing reach {ceiling:.2f} × on this machine now"
    )
    return {
        "full_files_per_cpu_s": round(best.files_per_cpu_s, 1),
        "two_workers_speedup": round(best_speedup, 2),
        "two_workers_speedup_median": round(median_speedup, 2),
        "two_processes_ceiling": round(ceiling, 2),
        "full_wall_files_per_s": {
            n: round(max(run.files / run.wall_s for run in runs[n]), 1) for n in (1, 2)
        },
        **figures,
    }


def _rescan(target: Target, corpus: Corpus) -> Figures:
    measured = [full.rescan(target, corpus.folder) for _ in range(RESCANS)]
    wall = max(unchanged / seconds for unchanged, seconds, _ in measured)
    cpu = max(unchanged / seconds for unchanged, _, seconds in measured)
    say(f"unchanged tree: {wall:,.0f} files/s, {cpu:,.0f} files/CPU-s")
    return {"rescan_files_per_s": round(wall), "rescan_files_per_cpu_s": round(cpu)}


def _stages(found: Stages, run: Run) -> Figures:
    """The stages beside the run that took the least CPU."""
    print(found.table(run.files, run.cpu_s), flush=True)
    say(f"full ingestion takes {run.cpu_s / found.floor_s:.2f} × the sum of its floors")
    each = {
        name: [round(1e6 * seconds / run.files, 1) for seconds in (stage.floor_s, stage.ours_s)]
        for name, stage in found.by_name.items()
    }
    return {"full_vs_floors": round(run.cpu_s / found.floor_s, 3), "stage_floor_and_ours_us": each}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure ingestion.")
    parser.add_argument("paths", nargs="*", type=Path, help="directories or files to make the corpus of")
    parser.add_argument("--quick", action="store_true", help="at most ten minutes on two cores")
    parser.add_argument(
        "--files", type=int, help="of the corpus, at most; default 12,000 with --quick, or 40,000"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="of each pair of arms, as far as time allows"
    )
    parser.add_argument("--without-peer", action="store_true", help="leave out datatrove")
    parser.add_argument("--home", type=Path, default=HOME, help="folder for what the bench needs and makes")
    parser.add_argument("--growth", action="store_true", help="how it grows, instead: see bench/growth.py")
    parser.add_argument("--sizes", default="10000,100000", help="files at which growth is measured")
    parser.add_argument("--workers", type=int, default=0, help="of each processor; 0: one a core")
    parser.add_argument("--processors", type=int, default=1, help="processes that share the growing folder")
    parser.add_argument("--seconds-limit", type=float, default=540.0, help="growth stops after so many")
    return parser.parse_args()


if __name__ == "__main__":
    main()
