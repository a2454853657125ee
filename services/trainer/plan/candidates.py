"""Every plan a recipe allows, priced; the fastest and the leanest of them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import product

from services.core.models import Json
from services.trainer.plan.job import Job
from services.trainer.plan.memory import Memory, memory, needed, usable
from services.trainer.plan.speed import tokens_per_s

EVERYTHING, LIGHT = 1.0, 0.7  # LIGHT: norms and silu · up go, a third of a layer's activations


@dataclass(frozen=True)
class Plan:
    """How a step is computed. Its effective batch is the recipe's, whatever the plan."""

    job: Job = field(repr=False)
    micro_batch: int  # packed rows at once; divides recipe.rows_per_step
    recomputed_layers: int  # the first so many layers compute their activations again in the backward pass
    keep_merged: bool  # base and adapters stay merged in bf16 through a step, or the base in FP8 for good
    kept_share: float  # of the other layers' activations; LIGHT: without what is cheap to compute again
    memory: Memory = field(repr=False)
    tokens_per_s: float  # predicted, of all devices together, in full rows

    @property
    def peak_bytes(self) -> int:
        """Predicted `torch.cuda.max_memory_allocated` of a device."""
        return self.memory.total

    @property
    def needed_bytes(self) -> int:
        """Of the device: the peak, CUDA's context, what the allocator wastes."""
        return needed(self.job, self.peak_bytes)

    @property
    def fits(self) -> bool:
        """On the CPU always: there the figure informs, and the system swaps."""
        return self.job.hardware.is_cpu or self.needed_bytes <= usable(self.job)

    @property
    def micro_batches(self) -> int:
        """Of an optimizer step, on each device."""
        return self.job.recipe.rows_per_step // self.micro_batch

    @property
    def recomputation(self) -> str:
        layers = self.job.shape.layers
        if self.recomputed_layers == layers:
            return "full"
        return "selective" if self.recomputed_layers or self.kept_share < EVERYTHING else "none"

    def halved(self) -> "Plan | None":
        """The plan to go on with when this one ran out of memory all the same; None when there is none.

        Half the micro-batch or the next divisor below; then everything recomputed and merged when needed.
        """
        if self.micro_batch > 1:
            rows = self.job.recipe.rows_per_step
            smaller = max(size for size in divisors(rows) if size <= self.micro_batch // 2)
            return self.with_micro_batch(smaller)
        layers = self.job.shape.layers
        fp8 = self.job.recipe.fp8
        if self.recomputed_layers == layers and self.keep_merged == fp8:
            return None
        return priced(self.job, 1, layers, keep_merged=fp8)

    def with_micro_batch(self, rows: int) -> "Plan":
        """The same with so many rows at once."""
        return priced(
            self.job, rows, self.recomputed_layers, keep_merged=self.keep_merged, kept_share=self.kept_share
        )

    def as_json(self) -> Json:
        return {
            "micro_batch": self.micro_batch,
            "micro_batches": self.micro_batches,
            "recomputation": self.recomputation,
            "recomputed_layers": self.recomputed_layers,
            "keep_merged": self.keep_merged,
            "kept_share": self.kept_share,
            "peak_bytes": self.peak_bytes,
            "needed_bytes": self.needed_bytes,
            "fits": self.fits,
            "tokens_per_s": round(self.tokens_per_s, 1),
            "memory": asdict(self.memory),
        }


def fastest(job: Job) -> Plan | None:
    fitting = [candidate for candidate in candidates(job) if candidate.fits]
    if not fitting:
        return None
    limit = max(candidate.tokens_per_s for candidate in fitting) * (1 - job.calibration.equal_speed)
    return min(
        (candidate for candidate in fitting if candidate.tokens_per_s >= limit),
        key=lambda candidate: candidate.peak_bytes,
    )


def leanest(job: Job) -> Plan:
    return min(candidates(job), key=lambda candidate: candidate.peak_bytes)


def candidates(job: Job) -> Iterator[Plan]:
    merging = (job.recipe.fp8,) if job.recipe.fp8 or not job.can_keep_merged else (False, True)
    for micro_batch in divisors(job.recipe.rows_per_step):
        for layers in _recomputable(job):
            for keep_merged, share in product(merging, _shares(job, layers)):
                yield priced(job, micro_batch, layers, keep_merged=keep_merged, kept_share=share)


def _recomputable(job: Job) -> range:
    """How many layers may be computed again, by the recipe's kind of recomputation."""
    layers = job.shape.layers
    return {
        "auto": range(layers + 1),
        "none": range(1),
        "selective": range(int(not job.can_keep_less), max(2, layers)),
        "full": range(layers, layers + 1),
    }[job.recipe.recomputation]


def _shares(job: Job, recomputed_layers: int) -> tuple[float, ...]:
    """What the other layers may keep of their activations."""
    if not job.can_keep_less or recomputed_layers == job.shape.layers:
        return (EVERYTHING,)
    wanted = job.recipe.recomputation == "selective" and not recomputed_layers
    return (LIGHT,) if wanted else (EVERYTHING, LIGHT)


def divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]


def priced(
    job: Job,
    micro_batch: int,
    recomputed_layers: int,
    *,
    keep_merged: bool,
    kept_share: float = EVERYTHING,
) -> Plan:
    ways = {"keep_merged": keep_merged, "light": kept_share < EVERYTHING}
    return Plan(
        job,
        micro_batch,
        recomputed_layers,
        keep_merged,
        kept_share,
        memory(job, micro_batch, recomputed_layers, **ways),
        tokens_per_s(job, micro_batch, recomputed_layers, **ways),
    )
