"""What the lines of a receipt say, as JSON: a header, sources, contents or tasks, solutions, an end."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from services.core.models import ContentRole, Json

NAME = "receipt.jsonl"
FORMAT: Literal[1] = 1
LEARNED = (ContentRole.TRAIN, ContentRole.REPLAY)  # the optimizer saw these; by the others it was judged
ROLES = tuple(ContentRole)  # the order of the contents, as the snapshot's hash takes them
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]  # SHA-256
Adapter = Annotated[str, StringConstraints(pattern=r"^round-\d+$")]  # a folder below its track's
Track = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]  # as a recipe's name
Count = Annotated[int, Field(ge=0)]
Span = tuple[Count, Count]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def encoded(self) -> bytes:
        """The line as it stands in the file, with its end; what is not known is left out."""
        return self.model_dump_json(exclude_none=True, ensure_ascii=True).encode() + b"\n"


class Parent(_Line):
    """The champion that the round continued from. Its digests chain this receipt to its own."""

    adapter: Adapter  # beside this one
    manifest: Digest  # of its manifest.json, which has the digests of all its other files
    receipt: Digest | None = None  # None: it was published before there were receipts


class Header(_Line):
    """What was trained, from what and by which recipe."""

    kind: Literal["header"] = "header"
    format: Literal[1] = FORMAT
    track: Track
    round: int
    adapter: Adapter
    base_model: str
    base_revision: str | None = None
    parent: Parent | None = None  # None: the base model
    snapshot: Digest
    recipe: Digest  # of the recipe as JSON with its keys in order, without white space
    counts: dict[ContentRole, Count]  # contents, or tasks
    exposure: Literal["counted", "planned"]  # planned: how many processes shared the first steps is not known
    steps: Count  # behind the weights that were published; of reinforcement, iterations
    tokens: Count  # in those steps, a token as often as it was in one
    created_at: str


class Source(_Line):
    """A repository as it was when the round was opened."""

    kind: Literal["source"] = "source"
    name: str
    type: str | None = None  # git, directory, archive, …
    commit: str | None = None  # that was checked out
    licence: str | None = None  # SPDX expression


class Content(_Line):
    """One text: where it lay when the round was opened, and how often its parts were trained on."""

    kind: Literal["content"] = "content"
    role: ContentRole
    sha256: Digest  # of the text in UTF-8, as it was stored
    language: str
    bytes: Count
    lines: Count
    score: Count
    licence: str | None = None  # of its own header
    files: tuple[tuple[str, str] | tuple[str, str, str], ...] = ()  # source, path, the commit that changed it
    seen: Count | None = None  # times that a sample of it was in a step; None: it was judged by
    samples: Count | None = None  # made of it
    tokens: Count | None = None  # in those steps
    spans: tuple[Span, ...] | None = None  # first and last of the lines that were in a step
    planted: Count | None = None  # a fake secret stood before this line, in one of its own; None: none did
    judged: tuple[Span, ...] | None = None  # bytes that count where it was judged by; None: all

    @property
    def is_learned(self) -> bool:
        return self.role in LEARNED


class Task(_Line):
    """A task of a round of reinforcement, and what came of practising it."""

    kind: Literal["task"] = "task"
    role: ContentRole
    sha256: Digest  # of all of it: prompt, solution, test, …
    task_set: str
    name: str
    episodes: Count | None = None  # behind the weights that were published; None: it was judged by
    solved: Count | None = None  # of them
    tokens: Count | None = None  # written in them, by all agents

    @property
    def is_learned(self) -> bool:
        return self.role in LEARNED


class Solution(_Line):
    """A program of a reinforcement round that passed its task's tests, and how often it was trained on."""

    kind: Literal["solution"] = "solution"
    task_set: str
    task: str  # its name in the set
    task_sha256: Digest  # of all of the task
    sha256: Digest  # of the program
    seen: Count
    samples: Count
    tokens: Count


class Added(_Line):
    """What was trained on that is no content of the round."""

    kind: Literal["added"] = "added"
    seen: Count
    samples: Count
    tokens: Count


class End(_Line):
    """The last line: how many are before it, and the root of the Merkle tree over them."""

    kind: Literal["end"] = "end"
    lines: Count
    root: Digest


Line = Header | Source | Content | Task | Solution | Added | End
_LINE: TypeAdapter[Line] = TypeAdapter(
    Annotated[Line, Field(discriminator="kind")],
    config=ConfigDict(cache_strings="keys"),  # what lines hold hardly ever occurs twice
)


def decode(line: bytes) -> Line:
    """Raises pydantic's ValidationError, a ValueError, for anything else than `encoded` makes."""
    return _LINE.validate_json(line)


def recipe_digest(recipe: Json | None) -> str:
    """As the header has it."""
    text = json.dumps(recipe, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
