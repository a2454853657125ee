"""Bring code in, and see what became of it."""

from typing import Annotated

import typer

from services.cli.commands.options import AsJson, Source

app = typer.Typer(rich_markup_mode=None)


@app.command()
def add(
    what: Annotated[str, typer.Argument(metavar="PATH|URL", help="A folder, an archive, or an https URL.")],
    name: Annotated[
        str | None,
        typer.Option("--name", help="What to call it. Without: as it is called."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", help="Take only this pattern, as in .gitignore. Repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="Leave out this pattern. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put a repository into the ingest folder.

    Copied from a path, or cloned over https.
    """
    from services.cli import environment
    from services.cli.corpus.add import run

    run(environment.read(), what, name=name, include=include or (), exclude=exclude or (), as_json=as_json)


@app.command()
def ingest(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Repositories, archives, or folders of them; s3://… too."),
    ],
    workers: Annotated[
        int, typer.Option("--workers", min=0, max=16, help="Files judged at once; 0: one a core.")
    ] = 0,
    ray: Annotated[
        str | None, typer.Option("--ray", metavar="ADDRESS", help="Judge on the Ray cluster at this address.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take sources in once, without the daemon.

    Prints what became of their files.
    """
    from services.cli import environment
    from services.cli.corpus.ingest import run

    if not run(environment.read(), paths, workers=workers, ray=ray, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def sources(as_json: AsJson = False) -> None:
    """List what lies in the ingest folder.

    Kind, revision, licence, files kept and refused, and why a source cannot be read if it cannot.
    """
    from services.cli import environment
    from services.cli.corpus.sources import run

    run(environment.read(), as_json=as_json)


@app.command()
def stats(
    source: Source = None,
    language: Annotated[str | None, typer.Option("--language", help="Of this language alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count what is kept and refused, and show how scores lie.

    By source, language and reason.
    """
    from services.cli import environment
    from services.cli.corpus.stats import run

    run(environment.read(), source=source, language=language, as_json=as_json)


@app.command()
def rejections(
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="NAME", help="Refused for this reason, as too_short.")
    ] = None,
    source: Source = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 50,
    after: Annotated[
        int,
        typer.Option("--after", min=0, metavar="ID", help="Go on behind this one, as the last page says."),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """List files that were refused, each with its reason.

    `ratchet explain SOURCE/PATH` says more of one; `ratchet stats` counts them.
    """
    from services.cli import environment
    from services.cli.corpus.rejections import run

    run(environment.read(), reason=reason, source=source, most=limit, after=after, as_json=as_json)


@app.command()
def explain(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="SOURCE/PATH in the ingest folder, ARCHIVE/PATH, or any file."),
    ],
    as_json: AsJson = False,
) -> None:
    """Say why a file has its score, or why it was refused.

    Judged now, and as the database has it.
    """
    from services.cli import environment
    from services.cli.corpus.explain import run

    run(environment.read(), path, as_json=as_json)


@app.command()
def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A .jsonl file, compressed with .gz or .zst; - is standard output."
        ),
    ],
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Rejected files too, with their reasons.")
    ] = False,
    gguf: Annotated[
        str | None,
        typer.Option("--gguf", metavar="ADAPTER", help="Instead: this adapter, merged, as a GGUF file."),
    ] = None,
    quantise: Annotated[
        str, typer.Option("--quantise", metavar="TYPE", help="Of a GGUF file: f32, f16, bf16 or q8_0.")
    ] = "f16",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write every stored file as a line of JSON.

    With its text, score, units and origin.
    """
    from services.cli import environment
    from services.cli.corpus.export import run

    if gguf is not None:
        from pathlib import Path

        from services.cli.using.gguf import run as run_gguf

        run_gguf(environment.read(), gguf, Path(file), quantise=quantise, force=force, as_json=as_json)
        return

    run(environment.read(), file, rejected=rejected, force=force, as_json=as_json)
