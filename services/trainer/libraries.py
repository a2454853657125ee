"""torch, transformers and PEFT loaded with less work, for a process that is about to import them anyway.

Loading them is most of what a short process with a model does. A third of it is spared here.
"""

import gc
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any


def load() -> None:
    """Import them; processes with a model call it first, and go on with their own imports.

    Three thousand modules make 800 thousand objects and no garbage: collections wait until they are there,
    and do not look at them afterwards. PEFT imports bitsandbytes, which hands its fallbacks for processors
    to `torch.compile`: that alone loads TorchInductor, 550 modules more, for functions that few rounds call.
    They are compiled at their first call.
    """
    if "peft" in sys.modules:
        return
    gc.disable()
    try:
        _load_bitsandbytes()
        import peft  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


def _load_bitsandbytes() -> None:
    import torch

    compile_now = torch.compile
    torch.compile = _compiled_at_first_call(compile_now)
    try:
        import bitsandbytes  # noqa: F401
    except ImportError:  # PEFT does without it, too
        pass
    finally:
        torch.compile = compile_now


def _compiled_at_first_call(compile_now: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.compile`, as a function and as a decorator, whose results compile when they are called."""

    def compile_later(model: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
        if model is None:
            return partial(compile_later, **options)
        compiled = cache(partial(compile_now, model, **options))

        def call(*arguments: Any, **named: Any) -> Any:
            return compiled()(*arguments, **named)

        return call

    return compile_later
