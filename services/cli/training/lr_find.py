"""`ratchet lr-find`: a learning-rate range test on the code that a round of the recipe would see."""

import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from services.cli.asking import modelprocess
from services.cli.environment import Environment
from services.cli.training.samples import from_database
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.comparing import questions
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import require_fine_tuning
from services.trainer.samples.source import SampleSource

CHILD = "services.trainer.finder"
CONTENTS_OF_A_STEP = 2  # taken from the database for each; fewer are gone through again
SHOWN = 20  # rows of the table


def run(
    environment: Environment, name: str | None, *, lowest: float, highest: float, steps: int, as_json: bool
) -> None:
    """Print the curve, where it falls fastest and where it diverges. Nothing is kept, no round is opened.

    Raises ConfigurationError for a recipe or rates that cannot be, RatchetError when there is no code,
    StackError when the process that trains fails.
    """
    if not 0 < lowest < highest < 1:
        raise ConfigurationError(f"rates from {lowest} to {highest}: expected 0 < lowest < highest < 1")
    settings = environment.settings
    recipe = recipe_files.load(name or settings.recipe, settings.recipe_overrides)
    require_fine_tuning(recipe, "`ratchet lr-find`")
    contents = from_database(environment, recipe, CONTENTS_OF_A_STEP * steps * recipe.rows_per_step)
    asked = {"lowest": lowest, "highest": highest, "steps": steps}
    found = trained(environment, recipe, contents, asked)
    if as_json:
        print(json.dumps({"recipe": recipe.name, "learning_rate": recipe.learning_rate, **found}))
        return
    console = Console()
    console.print(table(found["points"]))
    console.print(summary(found, recipe), highlight=False)


def trained(environment: Environment, recipe: Recipe, contents: Sequence[SampleSource], asked: Json) -> Json:
    """What the process with the model found; its progress is shown while it runs."""
    sent = {**asked, "recipe": recipe.model_dump(mode="json"), "contents": questions.as_json(contents)}
    return modelprocess.ask(environment, CHILD, sent, _show)


def table(points: Sequence[Json]) -> Table:
    """Evenly spread points of the curve."""
    made = Table("learning rate", "loss", "smoothed", box=None)
    every = max(1, len(points) // SHOWN)
    for point in points[::every]:
        loss = "not finite" if point["loss"] is None else f"{point['loss']:.3f}"
        smoothed = "" if point["smoothed"] is None else f"{point['smoothed']:.3f}"
        made.add_row(f"{point['learning_rate']:.1e}", loss, smoothed)
    return made


def summary(found: Json, recipe: Recipe) -> str:
    """One sentence a finding."""
    if found["suggestion"] is None:
        said = ["The loss never fell: try other rates, or more steps."]
    else:
        said = [
            f"It falls fastest at {found['suggestion']:.1e}: a good learning_rate is there or a little below."
        ]
    if found["diverges"] is not None:
        said.append(f"It diverges at {found['diverges']:.1e}.")
    said.append(f"The recipe {recipe.name} has {recipe.learning_rate:.1e}.")
    return " ".join(said)


def _show(line: str) -> bool:
    """A step's line, as one that is written over by the next, where somebody looks; no other line."""
    if not line.startswith("step "):
        return False
    _, step, steps, rate, loss = line.split()
    if sys.stderr.isatty():
        sys.stderr.write(f"\rstep {step}/{steps}  {float(rate):.1e}  loss {float(loss):.3f} ")
        sys.stderr.write("\n" if step == steps else "")
        sys.stderr.flush()
    return True
