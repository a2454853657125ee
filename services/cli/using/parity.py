"""`ratchet parity`: does an adapter answer alike on every base, merged and served? Measured and kept."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.cli.asking import connection, modelprocess
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.cli.using import serve
from services.core.db import as_json as json_column
from services.core.errors import ConfigurationError, DatabaseUnavailableError, RatchetError, StackError
from services.core.models import Json
from services.serving import adapters, fits
from services.serving.names import Name
from services.trainer import subjects
from services.trainer.parity import record
from services.trainer.parity.record import Leg, Parity
from services.trainer.subjects import Subject

CHILD = "services.trainer.parity"
CANARY = Path(record.__file__).parents[1] / "canary.json"
START_SECONDS, ANSWER_SECONDS = 600.0, 600.0
WORDS = {
    "trained": "as it was trained",
    "full": "on the full base",
    "merged": "merged",
    "served": "served",
}


@dataclass(frozen=True)
class Texts:
    """What every way is asked."""

    prompts: list[str]
    texts: list[str]
    note: str | None  # what is missing, and why


def run(
    environment: Environment, name: str, *, served: str | None, tokens: int, held_out: int, as_json: bool
) -> bool:
    """Measure an adapter's parity, keep it beside the adapter and in the ledger; whether all answers agree.

    Of a team each role's is, one after another.

    name: as `subjects.resolve` takes it. served: the address of a running server; without one a server of
    its own is started. Raises ConfigurationError for what is no published adapter, StackError when a
    process with a model or a server fails.
    """
    subject = subjects.resolve(name, environment.settings)
    if subject.kind not in ("adapter", "team") or subject.folder is None or subject.manifest is None:
        raise ConfigurationError(
            f"{name} is {subject.kind}: parity is measured of an adapter that was published"
        )
    roles = [profile.role for profile in subject.profiles] if subject.kind == "team" else []
    found = [
        _measured(environment, each, tokens=tokens, held_out=held_out, url=served)
        for each in [subjects.of_role(subject, role) for role in roles] or [subject]
    ]
    if as_json:
        told = [_as_json(each) for each in found]
        print(json.dumps({"roles": dict(zip(roles, told, strict=True))} if roles else told[0]))
    else:
        for each in found:
            _show(environment, each)
    return all(each.parity.exact for each in found)


@dataclass(frozen=True)
class Measured:
    """One adapter's parity, and what a reader should know of it."""

    subject: Subject
    parity: Parity
    in_ledger: bool
    note: str | None


def _measured(
    environment: Environment, subject: Subject, *, tokens: int, held_out: int, url: str | None
) -> Measured:
    asked = _texts(environment, subject, held_out)
    answers = _served(environment, subject, asked.prompts, tokens, url)
    sent = {
        "folder": str(subject.release), "role": subject.role, "prompts": asked.prompts, "texts": asked.texts,
        "tokens": tokens, "served": answers,
    }  # fmt: skip
    parity = record.from_json(modelprocess.ask(environment, CHILD, sent))
    return Measured(subject, parity, _keep(environment, subject, parity), asked.note)


def _as_json(found: Measured) -> Json:
    assert found.subject.release is not None
    track = found.subject.release.parent.name
    return {"track": track, **found.parity.as_json(), "in_ledger": found.in_ledger}


def _show(environment: Environment, found: Measured) -> None:
    console, parity = Console(), found.parity
    judged = f"{inert(parity.adapter)}, beside itself on the {parity.base} base that it was judged on:"
    console.print(Text(judged))
    console.print(table(parity))
    notes = [
        found.note,
        None if found.in_ledger else "The ledger does not have it, or not yet of every role.",
    ]
    console.print(Text("\n".join(filter(None, [*notes, conclusion(environment, found.subject, parity)]))))


def table(parity: Parity) -> Table:
    """A row for each way, beside the one in which the adapter was judged."""
    made = Table(box=None, header_style="")
    made.add_column("")
    for column in ("same answers", "exact match", "equal tokens", "max |Δ log p|", "Δ bits/byte"):
        made.add_column(column, justify="right")
    for leg in parity.legs:
        made.add_row(*_cells(leg, parity))
    return made


def conclusion(environment: Environment, subject: Subject, parity: Parity) -> str:
    """What may be said of it, and whether vLLM takes it."""
    assert subject.folder is not None
    said = [
        "All ways give the same greedy answers."
        if parity.exact
        else "The ways differ as the table says: what is served is not to the last token what was judged."
    ]
    config = json.loads((subject.folder / adapters.CONFIG).read_text(encoding="utf-8"))
    complaint = fits.complaint(config, environment.settings.serve_max_lora_rank)
    said.append("vLLM takes it." if complaint is None else f"vLLM would not take it: {complaint}.")
    return "\n".join(said)


def _cells(leg: Leg, parity: Parity) -> tuple[str, ...]:
    way = WORDS.get(leg.way, leg.way)
    stored = {"full": f" ({parity.full})", "merged": f" (stored as {parity.merged})"}.get(leg.way, "")
    equal = f"{parity.tokens}" if leg.first_difference is None else f"{leg.first_difference}"
    gap = "" if leg.max_log_prob_difference is None else f"{leg.max_log_prob_difference:.4f}"
    bits = "" if leg.bits_per_byte_difference is None else f"{leg.bits_per_byte_difference:+.5f}"
    return f"{way}{stored}", f"{leg.same}/{leg.prompts}", f"{100 * leg.exact_match:.0f} %", equal, gap, bits


def _texts(environment: Environment, subject: Subject, most: int) -> Texts:
    """The canary's prompts and texts, and what the adapter's round held out: a prompt is its first half."""
    assert subject.release is not None
    fixed = json.loads(CANARY.read_text(encoding="utf-8"))
    found: list[str] = []
    note = None
    try:
        with connection.opened(environment, "ratchet parity") as database, database.transaction() as tx:
            key = {"track": subject.release.parent.name, "directory": subject.release.name}
            found = [row.text for row in tx.all("round_held_out_texts", **key, most=most)]
    except (DatabaseUnavailableError, ConfigurationError) as exc:
        note = f"Without held-out code, on the canary's texts alone: {exc}."
    halves = ["".join(lines[: len(lines) // 2]) for lines in (text.splitlines(True) for text in found)]
    return Texts(
        [*fixed["prompts"], *(half[-2000:] for half in halves if half.strip())],
        [*fixed["texts"], *found],
        note,
    )


def _served(
    environment: Environment, subject: Subject, prompts: Sequence[str], tokens: int, url: str | None
) -> list[str]:
    """A server's greedy answers: of the one at that address, or of one that is started for it."""
    assert subject.release is not None
    model = Name(subject.role, subject.release.name).of(subject.release.parent.name)
    if url is not None:
        return ask(url, model, prompts, tokens)
    recipe = subject.recipe.model_copy(update={"revision": subject.revision})
    with serve.model_process(environment, recipe) as (child, backend):
        try:
            loaded = httpx.post(
                f"{backend}/v1/load_lora_adapter",
                json={"lora_name": model, "lora_path": str(subject.folder)},
                timeout=START_SECONDS,
                trust_env=False,
            )
        except httpx.HTTPError as exc:
            status = child.poll()
            ended = (
                "does not answer" if status is None else f"ended with status {status}: its message is above"
            )
            raise StackError(f"{serve.CHILD} {ended} ({exc})") from exc
        if not loaded.is_success:
            raise StackError(f"the server does not load {model}: {inert(loaded.text[:500])}")
        return ask(backend, model, prompts, tokens)


def ask(url: str, model: str, prompts: Sequence[str], tokens: int) -> list[str]:
    """Raises StackError when the server fails, or answers as another model."""
    answers = []
    for prompt in prompts:
        body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
        address = f"{url.rstrip('/').removesuffix('/v1')}/v1/completions"
        try:
            found = httpx.post(address, json=body, timeout=ANSWER_SECONDS, trust_env=False)
            answer: Any = found.json()
            if not found.is_success:
                raise StackError(f"{url} does not answer as {model}: {inert(found.text[:500])}")
            if answer["model"] != model:
                raise StackError(f"{url} answers as {inert(str(answer['model']))}, expected {model}")
            answers.append(str(answer["choices"][0]["text"]))
        except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as exc:
            raise StackError(f"{url} does not answer: {exc}") from exc
    return answers


def _keep(environment: Environment, subject: Subject, parity: Parity) -> bool:
    """Beside the release, for servers, and in its row once all of it was measured; whether it is there."""
    folder = subject.release
    assert folder is not None
    record.write(folder.parent, subject.released_as, parity)
    whole = record.of_release(folder.parent, folder.name, adapters.roles(folder.parent, folder.name))
    if whole is None:
        return False
    try:
        with connection.opened(environment, "ratchet parity") as database, database.transaction() as tx:
            row: Json = {"track": folder.parent.name, "directory": folder.name}
            return tx.one("record_parity", **row, parity=json_column(whole.as_json())) is not None
    except (DatabaseUnavailableError, ConfigurationError, RatchetError):
        return False
