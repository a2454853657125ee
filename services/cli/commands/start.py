"""Start here: run everything on this machine, and see how it is."""

from typing import Annotated

import typer

from services.cli.commands import complete
from services.cli.commands.options import AsJson

app = typer.Typer(rich_markup_mode=None)


@app.command()
def doctor(
    webhooks: Annotated[
        bool, typer.Option("--webhooks", help="Also open a connection to every webhook's address.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check this machine before anything starts, with cures.

    Looks at the settings, processors, memory, disks, ports, GPU and PyTorch, the sandbox, the database and
    its logins, the base model, Docker. Changes nothing. Exit status 1 when something would stop Ratchet.
    """
    from services.cli.doctor import command

    if not command.run(webhooks=webhooks, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def up(
    until_round: Annotated[
        bool, typer.Option("--until-round", help="Stop everything after the first finished round.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start everything here, train, show how it goes.

    PostgreSQL, the processor, the trainer, the dashboard and the sandbox run until Ctrl-C. An empty ingest
    folder is filled with demonstration code.
    """
    from services.cli import environment
    from services.cli.stack.up import run

    raise typer.Exit(run(environment.read(), until_round=until_round, as_json=as_json))


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop what `ratchet up` started.

    Also whatever a killed one left behind. What was learned stays; the next `ratchet up` goes on from there.
    """
    from services.cli import environment
    from services.cli.stack.down import run

    run(environment.read(), as_json=as_json)


@app.command()
def status(
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on showing it, every second, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what runs, came in, was trained, and is best.

    With --watch it stays in place on a terminal; on a pipe there is a line for each thing that changes, and
    with --json an object a line.
    """
    from services.cli import environment
    from services.cli.operating import status as state

    if watch:
        state.watch(environment.read(), as_json=as_json)
    else:
        state.run(environment.read(), as_json=as_json)


@app.command()
def logs(
    services: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SERVICE",
            help="Of processor, trainer, metrics, sandbox, postgres, up. Without: all.",
            autocompletion=complete.services,
        ),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more is written.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print and follow the logs of `ratchet up`.

    The last lines of each part and, with --follow, what comes after them. With --json an object a line: the
    service, and the line or, where logs are JSON, what it says.
    """
    from services.cli import environment
    from services.cli.operating.logs import run

    run(environment.read(), services or (), lines=lines, follow=follow, as_json=as_json)
