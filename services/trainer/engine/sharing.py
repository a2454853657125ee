"""Which way of sharing a step a recipe gets, on what there is."""

from services.core.errors import ConfigurationError
from services.trainer.engine.distributed import ALONE, Distribution
from services.trainer.recipes.recipe import Recipe

GATHERED_BY_LAYER = ("fsdp2", "zero3")


def sharing(recipe: Recipe, joined: Distribution, timeout: float) -> Distribution:
    """The way the recipe is trained among the processes that have joined.

    auto: ddp for adapters, fsdp2 for all weights, neither for a process alone on a CPU. All weights on a GPU
    are always split, be it over one process: that is what keeps float32 masters beside bfloat16 copies.
    ZeRO-2 keeps the weights whole in every process and splits what the optimizer has; adapters have so
    little of that that for them it is ddp. Raises ConfigurationError for what cannot be.
    """
    wanted = recipe.distributed
    if recipe.method == "qlora" and wanted not in ("auto", "ddp"):
        raise ConfigurationError(
            f"distributed {wanted} splits the base's weights, method qlora has them in NF4, which cannot be"
            " split: say distributed auto or ddp, or method lora"
        )
    if recipe.method == "full":
        if wanted == "ddp":
            raise ConfigurationError(
                "distributed ddp holds every weight, gradient and optimizer state in each process, too much"
                " for method full: say distributed auto, fsdp2, zero2 or zero3"
            )
        if joined.world == 1 and joined.device.type == "cpu":
            return ALONE
        return _sharded(keep_gathered=wanted == "zero2", timeout=timeout)
    if joined.world > 1 and wanted in GATHERED_BY_LAYER:
        return _sharded(keep_gathered=False, timeout=timeout)
    return joined


def _sharded(*, keep_gathered: bool, timeout: float) -> Distribution:
    from services.trainer.engine.sharded import Sharded  # half a second that most rounds need not spend

    return Sharded(keep_gathered=keep_gathered, timeout=timeout)
