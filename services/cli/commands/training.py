"""Train: ask for rounds and look at them, choose a recipe, see what it needs and what the model sees."""

from typing import Annotated

import typer

from services.cli.commands.options import AnyTrack, AsJson, Limit, NoWait, Reason, RecipeName, Track

app = typer.Typer(rich_markup_mode=None)
recipes = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List the ways of training, show one, check one."
)
app.add_typer(recipes, name="recipe")


@app.command()
def train(
    now: Annotated[
        bool, typer.Option("--now", help="Start a round with what is new, however little it is.")
    ] = False,
    track: Track = None,
    reason: Reason = None,
    no_wait: NoWait = False,
    as_json: AsJson = False,
) -> None:
    """Say what the next round waits for, or start it now.

    Rounds start by themselves when MIN_NEW_FILES contents are new. The trainer of the track does it: it must
    be running. Exit status 1 when it says no.
    """
    from services.cli import environment

    if not now:
        from services.cli.training import waiting

        waiting.run(environment.read(), track, as_json=as_json)
        return
    from services.cli.training.requests import Asked, run

    if not run(environment.read(), Asked("train", track, reason, wait=not no_wait), as_json=as_json):
        raise typer.Exit(1)


@app.command()
def pause(
    track: Track = None, reason: Reason = None, no_wait: NoWait = False, as_json: AsJson = False
) -> None:
    """Start no more rounds until `ratchet resume`.

    A round that runs goes on to its end. What comes in is still stored.
    """
    from services.cli import environment
    from services.cli.training.requests import Asked, run

    if not run(environment.read(), Asked("pause", track, reason, wait=not no_wait), as_json=as_json):
        raise typer.Exit(1)


@app.command()
def resume(
    track: Track = None, reason: Reason = None, no_wait: NoWait = False, as_json: AsJson = False
) -> None:
    """Let rounds start again after `ratchet pause`."""
    from services.cli import environment
    from services.cli.training.requests import Asked, run

    if not run(environment.read(), Asked("resume", track, reason, wait=not no_wait), as_json=as_json):
        raise typer.Exit(1)


@app.command()
def rounds(
    track: AnyTrack = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List rounds, newest first: how each ended, and its gain.

    `ratchet round N` says everything of one.
    """
    from services.cli import environment
    from services.cli.training.rounds import run

    run(environment.read(), track, most=limit, as_json=as_json)


@app.command("round")
def one_round(
    number: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="Its number. Without: the newest.")
    ] = None,
    track: Track = None,
    as_json: AsJson = False,
) -> None:
    """Say everything of one round.

    What it trained on, how its loss fell, how it was judged and why, and what of its recipe is not as in the
    round before.
    """
    from services.cli import environment
    from services.cli.training.one_round import run

    run(environment.read(), number, track, as_json=as_json)


@app.command()
def plan(
    recipe: RecipeName = None,
    device: Annotated[
        str | None, typer.Option("--device", help="Plan for this GPU, as H200 or RTX 4090, or for cpu.")
    ] = None,
    vram: Annotated[
        str | None, typer.Option("--vram", metavar="SIZE", help="Memory of a GPU, as 32GB or 31.5GiB.")
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", min=1, max=1024, help="How many, alike. Without: those here, or 1."),
    ] = None,
    sample_tokens: Annotated[
        int | None,
        typer.Option("--sample-tokens", min=1, help="Mean length of a sample. Without: as of the recipe."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how a recipe would run on a GPU.

    Memory, speed, what is recomputed, and what else fits.
    """
    from services.cli import environment
    from services.cli.training.plan import run

    run(
        environment.read(),
        recipe,
        device=device,
        vram=vram,
        gpus=gpus,
        sample_tokens=sample_tokens,
        as_json=as_json,
    )


@app.command()
def samples(
    recipe: RecipeName = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many samples.")] = 5,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="PATH", help="Of this file, without a database; as for `explain`."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the model would see, token by token.

    And which tokens it learns. As JSON, packed rows.
    """
    from services.cli import environment
    from services.cli.training.samples import run

    run(environment.read(), recipe, most=limit, file=file, as_json=as_json)


@app.command("lr-find")
def lr_find(
    recipe: RecipeName = None,
    lowest: Annotated[float, typer.Option("--from", help="The rate to begin with.")] = 1e-6,
    highest: Annotated[float, typer.Option("--to", help="The rate to end with.")] = 1e-1,
    steps: Annotated[int, typer.Option("--steps", min=10, max=1000, help="Optimizer steps.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Find a learning rate: train some steps as it rises.

    Says where the loss falls fastest and where it diverges.
    """
    from services.cli import environment
    from services.cli.training.lr_find import run

    run(environment.read(), recipe, lowest=lowest, highest=highest, steps=steps, as_json=as_json)


@recipes.command("list")
def recipe_list(as_json: AsJson = False) -> None:
    """List the recipes.

    Base model, method, what each is for, and which one RECIPE names.
    """
    from services.cli import environment
    from services.cli.training.recipe import run_list

    run_list(environment.read(), as_json=as_json)


@recipes.command("show")
def recipe_show(name: RecipeName = None, as_json: AsJson = False) -> None:
    """Print every field of a recipe as a round would have it.

    And who says so: the recipe, the environment or the default.
    """
    from services.cli import environment
    from services.cli.training.recipe import run_show

    run_show(environment.read(), name, as_json=as_json)


@recipes.command("check")
def recipe_check(name: RecipeName = None, as_json: AsJson = False) -> None:
    """Check a recipe against its base model.

    Against its architecture and tokenizer, without fetching weights.
    """
    from services.cli import environment
    from services.cli.training.recipe import run_check

    if not run_check(environment.read(), name, as_json=as_json):
        raise typer.Exit(1)
