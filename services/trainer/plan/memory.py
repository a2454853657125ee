"""Peak memory of a plan, from its parts; docs/explanation/memory.md has the formulas and their sources."""

from dataclasses import dataclass

from services.trainer.plan.flops import one_product
from services.trainer.plan.job import FP32, Job

GATHERED_LAYERS = 2  # FSDP2: the layer at work and the next, on its way
NORMS = 2  # a layer
FP8_ORDERS = 2  # a byte for each of them: rows and columns
PER_TOKEN_BYTES = 32  # ids, targets and positions, int64; documents' boundaries


@dataclass(frozen=True)
class Memory:
    """Bytes of one device. `logits` and `scratch` are never needed at the same time."""

    weights: int  # as stored: the frozen base, or the float32 masters of full fine-tuning
    merged: int  # base and adapter in bf16, kept through a step; or the base in FP8, in both orders
    adapters: int  # float32 masters and their bf16 copies
    gradients: int
    optimizer: int
    activations: int
    logits: int  # the loss's chunk, forward and gradient
    scratch: int  # one layer's backward pass: gradients, merged or gathered weights
    fixed: int

    @property
    def total(self) -> int:
        """The peak as `torch.cuda.max_memory_allocated` counts it."""
        parts = (
            self.weights, self.merged, self.adapters, self.gradients, self.optimizer, self.activations,
            max(self.logits, self.scratch), self.fixed,
        )  # fmt: skip
        return sum(parts)


def memory(
    job: Job, micro_batch: int, recomputed_layers: int, *, keep_merged: bool, light: bool = False
) -> Memory:
    """Of a micro-batch of that many rows, the first `recomputed_layers` layers computed again.

    light: the others keep neither norms nor products of pointwise operations.
    """
    tokens = micro_batch * job.recipe.max_length
    whole = tokens * kept_by_layer(job)
    cheap = tokens * _cheap(job) if light else 0
    kept = whole - cheap
    only_input = tokens * job.compute_bytes * job.shape.hidden
    layers = job.shape.layers
    of_layers = (layers - recomputed_layers) * kept + recomputed_layers * only_input
    # Kept layers lie above the recomputed and are freed before one of these needs its activations again
    again = whole - only_input if recomputed_layers == layers else cheap
    backward = again + _scratch(job, tokens, keep_merged=keep_merged)
    several = job.calibration.bucket_bytes if job.hardware.devices > 1 else 0
    return Memory(
        weights=round(_weights(job)),
        merged=_merged(job) if keep_merged else 0,
        adapters=round(_adapters(job)),
        gradients=round(_gradients(job)),
        optimizer=round(job.moments_bytes * job.trainable / job.shards),
        activations=round(of_layers + tokens * _outside_layers(job)),
        logits=round(_logits(job, tokens)),
        scratch=round(max(backward, _reduced_last(job) + _gathered(job) - of_layers)),
        fixed=job.calibration.fixed_bytes + several,
    )


def needed(job: Job, peak_bytes: int) -> int:
    """What the device must have free for that peak: with CUDA's context and what the allocator wastes."""
    if job.hardware.is_cpu:
        return peak_bytes
    constants = job.calibration
    return round(peak_bytes * (1 + constants.fragmentation) + constants.context_bytes)


def usable(job: Job) -> int:
    """What of the device's memory a plan may need."""
    return int(job.hardware.memory_bytes * (1 - job.calibration.margin))


def _weights(job: Job) -> float:
    shape = job.shape
    if job.is_full:
        whole = job.compute_bytes * shape.parameters if job.keeps_gathered else 0
        return FP32 * shape.parameters / job.shards + whole
    linear = shape.layers * shape.layer_linear
    base = job.linear_bytes * linear + job.compute_bytes * (shape.parameters - linear)
    return base / job.hardware.devices if job.weights_are_sharded else base


def _merged(job: Job) -> int:
    return (FP8_ORDERS if job.recipe.fp8 else job.compute_bytes) * job.adapted_linear


def _adapters(job: Job) -> float:
    """Masters, and their copies in the type that computes."""
    return job.shape.adapter(job.recipe) * (FP32 + job.compute_bytes)


def _gradients(job: Job) -> float:
    """Float32, and in full fine-tuning the output layer's own, whole until the backward pass ends."""
    head = job.compute_bytes * job.shape.head if job.is_full else 0
    return FP32 * job.trainable / job.shards + head


def kept_by_layer(job: Job) -> float:
    """Bytes a token that a layer keeps for its backward pass."""
    shape, constants = job.shape, job.calibration
    compiled = job.recipe.compile and not job.hardware.is_cpu
    kept = constants.compiled if compiled else constants.eager
    width = (
        kept.hidden * shape.hidden
        + kept.attention * shape.attention
        + kept.kv * shape.kv
        + kept.intermediate * shape.intermediate
    )
    normalisers = FP32 * (shape.heads + NORMS)  # log-sum-exp of a head's scores, reciprocals of the norms
    return job.compute_bytes * width + normalisers + _cheap(job) + _kept_apart(job)


def _cheap(job: Job) -> float:
    """Of these bytes those that pointwise operations make again from the others."""
    shape = job.shape
    trained = shape.linear if job.is_full else shape.targets(job.recipe)
    return job.compute_bytes * (
        shape.hidden * bool(trained.keys() & {"q_proj", "k_proj", "v_proj"})  # the first norm
        + shape.hidden * bool(trained.keys() & {"gate_proj", "up_proj"})  # the second
        + shape.intermediate * ("down_proj" in trained)  # silu(gate) · up
    )


def _kept_apart(job: Job) -> float:
    """What adapters keep beside that when they are no one product with the base: dropout, DoRA, FP8."""
    if job.recipe.fp8 and one_product(job.recipe):
        return job.compute_bytes * job.recipe.lora_r * len(job.shape.targets(job.recipe))
    if job.is_full or one_product(job.recipe):
        return 0
    widths = [inputs for inputs, _ in job.shape.targets(job.recipe).values()]
    return job.calibration.apart_bytes * sum(widths) + FP32 * job.recipe.lora_r * len(widths)


def _outside_layers(job: Job) -> float:
    """Bytes a token: the states around the loss, the batch, rotations."""
    states = job.calibration.ends_hidden * job.shape.hidden + 2 * job.shape.head_dim
    return job.compute_bytes * states + PER_TOKEN_BYTES


def _logits(job: Job, tokens: int) -> float:
    constants, shape = job.calibration, job.shape
    chunk = min(tokens, max(1, constants.logits_bytes // (FP32 * shape.vocabulary)))  # tokens
    head = 2 * FP32 * shape.head if job.is_full else 0  # its gradient, and a chunk's part of it
    return chunk * shape.vocabulary * constants.logits_copies * job.compute_bytes + head


def _scratch(job: Job, tokens: int, *, keep_merged: bool) -> float:
    constants, shape = job.calibration, job.shape
    width = constants.slope_hidden * shape.hidden + constants.slope_intermediate * shape.intermediate
    slopes = job.compute_bytes * width * tokens
    return slopes + _gathered(job) + (0 if keep_merged else _merged_layer(job))


def _merged_layer(job: Job) -> float:
    """One layer's weights in bf16, made for one pass: merged, or dequantised one matrix at a time."""
    if job.is_full or job.hardware.is_cpu:
        return 0
    sizes = [inputs * outputs for inputs, outputs in job.shape.linear.values()]
    if one_product(job.recipe):
        return job.compute_bytes * sum(sizes)
    return job.compute_bytes * max(sizes) if job.recipe.method == "qlora" else 0


def _gathered(job: Job) -> float:
    """Some layers' whole weights, where they are sharded; one layer's gradients, where they are trained."""
    shape = job.shape
    if not job.weights_are_sharded:
        return 0
    layers = job.linear_bytes * GATHERED_LAYERS * shape.layer_linear
    weights = 0 if job.keeps_gathered else layers + job.compute_bytes * shape.outside
    return weights + ((job.compute_bytes + FP32) * shape.layer if job.is_full else 0)


def _reduced_last(job: Job) -> float:
    """Gradients of embeddings and output layer as they are summed, when no activation is left."""
    if not job.is_full or not job.weights_are_sharded:
        return 0
    return (job.compute_bytes + FP32) * job.shape.outside
