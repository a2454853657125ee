"""The plan of a round: the fastest that fits."""

from services.core.errors import ConfigurationError
from services.trainer.plan.advice import explain
from services.trainer.plan.calibration import CALIBRATION, Calibration
from services.trainer.plan.candidates import Plan, candidates, divisors, fastest, priced
from services.trainer.plan.hardware import Hardware
from services.trainer.plan.job import Job
from services.trainer.plan.memory import usable
from services.trainer.plan.shape import Shape
from services.trainer.recipes.recipe import Recipe


def plan(
    shape: Shape,
    recipe: Recipe,
    hardware: Hardware,
    *,
    mean_document_tokens: float | None = None,
    calibration: Calibration = CALIBRATION,
) -> Plan:
    """The fastest plan that fits `hardware`; of equally fast ones the leanest.

    `mean_document_tokens` None: documents fill their rows, the dearest case for attention.
    Raises ConfigurationError when nothing fits, with what would.
    """
    job = Job(shape, recipe, hardware, mean_document_tokens or recipe.max_length, calibration)
    if hardware.is_cpu:
        return _on_cpu(job)
    chosen = fastest(job)
    if chosen is None:
        raise ConfigurationError(explain(job))
    return chosen


def _on_cpu(job: Job) -> Plan:
    """The recipe's own batches, nothing recomputed; merged weights are kept while memory allows."""
    size = job.recipe.batch_size
    kept = priced(job, size, 0, keep_merged=job.can_keep_merged or job.recipe.fp8)
    return (
        kept
        if job.recipe.fp8 or kept.needed_bytes <= usable(job)
        else priced(job, size, 0, keep_merged=False)
    )


def alternatives(job: Job) -> list[Plan]:
    """Each micro-batch with each kind of recomputation the recipe allows.

    Of a kind the fastest that fits, or the leanest when none does. Selective recomputation is left out
    where it gains nothing.
    """
    chosen: dict[tuple[int, str], Plan] = {}
    for candidate in candidates(job):
        kind = (candidate.micro_batch, candidate.recomputation)
        if kind not in chosen or _preference(candidate) < _preference(chosen[kind]):
            chosen[kind] = candidate
    for size in divisors(job.recipe.rows_per_step):
        none, selective = chosen.get((size, "none")), chosen.get((size, "selective"))
        if none and selective and none.fits and none.tokens_per_s >= selective.tokens_per_s:
            del chosen[size, "selective"]
    return list(chosen.values())


def _preference(candidate: Plan) -> tuple[bool, float]:
    return not candidate.fits, -candidate.tokens_per_s if candidate.fits else candidate.peak_bytes
