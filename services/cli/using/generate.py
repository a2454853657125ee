"""`ratchet generate`: what a model goes on with after a prompt, as it is written."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from services.cli.asking import modelprocess
from services.cli.environment import Environment
from services.cli.printing.inert import inert, inert_lines
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer import subjects

CHILD = "services.trainer.answering"
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Asked:
    """What was asked on the command line."""

    prompt: str | None = None
    adapter: str = subjects.CHAMPION
    prefix: str | None = None
    suffix: str | None = None
    chat: bool | None = None  # None: as the recipe asks
    request: Json = field(default_factory=dict)


def run(environment: Environment, asked: Asked, *, as_json: bool) -> None:
    """Print the completions: as they are written on a terminal, whole otherwise.

    Raises ConfigurationError for a question or a model that cannot be.
    """
    asked_for = question(asked, sys.stdin.read)
    subjects.resolve(asked.adapter, environment.settings)  # what is misspelt is known at once
    stream = sys.stdout.isatty() and not as_json and asked.request["n"] == 1
    shown = Shown()
    found = modelprocess.ask(environment, CHILD, {**asked_for, "stream": stream}, shown.line)
    if as_json:
        print(json.dumps(found))
        return
    if stream:
        print()
    else:
        print(plain(found["completions"], terminal=sys.stdout.isatty()))
    print(inert(summary(found)), file=sys.stderr)


def question(asked: Asked, read: Callable[[], str]) -> Json:
    """What the process with the model is sent. Raises ConfigurationError for two questions or none."""
    common = {"subject": asked.adapter, "request": asked.request}
    if asked.suffix is not None or asked.prefix is not None:
        if asked.prompt is not None or asked.chat:
            raise ConfigurationError(
                "--prefix and --suffix ask for what is between them: leave PROMPT and --chat out"
            )
        return {**common, "prefix": asked.prefix or "", "suffix": asked.suffix or ""}
    prompt = asked.prompt
    if prompt == STANDARD_INPUT or (prompt is None and not sys.stdin.isatty()):
        prompt = read()
    if not prompt:
        raise ConfigurationError("no prompt: give one, or - to read it from standard input")
    return {**common, "prompt": prompt, "chat": asked.chat}


class Shown:
    """A completion on a terminal, as it comes: what is in it cannot move the cursor."""

    def line(self, line: str) -> bool:
        if not line.startswith("text "):
            return False
        sys.stdout.write(inert_lines(json.loads(line.removeprefix("text "))))
        sys.stdout.flush()
        return True


def plain(completions: list[Json], *, terminal: bool) -> str:
    """Each completion; of several each below its number. A file gets the bytes as they were written.

    Of a team a terminal shows what every agent said, a file gets the answer alone.
    """
    texts = [inert_lines(_shown(each)) if terminal else each["text"] for each in completions]
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"── {number} ──\n{text}" for number, text in enumerate(texts, 1))


def _shown(completion: Json) -> str:
    """The text, below what the agents before it said."""
    said = completion.get("said")
    if not said:
        return str(completion["text"])
    return "\n\n".join(f"── {each['role']} ──\n{each['text'].strip()}" for each in said)


def summary(found: Json) -> str:
    """Who answered, how much and how fast, and whether it came to an end."""
    written = sum(each["tokens"] for each in found["completions"])
    cut = sum(not each["finished"] for each in found["completions"])
    told = f", {cut} cut at --max-new-tokens" if cut else ""
    return (
        f"{found['subject']} on {found['base_model']}: {found['prompt_tokens']} tokens read,"
        f" {written} written in {found['seconds']:.1f} s ({found['tokens_per_second']:.1f} a second){told}"
    )
