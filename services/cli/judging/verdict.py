"""`ratchet verdict`: is it worth it? Base, retrieval, adapter and both on held-out code, and what to do."""

import json
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.cli.asking import connection, modelprocess
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.models import Json
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.reinforcement import require_fine_tuning
from services.trainer.verdict import evidence
from services.trainer.verdict.answers import NAMES, Arm, Difference, Run
from services.trainer.verdict.evidence import Champion
from services.trainer.verdict.report import Subject, against_base, document, page

CHILD = "services.trainer.verdict"


def run(environment: Environment, name: str | None, *, items: int, as_json: bool) -> None:
    """Print the figures of four arms and a recommendation; keep both below RATCHET_HOME/reports.

    Raises ConfigurationError for a recipe that cannot be or has no champion, RatchetError without held-out
    code, StackError when the process with the model fails.
    """
    settings = environment.settings
    recipe = recipe_files.load(name or settings.recipe, settings.recipe_overrides)
    require_fine_tuning(recipe, "`ratchet verdict`")
    champion = evidence.champion(settings.adapters_dir, recipe)
    with connection.opened(environment, "ratchet verdict") as database, database.transaction() as tx:
        tx.execute("without_hurry")
        found = evidence.read(tx, champion)
    answer = measured(environment, champion, evidence.as_json(found), items)
    subject = Subject(
        recipe=champion.recipe.name,
        adapter=champion.folder.name,
        base_model=champion.recipe.base_model,
        device=answer["device"],
        split=found.split,
        training_seconds=found.training_seconds,
        elsewhere=champion.elsewhere,
    )
    runs = [Run.from_json(fields) for fields in answer["runs"]]
    verdict = document(subject, runs, answer["retrieval"], answer["items"])
    written = keep(verdict, environment.home / "reports" / champion.recipe.name)
    if as_json:
        print(json.dumps({**verdict, "report": str(written)}))
        return
    console = Console()
    console.print(table(verdict))
    console.print(words(verdict))
    console.print(Text(f"report: {inert(str(written))}"))


def measured(environment: Environment, champion: Champion, read: Json, items: int) -> Json:
    """What the process with the model found; its progress is shown while it runs."""
    return modelprocess.ask(environment, CHILD, asked(champion, read, items))


def asked(champion: Champion, read: Json, items: int) -> Json:
    """What the process is sent: the rows, the recipe as of the champion's round, where its files are."""
    recipe = champion.recipe
    revision = recipe.revision or champion.manifest.get("base_revision")
    return {
        **read,
        "recipe": {**recipe.model_dump(mode="json"), "revision": revision},
        "champion": str(champion.folder),
        "items": items,
    }


def keep(verdict: Json, folder: Path) -> Path:
    """Write verdict.json and verdict.html, each at once; the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"verdict.json": json.dumps(verdict, indent=2) + "\n", "verdict.html": page(verdict)}
    for name, text in texts.items():
        unfinished = folder / f".{name}.{os.getpid()}"
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, folder / name)
    return folder / "verdict.html"


def table(verdict: Json) -> Table:
    """A row an arm: quality with what it gains on the base, then time and cost."""
    made = Table(box=None, header_style="")
    made.add_column("")
    for name in ("exact match", "edit similarity", "p50 s", "p90 s", "prompt tokens", "written", "device s"):
        made.add_column(name, justify="right")
    for arm in Arm:
        found = verdict["arms"][arm]
        made.add_row(
            NAMES[arm],
            _quality(found["exact_match"], against_base(verdict, arm, "exact_match")),
            _quality(found["edit_similarity"], against_base(verdict, arm, "edit_similarity")),
            f"{found['latency_p50']:.2f}",
            f"{found['latency_p90']:.2f}",
            f"{found['prompt_tokens']:.0f}",
            f"{found['written_tokens']:.0f}",
            f"{found['device_seconds']:.3f}",
        )
    return made


def words(verdict: Json) -> Text:
    """What was asked, what to do and why."""
    retrieval, spent = verdict["retrieval"], verdict["training_seconds"]
    split = f", split by {verdict['split']}" if verdict["split"] else ""
    asked = f"{verdict['items']} completions of {verdict['files']} held-out files{split}"
    lines = [
        f"{asked}; in brackets the gain on the base, all intervals together with 95 % confidence.",
        f"Retrieval: {retrieval['ms_p50']:.1f} ms in {retrieval['windows']:,} windows of the repository.",
    ]
    if spent is not None:
        a_completion = verdict["training_seconds_per_completion"]
        lines.append(
            f"Training: {spent:,.0f} s, {a_completion:.4f} s a completion over {verdict['amortised_over']:,}."
        )
    made = Text("\n" + "\n".join(lines) + "\n\n")
    action = verdict["recommendation"]["action"]
    made.append(f"{action[0].upper()}{action[1:]}.\n", style="bold")
    made.append("".join(f"{reason}\n" for reason in verdict["recommendation"]["reasons"]))
    return made


def _quality(value: float, gain: Difference | None) -> str:
    if gain is None:
        return f"{100 * value:.1f} %"
    return f"{100 * value:.1f} % ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
