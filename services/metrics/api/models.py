"""What the API answers, field by field; the OpenAPI document is made from these classes.

Times are ISO 8601 with their zone, sizes bytes, scores 0 to 100, losses nats a token unless said otherwise.
A figure that is no finite number is null.
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from services.core.models import ContentRole, Json, RoundState, Subject
from services.metrics.alerting import Severity
from services.metrics.document import is_figure

Figure = Annotated[float | None, BeforeValidator(lambda value: value if is_figure(value) else None)]


class Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True, extra="ignore")


class Page(Answer):
    """One page of a list; `next`, given as `after`, asks for the following one."""

    next: str | None = Field(description="null: this page is the last")


class Problem(Answer):
    """Why a request was not answered."""

    error: str
    message: str


class Source(Answer):
    id: int
    name: str = Field(description="first path component below the ingest volume")
    kind: str
    commit_id: str | None
    licence: str | None = Field(description="SPDX expression of its licence text")
    problem: str | None = Field(description="why it cannot be read")
    first_seen_at: datetime
    last_scanned_at: datetime | None


class Sources(Page):
    items: list[Source]


class Rejection(Answer):
    id: int
    source: str
    path: str
    language: str | None
    reason: str = Field(description="stable code; `ratchet explain` and docs/reference/filters.md tell them")
    detail: str | None = Field(description="its figures, for a person")
    duplicate_of: str | None = Field(description="SHA-256 of the content that it is nearly the same as")
    seen_at: datetime


class Rejections(Page):
    items: list[Rejection]


class Content(Answer):
    sha256: str
    language: str
    score: int
    bytes: int
    lines: int
    licence: str | None
    live: bool = Field(description="whether a file in the ingest volume holds it")
    created_at: datetime


class Contents(Page):
    items: list[Content]


class Place(Answer):
    source: str
    path: str
    retired_at: datetime | None


class CodeUnit(Answer):
    kind: str
    name: str
    start_line: int
    end_line: int


class Use(Answer):
    track: str
    round: int
    role: ContentRole


class ContentDetail(Content):
    score_reasons: Json = Field(description="reason → points")
    scorer_version: int
    redactions: list[Any] = Field(description="[kind, line] of what was taken out")
    places: list[Place]
    units: list[CodeUnit]
    used: list[Use]


class Round(Answer):
    track: str
    number: int
    state: RoundState
    attempts: int
    opened_at: datetime
    closed_at: datetime | None
    parent: str | None = Field(description="directory of the adapter it continued from")
    adapter: str | None = Field(description="directory of what it published")
    reason: str | None = Field(description="the gate's, for a person")
    improvement: Figure = Field(
        description="share of held-out bits saved, 0.03 is 3 %; of a team, by how much its pass rate rose"
    )
    objective: str | None = Field(
        description="completion_pairs, cpt, or reinforcement: a team that practises"
    )


class TasksOfRound(Answer):
    role: ContentRole
    task_set: str
    tasks: int


class Rounds(Page):
    items: list[Round]


class RoundDetail(Round):
    contents: dict[ContentRole, int]
    tasks: list[TasksOfRound] = Field(description="what a team practises and is judged by; else none")
    solutions: int = Field(description="programs of reinforcement rounds that it trains on beside contents")
    training: Json | None
    verdict: Json | None
    held_out: Json | None
    recipe: Json


class Point(Answer):
    step: int
    kind: str
    metrics: dict[str, Figure]
    roles: dict[str, dict[str, Figure]] = Field(description="of a team: the figures of each of its agents")
    logged_at: datetime


class Losses(Answer):
    track: str
    round: int
    points: list[Point]


class Evaluation(Answer):
    subject: Subject
    suite: str
    version: str
    items: int
    figures: dict[str, Figure]
    seconds: float


class HeldOut(Answer):
    subject: Subject
    files: int
    bytes: int
    tokens: int
    bits_per_byte: Figure


class Evaluations(Answer):
    track: str
    round: int
    held_out: list[HeldOut]
    suites: list[Evaluation]


class Adapter(Answer):
    track: str
    directory: str
    round: int
    parent: str | None
    published_at: datetime
    champion: bool
    rejected: bool
    roles: list[str] | None = Field(
        description="of a team's release, an adapter each; null: it is one adapter"
    )
    improvement: Figure = Field(description="as its round's")


class Adapters(Page):
    items: list[Adapter]


class Promotion(Answer):
    id: int
    track: str
    kind: str
    adapter: str | None = Field(description="null: the base model")
    actor: str = Field(description="gate, canary, forget, or a user's name")
    reason: str
    promoted_at: datetime


class Promotions(Page):
    items: list[Promotion]


class Event(Answer):
    id: int
    kind: str
    track: str | None
    round_number: int | None
    adapter: str | None
    payload: Json
    at: datetime


class Events(Page):
    items: list[Event]


class Alert(Answer):
    kind: str = Field(description="stalled, failing, refusing, disk or forgetting")
    severity: Severity = Field(description="bad: nothing comes of it until somebody acts")
    title: str
    text: str
    cure: str = Field(description="what to do; commands stand in backquotes")
    since: datetime | None = Field(description="null: not known")
    track: str | None
    url: str | None = Field(description="path of the page that shows more")


class Alerts(Answer):
    items: list[Alert]
    stale: bool = Field(description="whether the database could not be read when it should have been")


class State(Answer):
    """The whole state at one instant, as docs/reference/metrics.md tells it."""

    state: Json
    training_metrics: Json
    config: Json
    ingest: Json | None
    tracks: list[Json]
    rounds: list[Json]
    running_round: Json | None
    curve: Json | None
    services: list[Json]
    health: Json
    stale: bool = Field(description="whether the database could not be read when it should have been")
    age_seconds: Figure
    error: str | None = Field(description="why it is stale")
