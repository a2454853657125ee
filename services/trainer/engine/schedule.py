"""The learning rate of every step: a warm-up, then the recipe's curve. Pure, without torch."""

import math

from services.trainer.recipes.recipe import Recipe


def learning_rate(step: int, steps: int, recipe: Recipe) -> float:
    """Of optimizer step number `step`, from 0, in a round of `steps`; never 0, never above the recipe's.

    The curve rises in equal parts to the recipe's `learning_rate`, which the last step of the warm-up
    has, then falls towards 0, which the step after the last would have (Loshchilov & Hutter, "SGDR",
    2017, for the cosine and its restarts). Every round warms up anew.
    """
    warm_up = warm_up_steps(steps, recipe)
    if step < warm_up:
        return recipe.learning_rate * (step + 1) / warm_up
    done = (step - warm_up) / max(1, steps - warm_up)  # in [0, 1)
    return recipe.learning_rate * _share(min(done, math.nextafter(1, 0)), recipe)


def warm_up_steps(steps: int, recipe: Recipe) -> int:
    """How many steps the learning rate rises, at most all of them."""
    return min(steps, math.ceil(recipe.warmup_share * steps))


def _share(done: float, recipe: Recipe) -> float:
    """The part of the highest learning rate when `done` of the fall, in [0, 1), lies behind."""
    if recipe.lr_schedule == "constant":
        return 1.0
    if recipe.lr_schedule == "linear":
        return 1.0 - done
    if recipe.lr_schedule == "cosine_with_restarts":
        done = done * recipe.lr_restarts % 1.0
    return 0.5 * (1.0 + math.cos(math.pi * done))
