"""Choose the champion: list adapters, and move, reject, pin by hand."""

from typing import Annotated

import typer

from services.cli.commands import complete
from services.cli.commands.options import Adapter, AnyTrack, AsJson, Limit, Reason, Track

app = typer.Typer(rich_markup_mode=None)


@app.command()
def adapters(
    track: AnyTrack = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List published adapters, their gains, the champion.

    Newest first, with the adapter each continues from.
    """
    from services.cli import environment
    from services.cli.champions.adapters import run

    run(environment.read(), track, most=limit, as_json=as_json)


@app.command()
def promote(adapter: Adapter, track: Track = None, reason: Reason = None, as_json: AsJson = False) -> None:
    """Make a published adapter the champion.

    And have `current` point to it.
    """
    from services.cli import environment
    from services.cli.champions import promotions

    promotions.show(promotions.promote(environment.read(), track, adapter, reason), as_json=as_json)


@app.command()
def reject(adapter: Adapter, track: Track = None, reason: Reason = None, as_json: AsJson = False) -> None:
    """Never have this adapter as the champion again.

    If it is, go back to the one before.
    """
    from services.cli import environment
    from services.cli.champions import promotions

    promotions.show(promotions.reject(environment.read(), track, adapter, reason), as_json=as_json)


@app.command()
def rollback(
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="ADAPTER",
            help="An earlier champion, or base for no adapter at all.",
            autocompletion=complete.adapters,
        ),
    ] = None,
    track: Track = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Go back to the champion before this one."""
    from services.cli import environment
    from services.cli.champions import promotions

    promotions.show(promotions.rollback(environment.read(), track, to, reason), as_json=as_json)


@app.command()
def pin(
    adapter: Annotated[
        str | None,
        typer.Argument(
            metavar="ADAPTER", help="Without: the present champion.", autocompletion=complete.adapters
        ),
    ] = None,
    track: Track = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Keep a champion whatever rounds bring.

    Better candidates are published, not promoted.
    """
    from services.cli import environment
    from services.cli.champions import promotions

    promotions.show(promotions.pin(environment.read(), track, adapter, reason), as_json=as_json)


@app.command()
def unpin(track: Track = None, reason: Reason = None, as_json: AsJson = False) -> None:
    """Let rounds move the champion again."""
    from services.cli import environment
    from services.cli.champions import promotions

    promotions.show(promotions.unpin(environment.read(), track, reason), as_json=as_json)
