"""The `ratchet` command. Every command imports what it needs when it runs: `--help` stays instant."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from services.core.errors import RatchetError


class Commands(TyperGroup):
    """Turns an error Ratchet raises on purpose into one line and exit status 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RatchetError as exc:
            if ctx.params.get("debug"):
                raise
            print(f"ratchet: {exc}", file=sys.stderr)
            raise typer.Exit(1) from exc


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Ratchet keeps a code model sharp on your own code.",
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """Ratchet keeps a code model sharp on your own code."""


@app.command()
def up(
    until_round: Annotated[
        bool, typer.Option("--until-round", help="Stop everything after the first finished round.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start everything on this machine, train on what lies in the ingest folder, show progress."""
    from services.cli import environment
    from services.cli.up import run

    raise typer.Exit(run(environment.read(), until_round=until_round, as_json=as_json))


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop what `ratchet up` started, and whatever a killed one left behind."""
    from services.cli import environment
    from services.cli.down import run

    run(environment.read(), as_json=as_json)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say what runs, what came in, what was trained, and which adapter is the best so far."""
    from services.cli import environment
    from services.cli.status import run

    run(environment.read(), as_json=as_json)


@app.command()
def logs(
    service: Annotated[str | None, typer.Argument(help="processor, trainer, metrics, postgres")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more is written.")] = False,
) -> None:
    """Print the end of the logs of a local run."""
    from services.cli import environment
    from services.cli.logs import run

    run(environment.read(), service, lines=lines, follow=follow)


@app.command()
def migrate(as_json: AsJson = False) -> None:
    """Bring the database named by the environment to this code's schema."""
    import json

    from services.cli.migrate import migrate as apply
    from services.core import log
    from services.core.settings import from_environment

    settings = from_environment()
    log.setup("migrate", settings.log_level, settings.secrets())
    applied = apply(settings)
    if as_json:
        print(json.dumps({"applied": applied}))
    else:
        print("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")


if __name__ == "__main__":
    app()
