"""Ask what an adapter has learned and who has learned a file; take code back."""

from typing import Annotated

import typer

from services.cli.commands import complete
from services.cli.commands.options import AsJson, Reason

app = typer.Typer(rich_markup_mode=None)


@app.command()
def receipt(
    adapter: Annotated[
        str,
        typer.Argument(
            metavar="ADAPTER",
            help="TRACK/round-0001, TRACK for its champion, champion for that of RECIPE, or a folder.",
            autocompletion=complete.subjects,
        ),
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check its other files too, and every receipt before this one.")
    ] = False,
    path: Annotated[
        str | None, typer.Option("--path", metavar="GLOB", help="Only what lay in such files, as 'src/*.py'.")
    ] = None,
    prove: Annotated[
        str | None, typer.Option("--prove", metavar="SHA256", help="Print the proof of this content's line.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what an adapter was trained on, and check it.

    That the receipt is written as it was; needs no database.
    """
    from services.cli import environment
    from services.cli.learned.receipt import run

    run(environment.read(), adapter, verify=verify, path=path, prove=prove, as_json=as_json)


@app.command("which-adapters")
def which_adapters(
    what: Annotated[
        str, typer.Argument(metavar="PATH|SHA256|SOURCE", help="A source, a file or folder of it, a content.")
    ],
    as_json: AsJson = False,
) -> None:
    """List the adapters that were trained on a file.

    Or continue from one that was.
    """
    from services.cli import environment
    from services.cli.learned.which_adapters import run

    run(environment.read(), what, as_json=as_json)


@app.command()
def forget(
    what: Annotated[str, typer.Argument(metavar="SOURCE|PATH", help="As SOURCE/folder/ or SOURCE/file.py.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until what is left was trained on.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Erase its texts where other files hold them, too.")
    ] = False,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not measure what can be written out, before and after.")
    ] = False,
    delete_adapters: Annotated[
        bool, typer.Option("--delete-adapters", help="Delete the files of adapters that learned from it.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Let it come in again, by number or path; texts stay erased.")
    ] = False,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Take code back: out of the database and the adapters.

    Its texts go, adapters that learned it serve no more, what is left is trained on.
    """
    from services.cli import environment
    from services.cli.learned.forget import Options, run
    from services.cli.learned.forget import undo as lift

    if undo:
        lift(environment.read(), what, as_json=as_json)
        return
    options = Options(everywhere, dry_run, yes, wait, not no_check, delete_adapters, reason or Options.reason)
    if not run(environment.read(), what, options, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def solutions(
    task_set: Annotated[str | None, typer.Argument(metavar="SET", help="Of this task set alone.")] = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take those of SET back: no round learns from them any more.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count the programs of teams that passed their tests.

    Fine-tuning rounds learn from them where the recipe has a solutions_share.
    """
    from services.cli import environment
    from services.cli.learned import solutions as command

    if withdraw and task_set is None:
        raise typer.BadParameter("name the task set whose solutions are to be withdrawn", param_hint="SET")
    if task_set is not None and withdraw:
        command.withdraw(environment.read(), task_set, as_json=as_json)
    else:
        command.run(environment.read(), task_set, as_json=as_json)


@app.command()
def forgotten(as_json: AsJson = False) -> None:
    """List what was forgotten, how far, by whom.

    And what models gave up of it before and after.
    """
    from services.cli import environment
    from services.cli.learned.forget import list_all

    list_all(environment.read(), as_json=as_json)
