"""A model whose weights, gradients and optimizer states are split over the processes: torch's FSDP2.

Zhao et al., "PyTorch FSDP", 2023; Rajbhandari et al., "ZeRO", 2020. fsdp2 and zero3 hold a layer's weights
whole only while it computes; zero2 gathers them once a step. What a rank trains is its part of every
weight, a plain float32 tensor (the master); on a GPU the gathered copy that computes is bfloat16.
Adapters stay whole in every process, as with ddp: they are small, and only their frozen base is split.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor, distribute_tensor

from services.trainer.engine.distributed import CPU, THROUGH, Replicated, causal_lm_of, start_group

T = TypeVar("T")


class Sharded(Replicated):
    """keep_gathered: gathered weights stay from the first micro-batch of a step to its last (ZeRO-2)."""

    def __init__(self, *, keep_gathered: bool, timeout: float) -> None:
        if not dist.is_initialized():  # a process alone, which wants bf16 weights beside fp32 masters
            start_group(timeout, store=dist.HashStore(), rank=0, world_size=1)
        super().__init__()
        self._keep_gathered = keep_gathered
        self._pairs: dict[str, tuple[torch.nn.Parameter, torch.nn.Parameter]] = {}  # part, its DTensor
        self._units: list[FSDPModule] = []

    @property
    def splits(self) -> bool:
        return bool(self._pairs)

    @property
    def whole_passes(self) -> bool:
        return True

    @property
    def loads_on(self) -> torch.device:
        """The CPU: a GPU needs room for one layer, not for all."""
        return CPU

    def prepare(self, model: Any) -> Any:
        """Layer by layer onto this process's device and split; without adapters the masters are float32."""
        causal_lm = causal_lm_of(model)
        in_full = causal_lm is model
        adapters = set() if in_full else {one for one in model.parameters() if one.requires_grad}
        for one in adapters:
            one.data = one.data.to(self.device)
        if adapters:
            super().prepare(model)
        mixed = in_full and self.device.type == "cuda"
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if mixed else MixedPrecisionPolicy()
        options = {
            "mesh": init_device_mesh(self.device.type, (self.world,)),
            "reshard_after_forward": not self._keep_gathered,
            "mp_policy": policy,
            "ignored_params": adapters,
        }
        for part in (*causal_lm.base_model.layers, causal_lm):
            _move(part, self.device, torch.float32 if in_full else None, adapters)
            fully_shard(part, **options)
        self._units = [part for part in causal_lm.modules() if isinstance(part, FSDPModule)]
        for unit in self._units:
            unit.set_reshard_after_backward(not self._keep_gathered)
        setattr(causal_lm, THROUGH, self._through)
        register_fsdp_forward_method(causal_lm, THROUGH)
        self._pairs = {
            name: (torch.nn.Parameter(one.data.to_local()), one)
            for name, one in causal_lm.named_parameters()
            if in_full and one.requires_grad
        }
        return model

    def trainable(self, model: Any) -> dict[str, torch.nn.Parameter]:
        """Parts share their memory with the model's own, so that any optimizer of plain tensors does.

        A weight with fewer rows than there are processes leaves some without a part of it.
        """
        parts = {name: part for name, (part, _) in self._pairs.items() if part.numel()}
        return parts or super().trainable(model)

    def reduce_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """FSDP has averaged a split weight's gradient in the backward passes: it only changes hands here."""
        for part, split in self._pairs.values():
            mean = torch.zeros_like(part) if split.grad is None else split.grad.to_local()
            part.grad = mean.mul_(self.world)
            split.grad = None
        self.weights_changed()  # as they will be after the optimizer's step
        if not self._pairs:
            super().reduce_gradients(parameters)

    def whole_weights(self, model: Any, dtype: torch.dtype) -> dict[str, torch.Tensor]:  # noqa: ARG002
        weights = {}
        for name, (_, split) in self._pairs.items():
            whole = split.detach().to(dtype).full_tensor()  # a collective: every process takes part
            if self.is_first:
                weights[name] = whole.cpu()
        return weights

    @torch.no_grad()
    def fill(self, model: Any, weight: Callable[[str], torch.Tensor]) -> None:  # noqa: ARG002
        for name, (_, split) in self._pairs.items():
            value = weight(name).to(split.device, split.dtype)
            split.copy_(distribute_tensor(value, split.device_mesh, split.placements, src_data_rank=None))
        self.weights_changed()

    def _through(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    def weights_changed(self) -> None:
        """Gathered copies go: the next forward pass gathers them anew."""
        for unit in self._units:
            unit.reshard()

    def _global_norm(self, norm: float) -> float:
        return self.sum(norm**2)[0] ** 0.5 if self._pairs else norm


def _move(part: Any, device: torch.device, dtype: torch.dtype | None, adapters: set[Any]) -> None:
    """What of it is not split yet, in place."""
    for one in part.parameters():
        if not isinstance(one, DTensor) and one not in adapters:
            one.data = one.data.to(device, dtype)
    for buffer in part.buffers():
        buffer.data = buffer.data.to(device)
