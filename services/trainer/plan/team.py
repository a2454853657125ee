"""What a round of reinforcement takes: memory of an update and of a rollout. Pure, without torch.

Memory of an update is that of a fine-tuning step over as many tokens, with adapters, gradients and moments
of every role (docs/explanation/memory.md). Speed is not predicted: how long answers are and how long programs
run decides it, and neither is known before.
"""

from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.plan.calibration import CALIBRATION, Calibration
from services.trainer.plan.decoding import is_decoded
from services.trainer.plan.hardware import Hardware
from services.trainer.plan.job import FP32, Job
from services.trainer.plan.memory import Memory, memory, needed, usable
from services.trainer.plan.shape import Shape
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement, section

MOMENTS = 2 * FP32  # bytes of AdamW's, a trained parameter
CRITIC = (1024, 512)  # widths of the value head's layers (services/trainer/reinforcement/critic.py)


@dataclass(frozen=True)
class TeamPlan:
    """How a round would run on a device."""

    job: Job
    rows: int  # answers with their prompts, as long as they can be, in one pass of an update
    recomputes: bool  # all activations again in the backward pass
    memory: Memory  # of an update, at the peak
    standing_bytes: int  # what is there all the time: base, adapters, moments
    cache_bytes: int  # keys and values of one episode as long as it can be
    rollout_rows: int  # episodes that can be written at once beside what is standing

    @property
    def needed_bytes(self) -> int:
        """Of the device: the peak, CUDA's context, what the allocator wastes."""
        return needed(self.job, self.memory.total)

    @property
    def fits(self) -> bool:
        """On the CPU always: there the figure informs, and the system swaps."""
        return self.job.hardware.is_cpu or (self.needed_bytes <= usable(self.job) and self.rollout_rows >= 1)

    def as_json(self) -> Json:
        return {
            "rows": self.rows,
            "recomputes": self.recomputes,
            "peak_bytes": self.memory.total,
            "needed_bytes": self.needed_bytes,
            "standing_bytes": self.standing_bytes,
            "cache_bytes_an_episode": self.cache_bytes,
            "rollout_rows": self.rollout_rows,
            "fits": self.fits,
            "tokens_per_s": None,
            "memory": asdict(self.memory),
        }


def plan_team(
    shape: Shape, recipe: Recipe, hardware: Hardware, calibration: Calibration = CALIBRATION
) -> TeamPlan:
    """As an update finds it out by itself: half the rows at once until it fits, then all recomputed.

    Raises ConfigurationError when one row does not fit.
    """
    asked = section(recipe)
    length = asked.context_window + asked.max_new_tokens
    alone = replace(hardware, devices=1)
    as_step = recipe.model_copy(update={"max_length": length, "compile": False, "optimizer": "adamw"})
    job = Job(shape, as_step, alone, length, calibration)
    recomputed = recipe.recomputation in {"full", "selective"}
    tried = [(recipe.batch_size, recomputed)]
    while tried[-1][0] > 1:
        tried.append((tried[-1][0] // 2, recomputed))
    if not recomputed:
        tried.append((1, True))
    plans = [_priced(job, asked, rows, recomputes=again) for rows, again in tried]
    found = next((each for each in plans if each.fits), None)
    if found is None:
        raise ConfigurationError(_explained(plans[-1], asked))
    return found


def _priced(job: Job, asked: Reinforcement, rows: int, *, recomputes: bool) -> TeamPlan:
    shape, recipe = job.shape, job.recipe
    roles, trained = len(asked.roles), len(asked.roles) - len(set(asked.frozen_roles))
    adapter = shape.adapter(recipe)
    head = 0 if asked.algorithm == "grpo" else _head(shape)
    of_one = memory(job, rows, shape.layers if recomputes else 0, keep_merged=False)
    step = replace(
        of_one,
        weights=of_one.weights + _decoded(job, of_one.weights),
        adapters=FP32 * (roles * adapter + head) + job.compute_bytes * adapter,  # the acting one's copies
        gradients=FP32 * (trained * adapter + head),
        optimizer=MOMENTS * (trained * adapter + head),
    )
    standing = step.weights + step.adapters + step.optimizer + step.fixed
    cache = 2 * job.compute_bytes * shape.kv * shape.layers * recipe.max_length
    logits = FP32 * shape.vocabulary
    free = usable(job) - needed(job, standing)
    return TeamPlan(
        job=job,
        rows=rows,
        recomputes=recomputes,
        memory=step,
        standing_bytes=standing,
        cache_bytes=cache,
        rollout_rows=max(0, int(free // (cache + logits))),
    )


def _decoded(job: Job, weights: int) -> int:
    """Bytes that an NF4 base takes more once it is decoded, where it is."""
    linear = job.shape.layers * job.shape.layer_linear
    whole = job.compute_bytes * linear
    is_nf4 = job.recipe.method == "qlora" and not job.hardware.is_cpu
    decodes = is_nf4 and is_decoded(whole, job.hardware.memory_bytes - weights)
    return round(whole - job.linear_bytes * linear) if decodes else 0


def _head(shape: Shape) -> int:
    widths = (shape.hidden, *CRITIC, 1)
    return sum(one * other for one, other in pairwise(widths))


def _explained(leanest: TeamPlan, asked: Reinforcement) -> str:
    job = leanest.job
    return (
        f"{job.recipe.name} does not fit {job.hardware.name} with {job.hardware.memory_bytes / 1e9:.1f} GB:"
        f" one answer with its prompt ({job.recipe.max_length:,} tokens), everything recomputed, needs"
        f" {leanest.needed_bytes / 1e9:.1f} GB. Lower context_window ({asked.context_window}), max_new_tokens"
        f" ({asked.max_new_tokens}) or lora_r ({job.recipe.lora_r}), take method qlora, or a smaller base"
    )
