"""What models are asked: prompts of a file, or code that a round held out. Free of torch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from services.core.db import Transaction
from services.core.errors import ConfigurationError
from services.core.models import ContentRole, Json
from services.trainer.samples.source import SampleSource, Spans, Unit
from services.trainer.selection.snapshots import sample_source
from services.trainer.subjects import Subject
from services.trainer.suites.formats import Task
from services.trainer.tasks import store

NEWEST = 2**31 - 1  # a round's number that none is above
FIELDS = ("name", "prompt", "answer")
MOST_PROMPTS = 10_000


@dataclass(frozen=True)
class Prompt:
    """Something to go on from."""

    name: str  # for a person
    prompt: str
    answer: str | None = None  # what would be right, where that is known

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps([self.prompt, self.answer]).encode()).hexdigest()


def prompts(path: Path) -> list[Prompt]:
    """The prompts of a file: .jsonl with `prompt` and, if known, `answer` and `name`; .txt, one a line.

    Raises ConfigurationError that names the line for a file that is none of these or holds none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc
    read = _of_json if path.suffix == ".jsonl" else _of_text
    found = [read(line, number, path) for number, line in enumerate(lines, 1) if line.strip()]
    if not found or len(found) > MOST_PROMPTS:
        raise ConfigurationError(f"{path} holds {len(found)} prompts: expected 1 to {MOST_PROMPTS:,}")
    names = [each.name for each in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigurationError(f"{path}: {twice[0]!r} is the name of two prompts; give each its own")
    return found


def _of_text(line: str, number: int, _path: Path) -> Prompt:
    return Prompt(f"line {number}", line)


def _of_json(line: str, number: int, path: Path) -> Prompt:
    wanted = 'expected {"prompt": TEXT}, with "answer" and "name" where there are any'
    try:
        fields = json.loads(line)
    except ValueError as exc:
        raise ConfigurationError(f"{path}, line {number}: {exc}; {wanted}") from exc
    if not isinstance(fields, dict) or not isinstance(fields.get("prompt"), str) or not fields["prompt"]:
        raise ConfigurationError(f"{path}, line {number}: no prompt; {wanted}")
    given = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
    found = {name: value for name, value in given.items() if isinstance(value, str)}
    if len(found) < len(given):
        raise ConfigurationError(f"{path}, line {number}: something other than text; {wanted}")
    return Prompt(**{"name": f"line {number}", **found})


def held_out(tx: Transaction, subject: Subject) -> list[SampleSource]:
    """What the subject's round was judged by, and what the newest finished round of its track was where it
    is of none; nothing where the database does not know the track.
    """
    number = int((subject.manifest or {}).get("round", NEWEST))
    rounds = tx.all("verdict_rounds", track=subject.recipe.name, number=number)
    if not rounds or number not in (NEWEST, rounds[-1].number):
        return []
    return [
        replace(sample_source(row), judged=_spans(row.judged), cluster_id=row.cluster_id)
        for row in tx.all("verdict_held_out", round_id=rounds[-1].id)
    ]


def held_out_tasks(tx: Transaction, team: Subject) -> list[Task]:
    """What a team's round was judged by; none where the database does not know the round."""
    number = int((team.manifest or {}).get("round", 0))
    rounds = tx.all("verdict_rounds", track=team.recipe.name, number=number)
    if not rounds or rounds[-1].number != number:
        return []
    return [stored.task for stored in store.read(tx, rounds[-1].id)[ContentRole.HELD_OUT]]


def as_json(contents: Sequence[SampleSource]) -> list[Json]:
    """To be sent to a process with a model; `content_of` reads it there."""
    return [{**asdict(each), "sha256": each.sha256.hex()} for each in contents]


def content_of(fields: Json) -> SampleSource:
    units = tuple(Unit(*unit) for unit in fields["units"])
    judged, sha256 = _spans(fields["judged"]), bytes.fromhex(fields["sha256"])
    return SampleSource(**{**fields, "units": units, "judged": judged, "sha256": sha256})


def _spans(judged: Sequence[Sequence[int]] | None) -> Spans | None:
    return None if judged is None else tuple((start, end) for start, end in judged)
