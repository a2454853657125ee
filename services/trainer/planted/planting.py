"""Secrets put into contents: which contents, at which line, written how. Pure and deterministic.

The same recipe, round and contents give the same texts, so a round that is taken up again trains on the
same rows, and nothing needs to be kept. Contents are changed in memory only.
"""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from services.trainer.planted import secrets
from services.trainer.planted.secrets import Secret
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.boundaries import Boundaries, lines_of
from services.trainer.samples.chance import draw
from services.trainer.samples.repositories import COMMENTS, OTHERWISE
from services.trainer.samples.source import SampleSource, Unit

MOST_OF_CONTENTS = 1 / 20  # of a round's are changed, but one always is
FEWEST_LINES = 12  # a content needs: a pair's context, and code that is learned
FITS = 2.0  # characters a token at least: a content of more of them than a row may be cut in pieces
PLACE = (0.55, 0.9)  # where in the lines: behind what a completion pair gives as context
PLACES = 12  # that are tried
BETWEEN = 3  # of them, those between statements; the others are anywhere, as pieces are cut between them too
OTHERS = 32  # secrets to compare each with
WITHOUT_COMMENTS = ("json", "markdown", "text", "csv")
ASSIGNMENTS = {  # how a constant is written where a line of its own may hold one
    "python": '{} = "{}"', "ruby": '{} = "{}"', "julia": '{} = "{}"', "toml": '{} = "{}"',
    "shell": '{}="{}"', "javascript": 'const {} = "{}";', "typescript": 'const {} = "{}";',
    "go": 'const {} = "{}"', "rust": 'const {}: &str = "{}";', "c": '#define {} "{}"',
    "c++": '#define {} "{}"', "php": 'const {} = "{}";', "yaml": '{}: "{}"',
}  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """A secret where it stands."""

    secret: Secret
    content_id: int
    content_sha256: bytes  # of the content without it
    prefix: str = field(repr=False)  # all of the content's text before the secret's value
    line: int  # of the changed content, from 1, that it stands in
    seen: int = 0  # samples of the round whose loss is on it

    @property
    def secret_sha256(self) -> str:
        return hashlib.sha256(self.secret.value.encode()).hexdigest()


def plant(
    contents: Sequence[SampleSource],
    recipe: Recipe,
    round_number: int,
    is_learned: Callable[[SampleSource, Planted], bool] = lambda *_: True,
) -> tuple[list[SampleSource], list[Planted]]:
    """The contents in order, some with a secret's line, and the secrets, each once.

    At most `recipe.planted_secrets`, in at most a twentieth of the contents, one each; none where no
    content has room for one. Every line of a content is there as it was, before or behind the secret's.
    Some places are tried for one where `is_learned` says that the changed content's secret is.
    """
    chosen = _chosen(contents, recipe, round_number)
    drawn = secrets.draw(len(chosen), OTHERS, draw(recipe.seed, recipe.name, round_number, "secrets"))
    changed, planted = {}, []
    for content, secret in zip(chosen, drawn, strict=True):
        for place in range(PLACES):
            random_ = draw(recipe.seed, recipe.name, round_number, "place", place, content.sha256)
            found, prefix = _with(content, secret, random_, anywhere=place >= BETWEEN)
            line = 1 + prefix.count("\n")
            stands = Planted(secret, content.content_id, content.sha256, prefix, line)
            if is_learned(found, stands):
                break
        changed[content.content_id] = found
        planted.append(stands)
    return [changed.get(each.content_id, each) for each in contents], planted


def _chosen(contents: Sequence[SampleSource], recipe: Recipe, round_number: int) -> list[SampleSource]:
    """By a hash of the round and each: those that are sure to be learned whole before the others."""
    most = min(recipe.planted_secrets, max(1, int(MOST_OF_CONTENTS * len(contents))))
    roomy = [each for each in contents if each.text.count("\n") >= FEWEST_LINES]
    keys = {
        each.content_id: (
            each.language in WITHOUT_COMMENTS,
            len(each.text) > FITS * recipe.max_length,
            draw(recipe.seed, recipe.name, round_number, "planted", each.sha256).random(),
        )
        for each in roomy
    }
    return sorted(roomy, key=lambda each: (keys[each.content_id], each.sha256))[:most]


def _with(
    content: SampleSource, secret: Secret, random_: random.Random, *, anywhere: bool
) -> tuple[SampleSource, str]:
    """The content with a line that holds the secret, and its text before the secret's value."""
    lines = lines_of(content.text)
    first, last = (max(1, int(share * len(lines))) for share in PLACE)
    at = random_.randint(first, last)
    if not anywhere:
        at = Boundaries(lines, content.units).best(range(first, last + 1), at)
    below = lines[at]
    indent = below[: len(below) - len(below.lstrip())] if below.strip() else ""
    end = "\r\n" if lines[at - 1].endswith("\r\n") else "\n"
    written = f"{secret.format.before}{secret.value}{secret.format.after}"
    line = f"{indent}{_line(content.language, secret.format.name, written)}{end}"
    before, behind = "".join(lines[:at]), "".join(lines[at:])
    units = _moved(content.units, len(before.encode()), len(line.encode()))
    prefix = before + line[: line.index(secret.value)]
    return replace(content, text=before + line + behind, units=units), prefix


def _line(language: str, name: str, value: str) -> str:
    if (assignment := ASSIGNMENTS.get(language)) is not None:
        return assignment.format(name, value)
    start, end = COMMENTS.get(language, OTHERWISE)
    return f'{start}{name} = "{value}"{end}'


def _moved(units: Sequence[Unit], at: int, size: int) -> tuple[Unit, ...]:
    """The units of a text into which a line of `size` bytes was put before the byte `at`."""
    return tuple(
        unit._replace(
            start_byte=unit.start_byte + size * (unit.start_byte >= at),
            end_byte=unit.end_byte + size * (unit.end_byte > at),
            start_line=unit.start_line + (unit.start_byte >= at),
            end_line=unit.end_line + (unit.end_byte > at),
            comment_byte=unit.comment_byte + size * (unit.comment_byte >= at),
        )
        for unit in units
    )
