"""The `ratchet` command: its sections in the order of `ratchet --help`."""

from typing import Annotated

import typer

from services import __version__
from services.cli.commands import (
    champions,
    corpus,
    judging,
    learned,
    operating,
    start,
    tasks,
    training,
    using,
)
from services.cli.commands.group import HELP_WIDTH, Commands, add_sections

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": HELP_WIDTH, "help_option_names": ["--help", "-h"]},
    help="Ratchet keeps a code model sharp on your own code. New here: `ratchet doctor`, then `ratchet up`.",
    epilog="Exit status: 0 all is well; 1 an error, or the answer is no; 2 the command is not written so.",
)
add_sections(
    app,
    {
        "Start here": start.app,
        "Bring code in, see what became of it": corpus.app,
        "Train": training.app,
        "Bring tasks in to learn from": tasks.app,
        "Judge what came of it": judging.app,
        "Choose the champion": champions.app,
        "Use an adapter": using.app,
        "Ask what was learned, take it back": learned.app,
        "Watch and set up": operating.app,
    },
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"ratchet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ratchet keeps a code model sharp on your own code."""


if __name__ == "__main__":
    app(prog_name="ratchet")
