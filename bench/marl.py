"""Does a team of two agents learn by rewards alone, and how fast? Ends with one line of JSON.

    .venv/bin/python bench/marl.py --cpu [--quick] [--picture FILE.svg]
    .venv/bin/python bench/marl.py --gpu [--picture FILE.svg] [--allow-unsandboxed]

--cpu: the toy of tests/toy_team.py, 287 thousand parameters on one core, with the real sandbox: pass rates
before and after for APPO, TPPO and GRPO, with the analyzer frozen, and with a learning rate that is too high;
`resume_weight_diff` is the largest difference of a weight after an interrupted and resumed training, which
must be 0. Without --quick each arm is trained from SEEDS seeds, and the figures are means.

--gpu: an iteration on the true shape of Qwen2.5-Coder-1.5B with random weights, ours and the authors' way in
turns (bench/marl_speed.py), then SmolLM2-135M on the `easy` tasks, its pass rate on held-out ones before and
after with a paired interval (bench/marl_curve.py). `--part` takes one of the two. Where no isolation works,
--allow-unsandboxed runs what the models write without: on a machine that holds nothing else.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import torch  # noqa: E402

from bench import marl_curve, marl_speed  # noqa: E402
from bench.marl_chart import Curve, curves  # noqa: E402
from bench.marl_learning import ARMS, RESUMED, Learned, learner  # noqa: E402

SEEDS = 3
LABELS = {
    "appo": "APPO",
    "tppo": "TPPO",
    "grpo": "GRPO",
    "analyzer_frozen": "APPO, analyzer frozen",
    "too_fast": "APPO, learning rate too high: stopped",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--cpu", action="store_true", help="the toy: whether it learns")
    where.add_argument("--gpu", action="store_true", help="real shapes: how fast, and a curve")
    parser.add_argument("--quick", action="store_true", help="one seed an arm; fewer iterations on the GPU")
    parser.add_argument("--part", choices=["speed", "curve"], help="of --gpu, one alone")
    parser.add_argument("--picture", type=Path, help="where the curves are written as SVG")
    parser.add_argument("--allow-unsandboxed", action="store_true")
    marl_speed.add_options(parser)
    marl_curve.add_options(parser)
    asked = parser.parse_args()
    print(json.dumps(toy(asked) if asked.cpu else true_shapes(asked), allow_nan=False))


def toy(asked: argparse.Namespace) -> dict[str, Any]:
    """Figures of every arm; the first arm's under the plain names."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    seeds = range(1 if asked.quick else SEEDS)
    with learner() as team:
        found = {}
        for name, arm in ARMS.items():
            found[name] = [team.learn(arm, seed) for seed in seeds]
            told(name, found[name])
        figures: dict[str, Any] = {
            "reward_before": mean(found["appo"], "before"),
            "reward_after": mean(found["appo"], "after"),
            "reward_after_analyzer_frozen": mean(found["analyzer_frozen"], "after"),
            "resume_weight_diff": team.resume_weight_diff(RESUMED, RESUMED.iterations // 2),
        }
    for name, runs in found.items():
        figures[f"reward_before_{name}"] = mean(runs, "before")
        figures[f"reward_after_{name}"] = mean(runs, "after")
        figures[f"seconds_{name}"] = round(statistics.mean(run.seconds for run in runs), 1)
        figures[f"cpu_seconds_{name}"] = round(statistics.mean(run.cpu_seconds for run in runs), 1)
        figures[f"kl_reference_{name}"] = max(
            one.update["kl_reference"] for run in runs for one in run.iterations
        )
    figures["collapse_caught"] = all(run.training.collapsed for run in found["too_fast"])
    figures["collapse_said"] = found["too_fast"][0].training.stopped_why
    figures["seeds"] = len(seeds)
    figures["seconds"] = round(time.perf_counter() - began, 1)
    if asked.picture:
        asked.picture.write_text(picture({name: runs[0] for name, runs in found.items()}), encoding="utf-8")
    return figures


def true_shapes(asked: argparse.Namespace) -> dict[str, Any]:
    """Figures of both parts."""
    figures: dict[str, Any] = {}
    if asked.part in {None, "speed"}:
        shm = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
        with tempfile.TemporaryDirectory(dir=shm) as folder:
            sizes = marl_speed.sizes(asked)
            figures |= marl_speed.measure(
                sizes, Path(folder) / sizes.shape, allow_unsandboxed=asked.allow_unsandboxed
            )
    if asked.part in {None, "curve"}:
        figures |= marl_curve.measure(marl_curve.asked_for(asked), asked.picture)
    return figures


def picture(found: Mapping[str, Learned]) -> str:
    """Mean rewards of the rollouts, an arm a curve."""
    shown = [
        Curve(
            f"{LABELS[name]}: {run.before:.2f} before, {run.after:.2f} after", run.training.rewards, first=1
        )
        for name, run in found.items()
    ]
    return curves("Reward of a team of two agents, by iterations", "iterations", shown)


def told(name: str, runs: list[Learned]) -> None:
    for run in runs:
        why = run.training.stopped_why
        print(
            f"{LABELS[name]:<40} {run.before:.3f} → {run.after:.3f} in {run.seconds:5.1f} s"
            + (f"  ({why})" if why else ""),
            flush=True,
        )


def mean(runs: list[Learned], name: str) -> float:
    values: list[float] = [getattr(run, name) for run in runs]
    return round(statistics.mean(values), 4)


if __name__ == "__main__":
    main()
