"""`ratchet plan` of a recipe with objective=reinforcement: memory of updates and rollouts."""

from collections.abc import Iterator

from services.core.models import Json
from services.trainer.plan.team import TeamPlan
from services.trainer.recipes.reinforcement import section

GB = 1e9


def document(found: TeamPlan) -> Json:
    job = found.job
    return {
        "recipe": job.recipe.name,
        "base_model": job.recipe.base_model,
        "parameters": job.shape.parameters,
        "trainable": trainable(found),
        "device": {"name": job.hardware.name, "memory_bytes": job.hardware.memory_bytes},
        "distributed": "alone",
        "plan": found.as_json(),
        "alternatives": [],
    }


def trainable(found: TeamPlan) -> int:
    """Parameters of the adapters that are trained."""
    asked = section(found.job.recipe)
    return (len(asked.roles) - len(set(asked.frozen_roles))) * found.job.shape.adapter(found.job.recipe)


def lines(found: TeamPlan, gpus: int) -> Iterator[str]:
    """gpus: devices there are; a round uses one."""
    job, recipe, asked = found.job, found.job.recipe, section(found.job.recipe)
    yield f"recipe   {recipe.name}: {recipe.base_model}, {job.shape.parameters / 1e9:.2f} B parameters"
    yield (
        f"         {recipe.method}, r {recipe.lora_r}: {len(asked.roles)} roles on one base,"
        f" {trainable(found) / 1e6:,.1f} M trained, {asked.algorithm}"
    )
    yield f"device   {job.hardware.name}, {job.hardware.memory_bytes / GB:.1f} GB"
    if gpus > 1:
        yield f"         one of the {gpus}: a round with objective=reinforcement runs on one device"
    yield from _update(found)
    yield (
        f"rollout  {asked.rollout_turns} episodes an iteration; beside {found.standing_bytes / GB:.1f} GB"
        f" that stand, {found.rollout_rows:,} can be written at once, {found.cache_bytes / GB:.2f} GB each"
        " for keys and values, as long as they can be"
    )
    yield ""
    yield "where the memory of an update goes, GB"
    for name, count in found.as_json()["memory"].items():
        if count:
            yield f"  {name:<12}{count / GB:>8.2f}"
    yield ""
    yield from _limits(found)


def _update(found: TeamPlan) -> Iterator[str]:
    hardware, recipe, asked = found.job.hardware, found.job.recipe, section(found.job.recipe)
    again = ", all activations computed again" if found.recomputes else ""
    yield (
        f"update   {found.rows} × {recipe.max_length:,} tokens in one pass{again}: each an answer of"
        f" {asked.max_new_tokens} with its prompt of {asked.context_window} at most"
    )
    peak = f"         peak {found.memory.total / GB:.1f} GB"
    if hardware.is_cpu:
        yield peak
    else:
        yield (
            f"{peak}, with CUDA's context and slack {found.needed_bytes / GB:.1f} GB"
            f" of {hardware.memory_bytes / GB:.1f} GB"
        )


def _limits(found: TeamPlan) -> Iterator[str]:
    """What the plan does not know, and what changes it."""
    recipe = found.job.recipe
    yield (
        "Of teams this is computed, not measured: an update that runs out of memory takes half as much"
        " at once."
    )
    yield (
        "Not known before: how long it takes. It depends on how long answers are and how long their programs"
        " run. A round says seconds an iteration after its first, and `ratchet status` what is left."
    )
    yield (
        f"To change it: BATCH_SIZE={recipe.batch_size} and LORA_R={recipe.lora_r} in the environment;"
        f" recomputation ({recipe.recomputation}), context_window, max_new_tokens, n_rollout_threads in the"
        " recipe."
    )
