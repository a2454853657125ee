"""What a model costs on a micro-batch: the one forward that training goes through."""

from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from services.trainer.engine import projection
from services.trainer.engine.batch import Batch
from services.trainer.engine.loss import summed_cross_entropy

MOST_GRAPHS = 64  # a code is compiled for: shares, widths and numbers of documents, each in a few sizes
EVERYTHING, INPUT_ONLY = 1.0, 0.0  # share of a layer's activations that is kept for the backward pass


class Compute:
    """The loss of a causal LM, bare or with adapters, loaded with `attention.register()`'s attention.

    recomputed_layers: so many of the first decoder layers keep only their input for the backward pass.
    kept_share: of the other layers' activations, when compiled; what is cheapest to compute again goes first.
    keep_merged: every projection keeps its merged weight from step to step (2 bytes a weight in bf16).
    compiled: decoder layers are compiled for training, one graph for all alike; evaluation is not.
    in_fp8: products with frozen weights that have an adapter are made in FP8; nothing is merged then.
    united: False leaves adapted layers as PEFT has them, for a model whose adapters are exchanged.
    """

    def __init__(
        self,
        model: Any,
        *,
        recomputed_layers: int = 0,
        kept_share: float = EVERYTHING,
        keep_merged: bool = True,
        compiled: bool = False,
        in_fp8: bool = False,
        united: bool = True,
    ) -> None:
        self.model = model
        self._causal_lm = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._united: list[Any] = []
        dtype = self._causal_lm.get_input_embeddings().weight.dtype
        for number, layer in enumerate(self._causal_lm.base_model.layers):
            recomputed = number < recomputed_layers
            for part in projection.plain(layer) if united else ():
                projection.unite(part, dtype, keep=keep_merged, save=recomputed, in_fp8=in_fp8)
                self._united.append(part)
            if compiled:
                trained = _compiled(layer, INPUT_ONLY if recomputed else kept_share)
            elif recomputed:
                trained = partial(checkpoint, layer.forward, use_reentrant=False)
            else:
                continue
            layer.forward = _either(trained, layer.forward)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Nats of the batch's targets together, a float32 scalar to call backward on."""
        hidden = self.hidden(batch)
        head = self._causal_lm.get_output_embeddings()
        return summed_cross_entropy(hidden[batch.learned_at], head.weight, batch.targets[batch.learned_at])

    def hidden(self, batch: Batch) -> torch.Tensor:
        """The last layer's states (T, H), normalised."""
        states = self._causal_lm.base_model(
            input_ids=batch.input_ids[None],
            position_ids=batch.position_ids[None],
            use_cache=False,
            boundaries=batch.boundaries,
            longest=batch.longest,
            even=batch.even,
        ).last_hidden_state
        return states[0]

    def weights_changed(self) -> None:
        """To be called after every optimizer step and after weights were loaded: refreshes copies of them."""
        for part in self._united:
            projection.refresh(part)


def _compiled(layer: Any, kept_share: float) -> Callable[..., Any]:
    """The layer's forward, compiled to keep that share of its activations (torch's memory budget).

    torch finds what it compiled by a function's code: layers that keep different shares need codes of
    their own, all of one share have theirs in common.
    """
    from torch._dynamo import config as dynamo
    from torch._functorch import config

    dynamo.recompile_limit = max(dynamo.recompile_limit, MOST_GRAPHS)  # beyond it layers run uncompiled
    forward = _with_code_of_its_own(type(layer).forward, kept_share)
    compiled = torch.compile(MethodType(forward, layer), dynamic=False)

    def run(*args: Any, **kwargs: Any) -> Any:
        with config.patch(activation_memory_budget=kept_share):
            return compiled(*args, **kwargs)

    return run


_forwards: dict[tuple[Any, float], FunctionType] = {}


def _with_code_of_its_own(forward: Any, kept_share: float) -> FunctionType:
    key = (forward, kept_share)
    if key not in _forwards:
        code = forward.__code__.replace(co_name=f"{forward.__name__}_keeping_{round(100 * kept_share)}")
        copied = FunctionType(
            code, forward.__globals__, forward.__name__, forward.__defaults__, forward.__closure__
        )
        copied.__kwdefaults__ = forward.__kwdefaults__
        _forwards[key] = copied
    return _forwards[key]


def _either(trained: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return (trained if torch.is_grad_enabled() else plain)(*args, **kwargs)

    return forward
