"""`ratchet merge`: an adapter put into its base's full weights, and what that changed."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from services.cli.asking import connection, modelprocess
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError, RatchetError
from services.core.models import Json
from services.trainer import publish, subjects
from services.trainer.comparing import questions
from services.trainer.samples.source import SampleSource
from services.trainer.subjects import Subject

CHILD = "services.trainer.merging"
MOST_CONTENTS = 64  # held-out files it is measured by


def run(
    environment: Environment, adapter: str, output: Path, *, check: bool, force: bool, as_json: bool
) -> None:
    """Write the merged model and print what it is worth beside the adapter.

    Raises ConfigurationError for what cannot be merged or a place that is taken, PublishError when the disk
    is full.
    """
    subject = subjects.resolve(adapter, environment.settings)
    if subject.kind == "team":
        raise subjects.alone(subject, "a model takes")
    check_output(output, force=force)
    contents = held_out(environment, subject) if check else []
    sent = {
        "subject": adapter,
        "output": str(output.absolute()),
        "check": check,
        "contents": questions.as_json(contents[:MOST_CONTENTS]),
    }
    found = modelprocess.ask(environment, CHILD, sent)
    if as_json:
        print(json.dumps(found))
        return
    console = Console()
    console.print(inert(written(found)), markup=False, highlight=False)
    if check:
        console.print(table(found))
        console.print(inert(words(found)), markup=False, highlight=False)


def check_output(output: Path, *, force: bool) -> None:
    """Raises ConfigurationError where something would be lost; --force replaces merged models alone."""
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not force:
        raise ConfigurationError(f"{output} exists: name another folder, or give --force to replace it")
    try:
        was = json.loads((output / publish.MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        was = {}
    if not isinstance(was, dict) or "merged" not in was:
        raise ConfigurationError(
            f"{output} is no merged model: --force replaces nothing else, remove it yourself"
        )


def held_out(environment: Environment, subject: Subject) -> list[SampleSource]:
    """What the adapter's round was judged by; nothing where no database is at hand."""
    try:
        with connection.opened(environment, "ratchet merge") as database, database.transaction() as tx:
            tx.execute("without_hurry")
            return questions.held_out(tx, subject)
    except RatchetError:
        return []


def written(found: Json) -> str:
    untied = " (output layer and embeddings, one weight in the base, are two now)" if found["untied"] else ""
    return (
        f"{found['output']}: {found['bytes'] / 2**20:,.0f} MiB in {found['seconds']:.1f} s,"
        f" {found['peak_bytes'] / 2**20:,.0f} MiB of memory{untied}"
    )


def table(found: Json) -> Table:
    """A row a way of having the adapter: bits per byte, and greedy answers like those of the first."""
    made = Table(box=None, header_style="")
    made.add_column("")
    for name in ("bits per byte", "change", "same answers", "same tokens"):
        made.add_column(name, justify="right")
    first = found["arms"][0]
    for arm in found["arms"]:
        change = 100 * (arm["bits_per_byte"] / first["bits_per_byte"] - 1)
        alike = against(found, arm["name"], first["name"])
        made.add_row(
            arm["name"],
            f"{arm['bits_per_byte']:.4f}",
            "" if alike is None else f"{change:+.2f} %",
            "" if alike is None else f"{alike['same']}/{alike['answers']}",
            "" if alike is None else f"{100 * alike['tokens']:.1f} %",
        )
    return made


def words(found: Json) -> str:
    """By what it was measured, and what the rounding of merged weights did by itself."""
    said = [f"Measured by {found['measured_by']}; changes and answers against the first row."]
    if len(found["arms"]) > 2:
        alike = against(found, found["arms"][-1]["name"], found["arms"][-2]["name"])
        if alike is not None:
            said.append(
                f"Merged against the adapter on the full base: {alike['same']}/{alike['answers']} answers the"
                f" same, {100 * alike['tokens']:.1f} % of the tokens."
            )
    else:
        said.append("The base was not quantised in training, so that quantising cost nothing.")
    return " ".join(said)


def against(found: Json, of: str, other: str) -> Json | None:
    pairs = (each for each in found["agreements"] if (each["of"], each["against"]) == (of, other))
    return next(pairs, None)
