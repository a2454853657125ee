"""Options and arguments that several commands take, each said in the same words."""

from typing import Annotated

import typer

from services.cli.commands import complete

SUBJECT_HELP = "base, champion, TRACK[/round-0001], round-0001, or a folder."

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Track = Annotated[
    str | None,
    typer.Option(
        "--track",
        metavar="NAME",
        help="A track, called as its recipe. Without: the one of RECIPE.",
        autocompletion=complete.tracks,
    ),
]
AnyTrack = Annotated[
    str | None,
    typer.Option("--track", metavar="NAME", help="Of this track alone.", autocompletion=complete.tracks),
]
Adapter = Annotated[
    str,
    typer.Argument(
        metavar="ADAPTER", help="As round-0003, below adapters/<track>.", autocompletion=complete.adapters
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many of the newest.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, for the record.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait for the trainer's answer.")]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="RECIPE",
        help="A name in recipes/, or a YAML file. Without: the one that RECIPE names.",
        autocompletion=complete.recipes,
    ),
]
RecipeName = Annotated[
    str | None,
    typer.Argument(
        metavar="RECIPE",
        help="A name in recipes/, or a YAML file. Without: the one that RECIPE names.",
        autocompletion=complete.recipes,
    ),
]
Source = Annotated[
    str | None,
    typer.Option("--source", help="Of this source alone.", autocompletion=complete.sources),
]
