"""All that a training is made of, put together before its first step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from services.trainer.engine import optimizer as optimizers
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import Distribution
from services.trainer.engine.feed import Feed, Order
from services.trainer.engine.meter import Speed
from services.trainer.packing import Row
from services.trainer.recipes.recipe import Recipe


@dataclass(frozen=True)
class Setup:
    """A model ready to be trained, on what, how and where."""

    compute: Compute
    parameters: Mapping[str, torch.nn.Parameter]  # those that are trained, by name
    optimizer: torch.optim.Optimizer
    feed: Feed
    steps: int
    samples: int
    recipe: Recipe
    folder: Path  # of checkpoints
    round_number: int
    micro_batch: int  # rows at once
    distribution: Distribution
    device: torch.device
    speed: Speed


def order_of(rows: Sequence[Row], recipe: Recipe, round_number: int, world: int) -> Order:
    """Which of these rows each step of the round trains on, where so many processes share it."""
    return Order(
        rows=len(rows),
        rows_per_batch=recipe.rows_per_step * world,
        epochs=recipe.epochs,
        seed=recipe.seed,
        round_number=round_number,
        shuffled=not recipe.curriculum,
        world=world,
    )


def prepare(  # noqa: PLR0913  it puts everything together
    compute: Compute, rows: Sequence[Row], recipe: Recipe, folder: Path, *, pad_id: int,
    round_number: int = 1, micro_batch: int | None = None, distribution: Distribution | None = None,
    speed: Speed | None = None,
) -> Setup:  # fmt: skip
    """`compute` holds the model as `distribution` prepared it; micro_batch None: the recipe's batch_size."""
    distribution = distribution or Distribution()
    parameters = distribution.trainable(compute.model)
    device = next(iter(parameters.values())).device
    order = order_of(rows, recipe, round_number, distribution.world)
    feed = Feed(
        rows,
        order,
        rank=distribution.rank,
        pad_id=pad_id,
        longest=recipe.max_length,
        static=device.type == "cuda",
        threads=recipe.dataloader_num_workers,
    )
    return Setup(
        compute=compute,
        parameters=parameters,
        optimizer=optimizers.make(parameters, recipe),
        feed=feed,
        steps=min(order.steps, recipe.max_steps or order.steps),
        samples=sum(len(row.samples) for row in rows),
        recipe=recipe,
        folder=folder,
        round_number=round_number,
        micro_batch=micro_batch or recipe.batch_size,
        distribution=distribution,
        device=device,
        speed=speed or Speed(),
    )
