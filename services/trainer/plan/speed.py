"""Predicted speed of a plan: operations at the rates that were attained, and the bytes moved beside them."""

from services.trainer.plan.flops import executed, merging, one_product
from services.trainer.plan.job import FP32, Job

PASSES = 2  # forward and backward; a layer's second forward pass is followed by its backward at once
NOMINAL_FLOPS = 100e12  # of a device of unknown speed: its plans still compare with one another


def tokens_per_s(
    job: Job, micro_batch: int, recomputed_layers: int, *, keep_merged: bool, light: bool = False
) -> float:
    """Of all devices together, in rows that are full."""
    rows = job.recipe.rows_per_step
    tokens = rows * job.recipe.max_length  # a step and device
    micro_batches = rows // micro_batch
    computing = _computing(job, micro_batch * job.recipe.max_length, recomputed_layers) * micro_batches
    if job.hardware.is_cpu:
        return tokens / computing
    if light:
        computing += tokens * (job.shape.layers - recomputed_layers) * _made_again(job)
    merges = 1 if keep_merged else PASSES * micro_batches
    seconds = max(computing, _gathering(job, micro_batches))  # the two overlap
    seconds += merges * _merging(job) + _step(job)
    return job.hardware.devices * tokens / seconds


def _computing(job: Job, tokens: int, recomputed_layers: int) -> float:
    """Seconds of a micro-batch."""
    constants, hardware = job.calibration, job.hardware
    operations = executed(job.shape, job.recipe, job.mean_document_tokens, recomputed_layers)
    if hardware.is_cpu:
        return tokens * (operations.matmul + operations.attention) / (hardware.cores * constants.cpu_flops)
    a_token = operations.matmul / (_ceiling(job) * constants.matmul)
    a_token += operations.fp8 / (_ceiling(job) * constants.fp8_matmul)
    a_token += operations.attention / (_ceiling(job) * constants.attending)
    return tokens * a_token * (1 + constants.ramp_tokens / min(tokens, constants.full_tokens))


def _made_again(job: Job) -> float:
    """Seconds a token and layer of what is cheap to compute again: gate and up in, their product out."""
    width = 3 * job.shape.intermediate + 4 * job.shape.hidden
    return job.compute_bytes * width / (job.hardware.bandwidth * job.calibration.bandwidth)


def _ceiling(job: Job) -> float:
    return (job.hardware.peak_flops or NOMINAL_FLOPS) * job.calibration.ceiling


def _merging(job: Job) -> float:
    """Seconds to make all layers' weights once as the products want them."""
    streamed = job.hardware.bandwidth * job.calibration.bandwidth
    linear = job.shape.layers * job.shape.layer_linear
    if job.is_full:
        return (FP32 + job.compute_bytes) * job.shape.parameters / job.shards / streamed
    if one_product(job.recipe):
        moved = (job.linear_bytes + job.compute_bytes) * linear
        return moved / streamed + merging(job.shape, job.recipe) / (_ceiling(job) * job.calibration.matmul)
    return (job.linear_bytes + job.compute_bytes) * linear / streamed if job.recipe.method == "qlora" else 0.0


def _step(job: Job) -> float:
    """Seconds of an optimizer step, and of summing gradients that every device has whole."""
    constants, hardware = job.calibration, job.hardware
    updating = constants.optimizer_bytes * job.trainable / job.shards
    seconds = updating / (hardware.bandwidth * constants.bandwidth)
    if hardware.devices > 1 and job.shards == 1:  # a ring: each part travels twice
        seconds += 2 * _travelling(job, FP32 * job.trainable)
    return seconds


def _gathering(job: Job, micro_batches: int) -> float:
    """Seconds of a step that sharded weights and their gradients travel."""
    if not job.weights_are_sharded:
        return 0.0
    gathers = 1 if job.keeps_gathered else PASSES * micro_batches
    if job.is_full:
        gathered, reduced = job.compute_bytes * job.shape.parameters, FP32 * job.shape.parameters
        return _travelling(job, gathers * gathered + micro_batches * reduced)
    return _travelling(job, gathers * job.linear_bytes * job.shape.layers * job.shape.layer_linear)


def _travelling(job: Job, count: float) -> float:
    """Seconds until every device has its part of so many bytes."""
    devices = job.hardware.devices
    return (devices - 1) / devices * count / (job.hardware.link * job.calibration.link)
