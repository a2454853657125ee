"""`ratchet samples`: exactly what the model would see of the code at hand, token by token."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs
from rich.text import Text

from services.cli.asking import connection, modelprocess
from services.cli.asking.judged import judge_now
from services.cli.asking.locate import PathError, locate
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.cli.printing.screen import Terminal
from services.core.db import as_json as jsonb
from services.core.errors import RatchetError
from services.core.models import Json
from services.processor.judging import Judge
from services.processor.rules import Rules
from services.trainer.comparing import questions
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import require_fine_tuning
from services.trainer.samples.source import SampleSource, Unit
from services.trainer.selection.snapshots import sample_source

CHILD = "services.trainer.samples_command"
CONTENTS = 4  # taken for every sample that is asked for: some are too short to make one
LEARNED = ("bold green", "green")  # by turns, so that tokens are told apart
GIVEN = ("bright_black", "white")
OPEN, CLOSE, BETWEEN = "⟦", "⟧", "│"  # around what is learned, between tokens, where there are no colours


def run(environment: Environment, name: str | None, *, most: int, file: str | None, as_json: bool) -> None:
    """Print the first samples that a round of the recipe would train on.

    Raises ConfigurationError for a recipe that cannot be, PathError for a file that is not there,
    RatchetError when there is nothing to make samples of, or the process that makes them fails.
    """
    settings = environment.settings
    recipe = recipe_files.load(name or settings.recipe, settings.recipe_overrides)
    require_fine_tuning(recipe, "`ratchet samples`")
    if file is not None:
        contents = [from_file(environment, file)]
    else:
        contents = from_database(environment, recipe, CONTENTS * most)
    answer = made(environment, recipe, contents, most, packed=as_json)
    if as_json:
        print(json.dumps(answer))
        return
    console = Terminal(sys.stdout)
    places = {content.content_id: _place(content) for content in contents}
    for text in shown(answer, places, recipe, colours=console.is_terminal and not console.no_color):
        console.print(text)


def from_database(environment: Environment, recipe: Recipe, most: int) -> list[SampleSource]:
    """The best candidates of the recipe's track; without a track or candidates, of all contents."""
    with connection.opened(environment, "ratchet samples") as database, database.transaction() as tx:
        rows = tx.all("best_of_backlog", track=recipe.name, most=most)
        if not rows:
            rows = tx.all("best_contents", recipe=jsonb(recipe.model_dump(mode="json")), most=most)
    if not rows:
        raise RatchetError(
            f"no content in the database fits the recipe {recipe.name}: ingest some, or name a --file"
        )
    return [sample_source(row) for row in rows]


def from_file(environment: Environment, asked: str) -> SampleSource:
    """The file as the processor would store it, with what it takes out taken out."""
    rules = Rules.of(environment.settings)
    judge = Judge(rules.benchmarks, decontaminate=rules.decontaminate)
    try:
        place = locate(asked, environment.settings.ingest_dir, Path.cwd())
        verdict = judge_now(place, rules, judge)
    finally:
        judge.close()
    if verdict is None:
        raise PathError(f"{inert(asked)}: there is no such file")
    if verdict.draft is None:
        why = f"{verdict.refused.reason.value}: {verdict.refused.detail}" if verdict.refused else "no code"
        raise RatchetError(f"{inert(asked)} would not be trained on ({inert(why)})")
    draft = verdict.draft
    units = tuple(Unit(*structs.astuple(unit)[: len(Unit._fields)]) for unit in verdict.units)
    return SampleSource(
        1, draft.sha256, draft.language, draft.text, draft.score.value, units, place.name or "", place.path
    )


def made(
    environment: Environment, recipe: Recipe, contents: Sequence[SampleSource], most: int, *, packed: bool
) -> Json:
    """What the process with the tokenizer makes of them. Raises as `modelprocess.ask` does."""
    sent = {
        "recipe": recipe.model_dump(mode="json"),
        "contents": questions.as_json(contents),
        "most": most,
        "packed": packed,
        "round_number": 1,
    }
    return modelprocess.ask(environment, CHILD, sent)


def shown(answer: Json, places: Mapping[int, str], recipe: Recipe, *, colours: bool) -> Iterator[Text]:
    """A heading and the tokens of every sample, then what the marks mean."""
    samples = answer["samples"]
    for number, sample in enumerate(samples, 1):
        where = places.get(sample["content_id"], "")
        yield Text(
            f"{number}/{len(samples)}  {sample['kind']}  {where}  {sample['length']:,} tokens,"
            f" {sample['learned']:,} learned", style="bold" if colours else "",
        )  # fmt: skip
        yield _coloured(sample["tokens"]) if colours else Text(_marked(sample["tokens"]))
        yield Text()
    marks = "green is learned" if colours else f"{OPEN}…{CLOSE} is learned, {BETWEEN} parts tokens"
    yield Text(
        f"{len(samples)} of {answer['made']} samples of {answer['contents']} contents, recipe {recipe.name},"
        f" at most {recipe.max_length:,} tokens each; {marks}, ↵ ends a line, ⇥ is a tab"
    )
    if not samples:
        yield Text("Too short: nothing is left to learn beside what is given.")


def _coloured(tokens: Sequence[Sequence[Any]]) -> Text:
    text = Text()
    for number, (part, _, is_learned) in enumerate(tokens):
        text.append(visible(part), style=(LEARNED if is_learned else GIVEN)[number % 2])
    return text


def _marked(tokens: Sequence[Sequence[Any]]) -> str:
    parts = []
    was_learned = False
    for number, (part, _, is_learned) in enumerate(tokens):
        if is_learned != was_learned:
            parts.append(OPEN if is_learned else CLOSE)
        elif number:
            parts.append(BETWEEN)
        parts.append(visible(part))
        was_learned = is_learned
    return "".join(parts) + (CLOSE if was_learned else "")


def visible(text: str) -> str:
    """The text with its line ends and tabs to be seen, and nothing in it that moves or hides."""
    lines = text.split("\n")
    return "↵\n".join("⇥".join(map(inert, line.split("\t"))) for line in lines)


def _place(content: SampleSource) -> str:
    return inert("/".join(part for part in (content.repository, content.path) if part))
