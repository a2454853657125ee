"""What `ratchet plan` found out, in lines for a person."""

from collections.abc import Iterator

from services.trainer.plan import Plan
from services.trainer.plan.candidates import EVERYTHING

GB = 1e9
SAMPLES = 1000  # that a duration is told for


def lines(chosen: Plan, others: list[Plan], sample: int) -> Iterator[str]:
    job, recipe, hardware = chosen.job, chosen.job.recipe, chosen.job.hardware
    rank = "" if job.is_full else f", r {recipe.lora_r}"
    yield f"recipe  {recipe.name}: {recipe.base_model}, {job.shape.parameters / 1e9:.2f} B parameters"
    yield f"        {recipe.method}{rank}: {job.trainable / 1e6:,.1f} M trained, {recipe.objective}"
    yield f"device  {_device(chosen)}"
    yield (
        f"plan    micro-batch {chosen.micro_batch} × {recipe.max_length:,} tokens,"
        f" {chosen.micro_batches} to a step; {_recomputation(chosen)}; {_merged(chosen)}"
    )
    if hardware.is_cpu:
        yield f"        {_of_this_machine(chosen)}"
    else:
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


def _of_this_machine(chosen: Plan) -> str:
    """The processor's memory is everyone's: a plan says that it is short, the round is let try."""
    peak, memory = chosen.peak_bytes / GB, chosen.job.hardware.memory_bytes / GB
    if peak <= memory:
        return f"peak {peak:.1f} GB of {memory:.1f} GB"
    return f"does not fit: peak {peak:.1f} GB of {memory:.1f} GB; the recipe demo trains on a processor"


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
