"""The GPU half of bench/train.py: true shapes with random weights, each arm a process of its own, in turns.

Peers that are not installed (unsloth, trl) are left out and said so. Needs /dev/shm for the weights of one
model at a time: 3, 15, 30, 66 GB.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SHM = Path("/dev/shm")
Result = Mapping[str, Any]


@dataclass(frozen=True)
class Arm:
    """One line of the table."""

    name: str  # of its figures
    script: str
    options: Sequence[str]
    devices: int = 1


def ratchet(name: str, *options: str, devices: int = 1) -> Arm:
    return Arm(name, "train_ratchet.py", options, devices)


def peer(arm: str, *options: str) -> Arm:
    return Arm(arm, "train_peers.py", ("--arm", arm, *options))


TABLE: dict[str, list[Arm]] = {
    "7b": [
        ratchet("ratchet"),
        peer("unsloth-nockpt", "--micro-batch", "4", "--steps", "3"),
        ratchet("ratchet_recomputed", "--recomputation", "full", "--cap-gib", "18"),
        peer("unsloth", "--steps", "2"),
        ratchet("ratchet_code", "--data", "code"),
        peer("seeds", "--data", "code", "--rows", "4", "--warm", "1", "--steps", "2"),
        ratchet("ratchet_2_devices", "--rows", "32", devices=2),
        ratchet("ratchet_full_2_devices", "--method", "full", "--steps", "2", devices=2),
    ],
    "14b": [
        ratchet("ratchet", "--steps", "2"),
        peer("unsloth-nockpt", "--micro-batch", "2", "--steps", "2"),
        ratchet("ratchet_32_gb", "--cap-gib", "29.8", "--steps", "1"),
        peer("unsloth", "--steps", "1"),
        peer("trl", "--warm", "1", "--steps", "1"),
    ],
    "32b": [
        ratchet("ratchet", "--rank", "64", "--length", "8192", "--rows", "4", "--steps", "2"),
    ],
    "1.5b": [
        ratchet("ratchet", "--rows", "32"),
    ],
}
RATIOS = (  # name, shape, arm, to which arm
    ("vs_unsloth_7b", "7b", "ratchet", "unsloth-nockpt"),
    ("vs_unsloth_as_it_ships_7b", "7b", "ratchet", "unsloth"),
    ("vs_seeds_on_code_7b", "7b", "ratchet_code", "seeds"),
    ("vs_unsloth_14b", "14b", "ratchet", "unsloth-nockpt"),
    ("vs_unsloth_as_it_ships_14b", "14b", "ratchet", "unsloth"),
    ("vs_trl_14b", "14b", "ratchet", "trl"),
)


def measure(*, quick: bool) -> dict[str, Any]:
    """Every figure of the table by `shape_arm`; quick: the 7B shape alone."""
    import torch

    devices = torch.cuda.device_count()
    if not devices:
        raise SystemExit("bench/train.py --gpu: torch sees no GPU here; --cpu measures without one")
    found: dict[str, dict[str, Result]] = {}
    for shape in ["7b"] if quick else TABLE:
        folder = SHM / f"ratchet-bench-{shape}"
        subprocess.run([sys.executable, HERE / "random_model.py", shape, folder], check=True)
        try:
            found[shape] = {arm.name: run(arm, folder) for arm in TABLE[shape] if arm.devices <= devices}
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return figures(found)


def run(arm: Arm, model: Path) -> Result:
    """The last line the arm prints, which is JSON also when it failed."""
    start = [sys.executable]
    if arm.devices > 1:
        start += ["-m", "torch.distributed.run", "--nproc-per-node", str(arm.devices)]
    command = [*start, str(HERE / arm.script), "--model", str(model), *arm.options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    result: Result = json.loads(lines[-1]) if lines else {"error": f"ended with {done.returncode}"}
    speed = result.get("error") or f"{result['real_tokens_per_s']:,.0f} tokens/s, {result['peak_gib']} GiB"
    print(f"{model.name.rpartition('-')[2]:>5}  {arm.name:<24} {speed}", flush=True)
    return result


def figures(found: Mapping[str, Mapping[str, Result]]) -> dict[str, Any]:
    """Speeds, shares and ratios, flat; None where an arm failed."""
    flat: dict[str, Any] = {}
    for shape, arms in found.items():
        for name, result in arms.items():
            key = f"{name}_{shape}".replace("-", "_").replace(".", "_")
            flat[key] = result.get("real_tokens_per_s")
            for detail in ("share_of_ceiling", "sustained_tflops", "peak_gib", "planned_over_peak", "error"):
                if detail in result:
                    flat[f"{key}_{detail}"] = result[detail]
    for name, shape, ours, theirs in RATIOS:
        rate, other = (found.get(shape, {}).get(arm, {}).get("real_tokens_per_s") for arm in (ours, theirs))
        flat[name] = round(rate / other, 3) if rate and other else None
    one, two = (flat.get(f"{name}_7b") for name in ("ratchet", "ratchet_2_devices"))
    flat["scaling_2_devices"] = round(two / one / 2, 3) if one and two else None
    return flat
