"""Why a recipe does not fit, and which single changes make it fit, with figures."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from services.trainer.plan.candidates import leanest
from services.trainer.plan.job import Job
from services.trainer.plan.memory import usable

GB = 1e9
SHORTEST = 256  # tokens of a row worth suggesting
LOWEST_RANK = 8
MOST_DEVICES = 8


def explain(job: Job) -> str:
    """For a job of which no plan fits: what it needs, where that goes, and what would fit."""
    plan = leanest(job)
    parts = plan.memory
    working = max(parts.logits, parts.scratch) + parts.activations
    where = ", ".join(
        f"{name} {size / GB:.1f}"
        for name, size in (
            ("weights", parts.weights + parts.merged),
            ("adapters", parts.adapters),
            ("gradients", parts.gradients),
            ("optimizer", parts.optimizer),
            ("activations and loss", working),
        )
        if size
    )
    devices = job.hardware.devices
    on = f"{devices} × {job.hardware.name}" if devices > 1 else job.hardware.name
    would = "; ".join(f"{change} ({size / GB:.1f} GB)" for change, size in _fitting(job))
    return (
        f"recipe {job.recipe.name} does not fit {on}, of whose {job.hardware.memory_bytes / GB:.1f} GB a plan"
        f" may need {usable(job) / GB:.1f}: at its leanest, micro-batch {plan.micro_batch} ×"
        f" {job.recipe.max_length} tokens with recomputation {plan.recomputation}, it needs"
        f" {plan.needed_bytes / GB:.1f} GB a device ({where}). "
        + (
            f"What would fit: {would}"
            if would
            else "No change of the recipe fits: a larger device or a smaller model would"
        )
    )


def _fitting(job: Job) -> list[tuple[str, int]]:
    """The smallest change of each kind that fits, and what it needs; else all of them together."""
    found = []
    for steps in _changes(job):
        for text, changed in steps:
            plan = leanest(changed)
            if plan.fits:
                found.append((text, plan.needed_bytes))
                break
    if found:
        return found
    plan = leanest(_altogether(job))
    recipe = plan.job.recipe
    text = f"{recipe.method} with lora_r {recipe.lora_r}, max_length {recipe.max_length}, recomputation auto"
    return [(f"all together: {text}", plan.needed_bytes)] if plan.fits else []


def _changes(job: Job) -> Iterator[Iterator[tuple[str, Job]]]:
    """Kinds of change, each from small to large."""
    recipe = job.recipe
    if recipe.recomputation in {"none", "selective"}:
        yield iter([("recomputation: auto", _with(job, recomputation="auto"))])
    if recipe.lora_dropout and recipe.method != "full":
        yield iter([("lora_dropout: 0", _with(job, lora_dropout=0.0))])
    if recipe.optimizer == "adamw":
        yield iter([("optimizer: adamw_8bit", _with(job, optimizer="adamw_8bit"))])
    if job.keeps_gathered:
        yield iter([("distributed: fsdp2", _with(job, distributed="fsdp2"))])
    yield ((f"max_length: {size}", _shorter(job, size)) for size in _halves(recipe.max_length, SHORTEST))
    if recipe.method != "qlora":
        yield _quantised(job)
    if recipe.method != "full":
        yield ((f"lora_r: {rank}", _with(job, lora_r=rank)) for rank in _halves(recipe.lora_r, LOWEST_RANK))
    yield _more_devices(job)


def _quantised(job: Job) -> Iterator[tuple[str, Job]]:
    """A base in NF4 can neither be sharded nor give PiSSA its part."""
    wanted = {"method": "qlora"}
    if job.recipe.distributed not in {"auto", "ddp"}:
        wanted["distributed"] = "auto"
    if job.recipe.init_lora_weights != "default":
        wanted["init_lora_weights"] = "default"
    yield _shown(wanted), _with(job, **wanted)


def _more_devices(job: Job) -> Iterator[tuple[str, Job]]:
    """With the weights divided among them: replicating them (ddp) needs as much on every device."""
    wanted = {"method": "lora"} if job.recipe.method == "qlora" else {}
    if not job.is_full and job.recipe.distributed not in {"fsdp2", "zero3"}:
        wanted["distributed"] = "fsdp2"
    sharded = _with(job, **wanted)
    devices = job.hardware.devices * 2
    while devices <= MOST_DEVICES:
        text = ", ".join(filter(None, (f"{devices} GPUs", _shown(wanted))))
        yield text, replace(sharded, hardware=job.hardware.times(devices))
        devices *= 2


def _shown(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{field}: {value}" for field, value in fields.items())


def _altogether(job: Job) -> Job:
    recipe = job.recipe
    changed = _with(
        job, method="qlora", lora_r=min(recipe.lora_r, LOWEST_RANK), lora_dropout=0.0,
        optimizer="auto", recomputation="auto", distributed="auto", init_lora_weights="default",
    )  # fmt: skip
    return _shorter(changed, min(recipe.max_length, 2 * SHORTEST))


def _shorter(job: Job, max_length: int) -> Job:
    shorter = _with(job, max_length=max_length)
    return replace(shorter, mean_document_tokens=min(job.mean_document_tokens, max_length))


def _with(job: Job, **changes: Any) -> Job:
    return replace(job, recipe=job.recipe.model_copy(update=changes))


def _halves(number: int, lowest: int) -> Iterator[int]:
    while (number := number // 2) >= lowest:
        yield number
