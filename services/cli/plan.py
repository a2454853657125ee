"""`ratchet plan`: how a recipe would run on a device, what else could be done, and where the memory goes."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict

from services.cli import plan_team as plan_of_team
from services.cli.environment import Environment
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.plan import Hardware, Plan, Shape, alternatives, plan
from services.trainer.plan.candidates import EVERYTHING
from services.trainer.plan.hardware import GIB
from services.trainer.plan.team import plan_team
from services.trainer.plan_config import read_config
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe

GB = 1e9
MIB = 2**20
SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>GiB|GB|G|MiB|MB|TiB|TB)", re.IGNORECASE)
UNITS = {"g": GB, "gb": GB, "gib": GIB, "mb": 1e6, "mib": MIB, "tb": 1e12, "tib": 2**40}
PAIR_TOKENS = 700  # mean of a completion pair: log-normal, median 500, as bench/train.py draws them
SAMPLES = 1000


def run(
    environment: Environment,
    name: str,
    *,
    device: str | None,
    vram: str | None,
    gpus: int | None,
    sample_tokens: int | None,
    as_json: bool,
) -> None:
    """Print the plan of a recipe.

    Raises ConfigurationError for a recipe, device or size that cannot be, and when nothing fits;
    ModelNotFoundError when the base model's config is nowhere.
    """
    settings = environment.settings
    recipe = recipe_files.load(name, settings.recipe_overrides)
    token = settings.hf_token.get_secret_value() if settings.hf_token else None
    shape = Shape.from_config(read_config(recipe, settings.cache_dir, token))
    hardware = _hardware(device, vram, gpus)
    if recipe.reinforcement is not None:
        found = plan_team(shape, recipe, hardware)
        shown = (
            json.dumps(plan_of_team.document(found))
            if as_json
            else plan_of_team.lines(found, hardware.devices)
        )
        print(shown if as_json else "\n".join(shown))
        return
    sample = min(recipe.max_length, sample_tokens or _sample_tokens(recipe))
    chosen = plan(shape, recipe, hardware, mean_document_tokens=sample)
    others = [] if hardware.is_cpu else alternatives(chosen.job)
    if as_json:
        print(json.dumps(_document(chosen, others, sample)))
        return
    if hardware.is_cpu and device is None:
        print(
            "There is no GPU here: this is the plan for the CPU."
            " For another machine say --device or --vram.\n"
        )
    print("\n".join(_lines(chosen, others, sample)))


def size(text: str, option: str) -> int:
    """Bytes of "32GB" or "32GiB". Raises ConfigurationError that names the option and its value."""
    match = SIZE.fullmatch(text.strip())
    if match is None or (found := float(match["number"]) * UNITS[match["unit"].lower()]) <= 0:
        raise ConfigurationError(f"{option} {text}: expected a number above 0 and a unit, as 32GB or 31.5GiB")
    return int(found)


def _hardware(device: str | None, vram: str | None, gpus: int | None) -> Hardware:
    """What the options name; what they leave open is this machine's."""
    memory = None if vram is None else size(vram, "--vram")
    if device is not None and device.lower() == "cpu":
        return _this_cpu()
    if device is not None:
        return Hardware.gpu(device, memory, gpus or 1)
    here = _gpus_here()
    if here:
        name, total = here[0]
        return Hardware.gpu(name, memory or total, gpus or len(here))
    if memory is not None:
        return Hardware.gpu(f"GPU of {memory / GB:g} GB", memory, gpus or 1)
    return _this_cpu()


def _gpus_here() -> list[tuple[str, int]]:
    """Name and bytes of each GPU of this machine; none when its driver's tool is not there or fails."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.rpartition(",") for line in done.stdout.splitlines()]
    return [(name.strip(), int(mib) * MIB) for name, _, mib in rows if mib.strip().isdigit()]


def _this_cpu() -> Hardware:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Hardware.cpu(len(os.sched_getaffinity(0)), memory)


def _sample_tokens(recipe: Recipe) -> int:
    return PAIR_TOKENS if recipe.objective == "completion_pairs" else recipe.max_length


def _document(chosen: Plan, others: list[Plan], sample: int) -> Json:
    return {
        "recipe": chosen.job.recipe.name,
        "base_model": chosen.job.recipe.base_model,
        "parameters": chosen.job.shape.parameters,
        "trainable": chosen.job.trainable,
        "device": asdict(chosen.job.hardware),
        "distributed": chosen.job.way,
        "sample_tokens": sample,
        "plan": chosen.as_json(),
        "alternatives": [other.as_json() for other in others],
    }


def _lines(chosen: Plan, others: list[Plan], sample: int) -> Iterator[str]:
    job, recipe, hardware = chosen.job, chosen.job.recipe, chosen.job.hardware
    rank = "" if job.is_full else f", r {recipe.lora_r}"
    yield f"recipe  {recipe.name}: {recipe.base_model}, {job.shape.parameters / 1e9:.2f} B parameters"
    yield f"        {recipe.method}{rank}: {job.trainable / 1e6:,.1f} M trained, {recipe.objective}"
    yield f"device  {_device(chosen)}"
    yield (
        f"plan    micro-batch {chosen.micro_batch} × {recipe.max_length:,} tokens,"
        f" {chosen.micro_batches} to a step; {_recomputation(chosen)}; {_merged(chosen)}"
    )
    if not hardware.is_cpu:
        yield (
            f"        peak {chosen.peak_bytes / GB:.1f} GB, with CUDA's context and slack"
            f" {chosen.needed_bytes / GB:.1f} GB of {hardware.memory_bytes / GB:.1f} GB"
        )
    if speed := _speed(chosen, sample):
        yield f"        {speed}"
    yield ""
    yield from _memory(chosen)
    if others:
        yield ""
        yield from _table(chosen, others, sample)
        if any(other.kept_share < EVERYTHING for other in others):
            yield "light: the other layers recompute norms and silu(gate) · up, which costs little"
    yield ""
    yield (
        f"To change it: BATCH_SIZE={recipe.batch_size}, GRADIENT_ACCUMULATION_STEPS="
        f"{recipe.gradient_accumulation_steps}, MAX_LENGTH={recipe.max_length}, LORA_R={recipe.lora_r} in the"
        f" environment; recomputation: {recipe.recomputation}, distributed: {recipe.distributed}, optimizer:"
        f" {recipe.optimizer} in the recipe; --sample-tokens {sample}."
    )


def _device(chosen: Plan) -> str:
    hardware = chosen.job.hardware
    many = f"{hardware.devices} × " if hardware.devices > 1 else ""
    parts = [f"{many}{hardware.name}", f"{hardware.memory_bytes / GB:.1f} GB"]
    if hardware.peak_flops is not None:
        parts.append(f"{hardware.peak_flops / 1e12:g} TFLOP/s bf16")
    elif not hardware.is_cpu:
        parts.append("of unknown speed")
    if hardware.devices > 1:
        parts.append(chosen.job.way)
    return ", ".join(parts)


def _recomputation(candidate: Plan) -> str:
    if candidate.recomputation != "selective":
        return f"recomputation {candidate.recomputation}"
    layers, every = candidate.recomputed_layers, candidate.job.shape.layers
    if candidate.kept_share == EVERYTHING:
        return f"{layers} of {every} layers recomputed"
    lightly = f"{every - layers} of {every} layers recompute norms and silu(gate) · up"
    return f"{lightly}, {layers} everything" if layers else lightly


def _merged(candidate: Plan) -> str:
    if candidate.job.is_full:
        return "no adapters"
    return "adapters stay merged" if candidate.keep_merged else "adapters merged when needed"


def _speed(chosen: Plan, sample: int) -> str | None:
    """None for a device of unknown speed."""
    if not chosen.job.hardware.is_cpu and chosen.job.hardware.peak_flops is None:
        return None
    speed, seconds = chosen.tokens_per_s, SAMPLES * sample / chosen.tokens_per_s
    return f"{speed:,.0f} tokens/s: {SAMPLES:,} samples of {sample:,} tokens in {_duration(seconds)}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _memory(chosen: Plan) -> Iterator[str]:
    parts = chosen.memory
    yield "where the memory goes, GB"
    shown = {
        "weights": parts.weights,
        "merged": parts.merged,
        "adapters": parts.adapters,
        "gradients": parts.gradients,
        "optimizer": parts.optimizer,
        "activations": parts.activations,
        "logits": parts.logits,
        "scratch": parts.scratch,
        "fixed": parts.fixed,
    }
    smaller = "logits" if parts.logits < parts.scratch else "scratch"
    for name, count in shown.items():
        note = "   when the other is not there: not added" if name == smaller else ""
        if count:
            yield f"  {name:<12}{count / GB:>8.2f}{note}"
    yield f"  {'peak':<12}{chosen.peak_bytes / GB:>8.2f}"


def _table(chosen: Plan, others: list[Plan], sample: int) -> Iterator[str]:
    known = chosen.job.hardware.peak_flops is not None
    yield (
        f"{'micro-batch':>11}  {'recomputed':<13}{'merged':<8}{'peak GB':>8}{'needs':>8}  {'fits':<5}"
        + (f"{'tokens/s':>9}{f'{SAMPLES:,} samples':>15}" if known else f"{'speed':>9}")
    )
    for other in others:
        light = " light" if other.kept_share < EVERYTHING else ""
        layers = f"{other.recomputed_layers}/{other.job.shape.layers}{light}"
        merged = "kept" if other.keep_merged else "–"
        fits = "yes" if other.fits else "no"
        if known:
            seconds = SAMPLES * sample / other.tokens_per_s
            speed = f"{other.tokens_per_s:>9,.0f}{_duration(seconds):>15}"
        else:
            speed = f"{other.tokens_per_s / chosen.tokens_per_s:>8.2f}×"
        mark = " ←" if other == chosen else ""
        yield (
            f"{other.micro_batch:>11}  {layers:<13}{merged:<8}{other.peak_bytes / GB:>8.1f}"
            f"{other.needed_bytes / GB:>8.1f}  {fits:<5}{speed}{mark}"
        )
