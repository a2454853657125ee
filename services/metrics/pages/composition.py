"""What a round is made of: contents by role, and each language and source in these roles; or tasks."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.models import ContentRole

DRAWN = 2_000  # contents of a role at most that languages and sources are counted by
SHOWN = 8  # languages and sources; the others are summed
OTHERS, UNKNOWN = "others", "not recorded"
PARTS = {
    ContentRole.TRAIN: "new",
    ContentRole.REPLAY: "replay",
    ContentRole.HELD_OUT: "held out",
    ContentRole.VALIDATION: "validation",
}
OF_TASKS = {
    ContentRole.TRAIN: "practised",
    ContentRole.HELD_OUT: "held out",
    ContentRole.VALIDATION: "validation",
}


@dataclass(frozen=True)
class Segment:
    part: str  # as in PARTS, or in OF_TASKS
    contents: int
    x: float  # percent of the bar's width
    width: float


@dataclass(frozen=True)
class Line:
    """A language or source; `total` and its segments may be estimated."""

    name: str
    total: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Composition:
    roles: Line
    languages: tuple[Line, ...]
    sources: tuple[Line, ...]
    estimated: bool  # counted by an even draw of the contents, not by all


def composition(rows: Sequence[Any]) -> Composition | None:
    """From rows of `page_composition`; None for a round without contents."""
    if not rows:
        return None
    drawn: Counter[str] = Counter()
    for row in rows:
        drawn[row.role] += row.contents
    of_role = {row.role: drawn[row.role] if row.stride == 1 else row.of_role for row in rows}
    weights = {role: of_role[role] / drawn[role] for role in of_role}  # what a drawn content stands for
    whole = {ContentRole(role): float(contents) for role, contents in of_role.items()}
    return Composition(
        roles=_line("", whole, sum(whole.values())),
        languages=_lines((row.language, row.role, row.contents * weights[row.role]) for row in rows),
        sources=_lines((row.source or UNKNOWN, row.role, row.contents * weights[row.role]) for row in rows),
        estimated=any(weight > 1 for weight in weights.values()),
    )


@dataclass(frozen=True)
class Practice:
    """What a team practises and is judged by."""

    roles: Line
    sets: tuple[Line, ...]


def practice(rows: Sequence[Any]) -> Practice | None:
    """From rows of `page_round_tasks`; None for a round without tasks."""
    if not rows:
        return None
    of_role: Counter[ContentRole] = Counter()
    for row in rows:
        of_role[ContentRole(row.role)] += row.tasks
    whole = {role: float(tasks) for role, tasks in of_role.items()}
    return Practice(
        roles=_line("", whole, sum(whole.values()), OF_TASKS),
        sets=_lines(((row.task_set, row.role, row.tasks) for row in rows), OF_TASKS),
    )


def _lines(
    counted: Iterable[tuple[str, str, float]], named: Mapping[ContentRole, str] = PARTS
) -> tuple[Line, ...]:
    """The largest first; bars are as long as their share of the largest."""
    by_name: dict[str, dict[ContentRole, float]] = {}
    for name, role, contents in counted:
        parts = by_name.setdefault(name, {})
        parts[ContentRole(role)] = parts.get(ContentRole(role), 0.0) + contents
    ordered = sorted(by_name.items(), key=lambda each: (-sum(each[1].values()), each[0]))
    shown, others = ordered[:SHOWN], ordered[SHOWN:]
    if others:
        summed: Counter[ContentRole] = Counter()
        for _, parts in others:
            summed.update(parts)
        shown.append((f"{len(others)} {OTHERS}", dict(summed)))
    widest = max(sum(parts.values()) for _, parts in shown)
    return tuple(_line(name, parts, widest, named) for name, parts in shown)


def _line(
    name: str,
    parts: dict[ContentRole, float],
    widest: float,
    named: Mapping[ContentRole, str] = PARTS,
) -> Line:
    at, segments = 0.0, []
    for role, part in named.items():
        if contents := parts.get(role, 0.0):
            width = 100 * contents / widest
            segments.append(Segment(part, round(contents), round(at, 2), round(width, 2)))
            at += width
    return Line(name, round(sum(parts.values())), tuple(segments))
