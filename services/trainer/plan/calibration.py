"""Every constant of the plan that is measured and not derived, in one place.

tests/unit/trainer/measured_peaks.json holds the measurements that they are checked against.
"""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Kept:
    """Tensors a layer keeps for its backward pass whatever is trained, by their width."""

    hidden: float
    attention: float
    kv: float
    intermediate: float


@dataclass(frozen=True)
class Calibration:
    """Constants of memory and speed."""

    # Kept for the backward pass, a token and layer; inputs of trained or adapted matrices are added
    # Both residuals; q and what attention puts out; k, v; gate, up. Eager: norms in float32, silu(gate) apart
    compiled: Kept = Kept(hidden=2, attention=2, kv=2, intermediate=2)
    eager: Kept = Kept(hidden=4, attention=2, kv=2, intermediate=3)
    apart_bytes: float = 5  # an input of an adapter that is no one product: float32 copy and dropout's mask
    ends_hidden: float = 5  # last states, their norm, those learned, and two gradients of them

    # Needed while one layer goes backward, a token
    slope_hidden: float = 3  # gradients of the layer's output, of the residual, of the normed input
    slope_intermediate: float = 3  # of the product, of gate and of up

    # The loss, as services/trainer/engine/loss.py computes it
    logits_bytes: int = 512 * MIB  # a chunk, were its logits float32
    logits_copies: float = 1  # in the type that computes: the kernel writes their gradient in their place

    # Beside the tensors
    fixed_bytes: int = 256 * MIB  # cuBLAS workspaces, tables of the optimizer, batches under way
    context_bytes: int = 640 * MIB  # CUDA context and kernels: outside of what the allocator counts
    fragmentation: float = 0.02  # of the peak: what the allocator holds and cannot use
    margin: float = 0.01  # of the device's memory that a plan leaves alone
    bucket_bytes: int = 512 * MIB  # of NCCL and reductions, with several devices

    # Speed
    ceiling: float = 0.814  # of the datasheet's rate: 805 of 989 TFLOP/s, H200, bf16, 8192³
    matmul: float = 0.80  # of that ceiling, matrix products with everything pointwise around them
    fp8_matmul: float = 1.11  # of that ceiling, products in FP8 with the rounding before them
    attending: float = 0.45  # of that ceiling, variable-length attention
    bandwidth: float = 0.85  # of the datasheet's memory bandwidth, streaming
    link: float = 0.75  # of the datasheet's rate between devices
    ramp_tokens: int = 400  # a micro-batch costs as much as it had this many tokens more,
    full_tokens: int = 16_384  # until it has this many
    optimizer_bytes: int = 28  # read and written a trainable parameter and step
    cpu_flops: float = 1.0e11  # a core: the 135M demo model at about 390 tokens/s on two
    equal_speed: float = 0.005  # plans this near to the fastest count as fast: the leanest is taken


CALIBRATION = Calibration()
