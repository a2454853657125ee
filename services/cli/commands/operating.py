"""Watch and set up: what happened, what is wrong, the settings, the schema."""

from typing import Annotated

import typer

from services.cli.commands.options import AnyTrack, AsJson

app = typer.Typer(rich_markup_mode=None)
webhooks = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Try the addresses that events are sent to."
)
app.add_typer(webhooks, name="webhook")
config = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show the settings and where they come from; check them.",
)
app.add_typer(config, name="config")


@app.command()
def alerts(as_json: AsJson = False) -> None:
    """Say what needs somebody now, worst first.

    Stalled or failing parts, a full disk, forgetting. Exit status 1 when something is critical.
    """
    from services.cli import environment
    from services.cli.operating.alerts import run

    if not run(environment.read(), as_json=as_json):
        raise typer.Exit(1)


@app.command()
def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more happens.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="As promotion, stall or round.started. Repeatable."),
    ] = None,
    track: AnyTrack = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="30m, 2h, 3d ago, or a date.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many of the newest, without --since.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """List what happened: rounds, promotions, illnesses.

    Oldest first. With --json an object a line, as a webhook sends it.
    """
    from services.cli import environment
    from services.cli.operating.events import run

    run(
        environment.read(),
        follow=follow,
        kinds=kind or (),
        track=track,
        since=since,
        most=limit,
        as_json=as_json,
    )


@webhooks.command("test")
def webhook_test(as_json: AsJson = False) -> None:
    """Send a test event to every address.

    Signed as the others; prints what each answers.
    """
    from services.cli import environment
    from services.cli.operating.webhook import test

    if not test(environment.read(), as_json=as_json):
        raise typer.Exit(1)


@webhooks.command("list")
def webhook_list(as_json: AsJson = False) -> None:
    """Say of every address what it got and what waits.

    And what went wrong last.
    """
    from services.cli import environment
    from services.cli.operating.webhook import show

    show(environment.read(), as_json=as_json)


@webhooks.command("run")
def webhook_run(as_json: AsJson = False) -> None:
    """Send events from a process of its own, until SIGTERM.

    Beside the trainer, which sends them too: so it is told that the trainer has died. With --json one object
    first, that names the addresses.
    """
    from services.cli import environment
    from services.cli.operating.webhook import run

    run(environment.read(), as_json=as_json)


@config.command("show")
def config_show(
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what is not as the program has it by itself.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print every setting, its value and who says so.

    The environment, .env, the defaults of a local run, or the program's own. Secrets are never printed.
    """
    from services.cli.operating.config import show

    show(changed=changed, as_json=as_json)


@config.command("check")
def config_check(as_json: AsJson = False) -> None:
    """Check that every setting is known, and its value possible.

    All that is wrong at once, each with its cure. Exit status 1 when something is.
    """
    from services.cli.operating.config import check

    if not check(as_json=as_json):
        raise typer.Exit(1)


@app.command()
def migrate(as_json: AsJson = False) -> None:
    """Bring the database to this code's schema.

    And give each service a login of its own. `ratchet up` does it by itself.
    """
    import json

    from services.cli.stack.migrate import migrate as apply
    from services.core import log
    from services.core.settings import from_environment

    settings = from_environment()
    log.setup("migrate", settings.log_level, settings.secrets(), settings.log_format)
    applied = apply(settings)
    if as_json:
        print(json.dumps({"applied": applied}))
    else:
        print("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")
