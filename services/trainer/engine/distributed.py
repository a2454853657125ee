"""How the processes of a round share it: alone or, each with the whole model, replicated (ddp).

`sharded.Sharded` is the third way (fsdp2, zero2, zero3); `join` and `sharing` say which it is. Words between
processes (`agree`, `any`, `sum`) travel over gloo, so that they never wait for a GPU's queue; tensors of the
model travel over NCCL where there are GPUs.
"""

import datetime
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from services.core.errors import RatchetError, RoundError
from services.trainer.interruption import Interrupted

T = TypeVar("T")
BUCKET_BYTES = 256 * 2**20  # gradients summed at once
THROUGH = "ratchet_through"  # a sharded model's own way in, see `through`


class Distribution:
    """A process alone. The other ways are subclasses that say the same of several."""

    rank = 0
    world = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def splits(self) -> bool:
        """Whether each process trains its own part of every weight, and has its own part of a checkpoint."""
        return False

    @property
    def whole_passes(self) -> bool:
        """Whether a forward or backward pass that was begun has to be finished, even out of memory.

        Otherwise the other processes wait within it, or weights stay gathered.
        """
        return False

    @property
    def device(self) -> torch.device:
        """Where this process computes."""
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else CPU

    @property
    def loads_on(self) -> torch.device:
        """Where the base model is loaded to, before `prepare`."""
        return self.device

    def prepare(self, model: Any) -> Any:
        """The model as this process trains it: after adapters are in, before `Compute` and `trainable`."""
        return model

    def trainable(self, model: Any) -> dict[str, torch.nn.Parameter]:
        """What this process's optimizer updates, by name: plain float32 tensors, whole or this rank's part.

        The same objects at every call. Checkpoints hold these and the optimizer's state, a part a rank.
        """
        return {name: one for name, one in model.named_parameters() if one.requires_grad}

    def agree(self, work: Callable[[], T]) -> T:
        """What the first process gets from `work`, in every process.

        Raises in every process what `work` raises: the others know as well why, and whether it will pass.
        """
        return work()

    def any(self, flag: bool) -> bool:
        """Whether it is so in any process."""
        return flag

    def sum(self, *values: float) -> tuple[float, ...]:
        """Each value summed over the processes."""
        return values

    def reduce_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Gradients summed over the processes, after a step's last micro-batch."""

    def clip_gradients(self, parameters: Iterable[torch.nn.Parameter], max_norm: float) -> float:
        """Gradients scaled down to a norm; their norm before. Not finite: they are left as they are."""
        gradients = [one.grad for one in parameters if one.grad is not None]
        norm = self._global_norm(float(torch.nn.utils.get_total_norm(gradients)))
        if math.isfinite(norm) and norm > max_norm:
            torch._foreach_mul_(gradients, max_norm / norm)
        return norm

    def whole_weights(self, model: Any, dtype: torch.dtype) -> dict[str, torch.Tensor]:
        """Every weight of a fully trained model, on the CPU, in the first process; nothing in the others.

        All processes must ask at once.
        """
        return {name: one.detach().to("cpu", dtype) for name, one in model.named_parameters()}

    @torch.no_grad()
    def fill(self, model: Any, weight: Callable[[str], torch.Tensor]) -> None:
        """Put `weight(name)` into every parameter of a model trained in full."""
        for name, one in model.named_parameters():
            one.copy_(weight(name))

    def weights_changed(self) -> None:
        """To be called after weights were written otherwise than by a step, such as from a checkpoint."""

    def close(self) -> None:
        """Leave the group."""

    def _global_norm(self, norm: float) -> float:
        return norm


class Replicated(Distribution):
    """Every process holds the whole model and sees its own rows; a step ends with one sum of gradients.

    torch's DDP would overlap that sum with the last backward pass, which saves little: adapters' gradients
    are about a hundredth of what a step moves, and DDP's hooks would run in every micro-batch.
    """

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()

    def prepare(self, model: Any) -> Any:
        """Every process begins with the first one's adapters."""
        tensors = [one.data for one in model.parameters() if one.requires_grad]
        for bucket in _buckets(tensors):
            dist.broadcast(flat := _flat(bucket), 0)
            _unflatten(flat, bucket)
        return model

    def agree(self, work: Callable[[], T]) -> T:
        said: list[Any] = [None, None]  # value, error
        if self.is_first:
            try:
                said[0] = work()
            except BaseException as exc:
                ours = isinstance(exc, (RatchetError, Interrupted))
                said[1] = exc if ours else RoundError(f"{type(exc).__name__}: {exc}")
                dist.broadcast_object_list(said, 0, device=CPU)
                raise
        dist.broadcast_object_list(said, 0, device=CPU)
        if said[1] is not None:
            raise said[1]
        value: T = said[0]
        return value

    def any(self, flag: bool) -> bool:
        dist.all_reduce(votes := torch.tensor(float(flag)), dist.ReduceOp.MAX)
        return bool(votes)

    def sum(self, *values: float) -> tuple[float, ...]:
        dist.all_reduce(totals := torch.tensor(values, dtype=torch.float64))
        return tuple(totals.tolist())

    @torch.no_grad()
    def reduce_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """In buckets, in the parameters' order; a parameter without a gradient here counts as zero."""
        parameters = list(parameters)
        for one in parameters:
            if one.grad is None:
                one.grad = torch.zeros_like(one)
        for bucket in _buckets([one.grad for one in parameters if one.grad is not None]):
            dist.all_reduce(flat := _flat(bucket))
            _unflatten(flat, bucket)

    def whole_weights(self, model: Any, dtype: torch.dtype) -> dict[str, torch.Tensor]:
        return super().whole_weights(model, dtype) if self.is_first else {}

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


CPU = torch.device("cpu")
ALONE = Distribution()


def join(timeout: float) -> Distribution:
    """This process's place among those torchrun started, as the environment has it.

    A process that waits for another longer than `timeout` seconds fails instead of hanging.
    """
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ALONE
    start_group(timeout)
    return Replicated()


def start_group(timeout: float, **options: Any) -> None:
    """Join torchrun's group, or with `store`, `rank` and `world_size` another."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=timeout), **options)


def through(model: Any, function: Callable[..., T], *arguments: Any) -> T:
    """`function(*arguments)`, run as the model's own forward.

    A sharded model makes the weights outside of its layers (embedding, last norm, output) whole for it:
    whatever touches them, forward or for the loss, has to go this way.
    """
    enter: Callable[..., T] | None = getattr(model, THROUGH, None)
    return function(*arguments) if enter is None else enter(function, *arguments)


def causal_lm_of(model: Any) -> Any:
    """The causal LM itself, also where PEFT has put adapters into it."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _buckets(tensors: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Neighbours of one type, together at most BUCKET_BYTES unless one alone is larger."""
    bucket: list[torch.Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and (size + tensor.nbytes > BUCKET_BYTES or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.nbytes
    if bucket:
        yield bucket


def _flat(bucket: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in bucket])


def _unflatten(flat: torch.Tensor, bucket: Sequence[torch.Tensor]) -> None:
    for tensor, part in zip(bucket, flat.split([tensor.numel() for tensor in bucket]), strict=True):
        tensor.copy_(part.view_as(tensor))
