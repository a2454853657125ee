"""Tasks for reinforcement: convert benchmarks into sets, list them, try their references."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands.options import AsJson

app = typer.Typer(rich_markup_mode=None)
convert = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make a task set of a benchmark: a file of TASKS_DIR."
)
app.add_typer(convert, name="convert")


UNDERSCORES = {
    "token_normalize_func": lambda token: token.replace("_", "-")
}  # --max_samples is --max-samples


class DatasetType(StrEnum):
    regular = "regular"
    hard = "hard"


class Split(StrEnum):
    train = "train"
    validation = "validation"
    test = "test"


class HashSplit(StrEnum):
    train = "train"
    test = "test"


class Library(StrEnum):
    pandas = "pandas"
    polars = "polars"


Most = Annotated[int | None, typer.Option("--max-samples", min=1, help="Tasks at most; the first ones.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Draw them with this seed instead.")]


@app.command()
def tasks(
    what: Annotated[
        str | None, typer.Argument(metavar="SET|check", help="A set's name, or `check`. Without: all sets.")
    ] = None,
    task_set: Annotated[
        str | None, typer.Argument(metavar="SET", help="After `check`: this set alone.")
    ] = None,
    excluded: Annotated[bool, typer.Option("--excluded", help="Of a set: those left out alone.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the task sets, or the tasks of one.

    `check` runs every reference in the sandbox that was not run yet, or failed. Left out are tasks without a
    test, of a benchmark, asked in the test split too, or whose own reference does not pass. Exit status 1
    when a checked set has no task that can be used.
    """
    from services.cli import environment
    from services.cli.tasks.sets import run_check, run_list, run_set

    if what == "check":
        if not run_check(environment.read(), task_set, as_json=as_json):
            raise typer.Exit(1)
    elif task_set is not None:
        raise typer.BadParameter(f"expected one SET, or `ratchet tasks check {task_set}`")
    elif what is not None:
        run_set(environment.read(), what, excluded=excluded, as_json=as_json)
    else:
        run_list(environment.read(), as_json=as_json)


@convert.command(context_settings=UNDERSCORES)
def bigcodebench(
    source: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="FILE|REPO",
            help="JSON, JSON lines or Parquet, also .gz; else a data set of the hub.",
        ),
    ] = "bigcode/bigcodebench",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Without: TASKS_DIR/bigcodebench.SPLIT.jsonl."),
    ] = None,
    split: Annotated[
        HashSplit | None, typer.Option("--split", help="By the hash of task_id. Without: both.")
    ] = None,
    most: Most = None,
    dataset_type: Annotated[
        DatasetType,
        typer.Option("--dataset-type", help="hard: BigCodeBench-Hard, from the hub."),
    ] = DatasetType.regular,
    version: Annotated[
        str | None, typer.Option("--version", help="Of the data set on the hub. Without: the newest.")
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Make a task set of BigCodeBench.

    From a local file, or from the hub, which has versions and no splits: which of train and test a task is
    in, its name's hash says, the same everywhere. HF_TOKEN is used where it is set.
    """
    from services.cli import environment
    from services.cli.tasks.convert import BigCodeBench, run_bigcodebench
    from services.trainer.tasks.conversion import Wanted

    asked = BigCodeBench(source, dataset_type.value, version, output)
    wanted = Wanted(None if split is None else split.value, most, seed)
    run_bigcodebench(environment.read(), asked, wanted, as_json=as_json)


@convert.command(context_settings=UNDERSCORES)
def dataframebench(
    source: Annotated[
        Path | None,
        typer.Option("--input", metavar="WHEEL|FOLDER", help="The package. Without: the installed one."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Without: TASKS_DIR/dataframebench.SPLIT.jsonl."),
    ] = None,
    split: Annotated[
        Split, typer.Option("--split", help="Its own splits; train alone may be trained on.")
    ] = (Split.train),
    most: Most = None,
    library: Annotated[
        Library, typer.Option("--library", help="The library that tasks ask for and references use.")
    ] = Library.pandas,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Make a task set of the dataframebench package.

    Without importing it. BigCodeBench's tasks on tables: 709 to train on, 16 to validate by, 100 to test by
    (CC-BY-4.0).
    """
    from services.cli import environment
    from services.cli.tasks.convert import run_dataframebench
    from services.trainer.tasks.conversion import Wanted

    run_dataframebench(
        environment.read(), source, output, Wanted(split.value, most, seed), library.value, as_json=as_json
    )
