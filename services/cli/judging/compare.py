"""`ratchet compare`: the same questions to several models, their answers side by side, and who wins."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from services.cli.asking import connection, modelprocess
from services.cli.environment import Environment
from services.cli.judging import comparison
from services.cli.judging.comparison_page import page
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError, RatchetError
from services.core.models import Json
from services.trainer import subjects
from services.trainer.comparing import figures, questions
from services.trainer.comparing.questions import Prompt
from services.trainer.samples.source import SampleSource
from services.trainer.subjects import Subject
from services.trainer.suites.formats import Task
from services.trainer.tasks.placed import as_payload

CHILD = "services.trainer.comparing"
COMPLETION = "completion"
BITS_SUFFIX = "-loss"


@dataclass(frozen=True)
class Asked:
    """What was asked on the command line."""

    names: tuple[str, ...]
    prompts: Path | None = None
    suite: str | None = None
    items: int = 20
    max_new_tokens: int = 256
    chat: bool | None = None


def run(
    environment: Environment, asked: Asked, *, html: Path | None, force: bool, shown: int, as_json: bool
) -> None:
    """Print the figures and some answers side by side; with `html`, write everything as a page.

    Raises ConfigurationError for models or questions that cannot be, RatchetError without held-out code.
    """
    check(asked, html, force=force)
    found = [subjects.resolve(name, environment.settings) for name in asked.names]
    prompts = questions.prompts(asked.prompts) if asked.prompts else []
    tasks = held_out_tasks(environment, found, asked)
    contents = [] if tasks else held_out(environment, found, asked)
    sent = question(asked, found, prompts, contents, tasks)
    answer = modelprocess.ask(environment, CHILD, sent)
    about = words(asked, prompts, contents, tasks)
    document = figures.document(about, described(found), answer, answer["items"])
    if html is not None:
        write(html, page(document))
    if as_json:
        print(json.dumps({**document, "report": str(html) if html else None}))
        return
    comparison.show(Console(), document, most=shown)
    if html is not None:
        print(inert(f"page: {html}"))


def check(asked: Asked, html: Path | None, *, force: bool) -> None:
    """Raises ConfigurationError for a question that cannot be."""
    if len(asked.names) < 2 or len(set(asked.names)) < len(asked.names):
        raise ConfigurationError(
            f"compare takes two models or more, each once: {', '.join(asked.names) or 'none'} were named"
        )
    if asked.prompts is not None and asked.suite is not None:
        raise ConfigurationError("--prompts and --suite: one of the two is asked at a time")
    if html is not None and html.exists() and not force:
        raise ConfigurationError(f"{html} exists: give --force to replace it")


def question(
    asked: Asked,
    found: Sequence[Subject],
    prompts: Sequence[Prompt],
    contents: Sequence[SampleSource],
    tasks: Sequence[Task] = (),
) -> Json:
    """What the process with the models is sent. Programs may be as long as the team's recipe lets them be."""
    suites = [] if asked.prompts or tasks else [asked.suite or COMPLETION]
    sections = [subject.recipe.reinforcement for subject in found] if tasks else []
    most = max(asked.max_new_tokens, *(each.max_new_tokens for each in sections if each is not None), 0)
    return {
        "subjects": list(asked.names),
        "suites": suites,
        "prompts": [asdict(each) for each in prompts],
        "contents": questions.as_json(contents),
        "items": asked.items,
        "seed": found[0].recipe.seed,
        "request": {"max_new_tokens": most, "stop": []},
        "chat": asked.chat,
        "tasks": [as_payload(task) for task in tasks],
    }


def held_out_tasks(environment: Environment, found: Sequence[Subject], asked: Asked) -> list[Task]:
    """Of the newest team that was named, the tasks that its round was judged by; none without a team.

    Raises RatchetError without a database, or when it does not know the round.
    """
    teams = [subject for subject in found if subject.kind == "team"]
    if not teams or asked.prompts is not None or asked.suite is not None:
        return []
    with connection.opened(environment, "ratchet compare") as database, database.transaction() as tx:
        tasks = questions.held_out_tasks(tx, teams[-1])
    if not tasks:
        raise RatchetError(
            f"the database has no held-out tasks of {teams[-1].name}: ask with --prompts FILE or --suite NAME"
        )
    return tasks[: asked.items]


def held_out(environment: Environment, found: Sequence[Subject], asked: Asked) -> list[SampleSource]:
    """Code that no round of the models' tracks has trained on, where that is what is asked.

    Raises RatchetError when there is none, or no database.
    """
    if asked.prompts is not None or asked.suite not in (None, COMPLETION):
        return []
    published = [subject for subject in found if subject.manifest is not None]
    of = published[-1] if published else found[0]
    with connection.opened(environment, "ratchet compare") as database, database.transaction() as tx:
        tx.execute("without_hurry")
        contents = questions.held_out(tx, of)
    if not contents:
        raise RatchetError(
            f"the database has no held-out code of the track {of.recipe.name}: let a round run, or ask with"
            " --prompts FILE or --suite NAME"
        )
    return contents[: asked.items]


def words(
    asked: Asked, prompts: Sequence[Prompt], contents: Sequence[SampleSource], tasks: Sequence[Task] = ()
) -> Json:
    """What was asked, for the report."""
    if tasks:
        return {"what": "tasks", "of": "the team's held-out set", "files": None}
    if prompts:
        return {"what": "prompts", "of": str(asked.prompts), "files": len(prompts)}
    if contents:
        return {"what": "completions", "of": "held-out code", "files": len(contents)}
    return {"what": "suite", "of": asked.suite, "files": None}


def described(found: Sequence[Subject]) -> list[Json]:
    return [
        {
            "name": subject.name,
            "kind": subject.kind,
            "base_model": subject.recipe.base_model,
            "folder": None if subject.folder is None else str(subject.folder),
            "quantised": subject.is_quantised,
        }
        for subject in found
    ]


def write(path: Path, text: str) -> None:
    """At once: a page is whole or not there."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8", errors="replace")
        os.replace(unfinished, path)
    except OSError as exc:
        unfinished.unlink(missing_ok=True)
        raise ConfigurationError(f"{path} cannot be written: {exc}") from exc
