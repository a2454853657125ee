"""What a round is judged by: which clusters are set aside for it, and which of their bytes count. Pure."""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal

from services.core.models import ContentRole, Json
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import Spans

Kind = Literal["time", "cluster"]
MOST_SET_ASIDE = 0.2  # of all clusters at most, however small the corpus
LATER = 0.2  # of the clusters whose last change is known: that many at most are newer than what is trained on
RELEASED = 0.25  # of what the last round found too new: that much at least is old enough for this one
KNOWN = 0.5  # of the clusters: `split: auto` goes by time when the last change of so many is known
MIN_FORWARD = 5  # contents with later lines below which a round does not go by time: too few to say anything
ANCHOR_SHARE = 0.5  # of the first round's held-out contents, and of held_out_max
SET_ASIDE = (ContentRole.VALIDATION, ContentRole.HELD_OUT)


@dataclass(frozen=True)
class Cluster:
    """The candidates of a round that are near-duplicates of one another."""

    cluster_id: int
    founder: bytes  # the least of their SHA-256
    changed_at: int | None  # their newest change, seconds since 1970; None: not known
    written_at: int | None  # the same of those whose lines' times are known: it can be judged by later ones
    role: ContentRole | None  # what earlier rounds of the track made of it


@dataclass(frozen=True)
class Split:
    """How a round parts what it learns from what it is judged by."""

    kind: Kind
    through: int | None  # seconds since 1970: what changed later is not trained on; None: never was known
    newly: Mapping[int, ContentRole]  # cluster_id → role, for good


@dataclass(frozen=True)
class HeldOut:
    """The held-out set that a round is judged by."""

    kind: Kind
    through: int | None  # nothing that changed after these seconds since 1970 is trained on
    version: str  # SHA-256 over what is judged: equal versions are equal sets
    anchors: int  # contents judged in every round of the track
    later: int  # contents judged by the lines first written after `through`
    whole: int  # other contents, judged with all their lines
    leaked: int  # contents left out: the track has trained on all that was to be judged of them
    waiting: int = 0  # contents that this round was not to train on: their sources had their share of it

    def as_json(self) -> Json:
        return asdict(self)

    @property
    def words(self) -> str:
        """A sentence for a person."""
        anchors = f"{self.anchors} that every round is judged by"
        if self.kind == "time" and self.through is not None:
            day = datetime.fromtimestamp(self.through, UTC).strftime("%Y-%m-%d %H:%M UTC")
            said = f"by time: {self.later} files by the lines first written after {day}, and {anchors}"
        else:
            said = f"drawn at random by cluster: {self.whole} files, and {anchors}"
        if self.leaked:
            said += f"; {self.leaked} left out, since all of their code is trained on elsewhere"
        if self.waiting:
            said += f"; {self.waiting} wait for later rounds: their sources have their share of this one"
        return f"{said} (set {self.version[:12]})"


def split(clusters: Sequence[Cluster], recipe: Recipe, before: int | None, *, has_anchors: bool) -> Split:
    """By time where the recipe and what is known allow it; by cluster otherwise.

    `clusters` are all candidates of the round, with those that are held out already; `before` is the
    `through` of the track's earlier rounds. What a split sets aside is never more than the recipe's shares
    of what there is, but for its minima, for which a fifth of a small corpus may go.
    """
    by_time = None if recipe.split == "cluster" else _by_time(clusters, recipe, before, has_anchors)
    if by_time is not None:
        return by_time
    free = [cluster for cluster in clusters if cluster.role is None]
    return Split("cluster", before, _set_aside(free, clusters, recipe, of=1.0))


def train_through(changes: Collection[int], before: int | None) -> int:
    """The time T of a round: the oldest change after which at most a fifth of the changes come.

    Never less than `before`, the T of the round before. Of the changes after that one at least a quarter,
    the oldest, are not after T: whatever arrives meanwhile, none of them waits for ever.
    """
    ordered = sorted(changes)
    through = ordered[-1 - int(LATER * len(ordered))]
    if before is None:
        return through
    waiting = [change for change in ordered if change > before]
    released = waiting[math.ceil(RELEASED * len(waiting)) - 1] if waiting else before
    return max(before, through, released)


def _by_time(
    clusters: Sequence[Cluster], recipe: Recipe, before: int | None, has_anchors: bool
) -> Split | None:
    """None when too little is known, or too little is new, to be judged by."""
    known = [cluster for cluster in clusters if cluster.changed_at is not None]
    trainable = [c.changed_at for c in known if c.changed_at is not None and c.role not in SET_ASIDE]
    if not trainable or (recipe.split == "auto" and len(known) < KNOWN * len(clusters)):
        return None
    through = train_through(trainable, before)
    later = [
        cluster for cluster in clusters if cluster.written_at is not None and cluster.written_at > through
    ]
    free = [cluster for cluster in later if cluster.role is None]
    newly = _set_aside(free, clusters, recipe, of=LATER)
    enough = MIN_FORWARD if has_anchors else math.ceil(MIN_FORWARD / (1 - ANCHOR_SHARE))
    forward = sum(newly.get(cluster.cluster_id, cluster.role) is ContentRole.HELD_OUT for cluster in later)
    spare = [cluster_id for cluster_id in _ranked(free, recipe) if cluster_id not in newly]
    room = max(0, len(free) // 2 - len(newly))  # the other half is trained on when its time has come
    more = spare[: min(room, max(0, enough - forward))]
    newly |= dict.fromkeys(more, ContentRole.HELD_OUT)
    roles = [newly.get(cluster.cluster_id, cluster.role) for cluster in clusters]
    if forward + len(more) < enough or ContentRole.VALIDATION not in roles:
        return None
    return Split("time", through, newly)


def _set_aside(
    free: Sequence[Cluster], clusters: Sequence[Cluster], recipe: Recipe, *, of: float
) -> dict[int, ContentRole]:
    """The roles of some of these new clusters, which are the share `of` all.

    By the recipe's shares of all, then topped up to the minima while a fifth of all allows.
    """
    ranked = _ranked(free, recipe)
    held = recipe.held_out_share / of
    chosen = {
        cluster_id: ContentRole.HELD_OUT if place < held else ContentRole.VALIDATION
        for cluster_id, place in ranked.items()
        if place < held + recipe.validation_share / of
    }
    most = max(2, int(MOST_SET_ASIDE * len(clusters)))
    minima = {
        ContentRole.HELD_OUT: min(recipe.held_out_min, recipe.held_out_max),
        ContentRole.VALIDATION: min(recipe.validation_min, recipe.held_out_max),
    }
    for role, minimum in minima.items():
        wanted = min(minimum, max(1, most * minimum // sum(minima.values())))
        have = sum(chosen.get(cluster.cluster_id, cluster.role) is role for cluster in clusters)
        spare = [cluster_id for cluster_id in ranked if cluster_id not in chosen]
        chosen |= dict.fromkeys(spare[: max(0, wanted - have)], role)
    return chosen


def _ranked(free: Iterable[Cluster], recipe: Recipe) -> dict[int, float]:
    """cluster_id → place, in the order of the places."""
    places = {cluster.cluster_id: _place(recipe.name, cluster.founder) for cluster in free}
    return dict(sorted(places.items(), key=lambda each: each[1]))


def _place(track: str, founder: bytes) -> float:
    """A cluster's place in [0, 1): uniform, and the same whenever it is asked for."""
    digest = hashlib.blake2b(track.encode() + b"\0" + founder, digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


# which bytes of a content count


def later_lines(text: str, line_times: Iterable[Sequence[int]], through: int) -> Spans:
    """Bytes of the lines first written after `through`; `line_times` are (first line, last line, seconds).

    Lines count from 1 and end at line feeds. A line whose time is not known is not among them.
    """
    ends = [0]
    for line in text.encode().split(b"\n"):
        ends.append(ends[-1] + len(line) + 1)
    ends[-1] -= 1  # no line feed at the end of the text
    last = len(ends) - 1
    found = [
        (ends[min(first, last + 1) - 1], ends[min(final, last)])
        for first, final, seconds in line_times
        if seconds > through
    ]
    return union(found)


def union(spans: Iterable[tuple[int, int]]) -> Spans:
    """In order, none empty, none touching another."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def without(spans: Spans, removed: Iterable[tuple[int, int]]) -> Spans:
    """What is left of the spans, which are in order."""
    left = list(spans)
    for start, end in union(removed):
        left = [
            part
            for first, last in left
            for part in ((first, min(last, start)), (max(first, end), last))
            if part[0] < part[1]
        ]
    return tuple(left)


def version(judged: Iterable[tuple[bytes, Spans | None]]) -> str:
    """SHA-256 over content hash and spans of what is judged, in whatever order it comes."""
    digest = hashlib.sha256()
    for sha256, spans in sorted(judged, key=lambda each: each[0]):
        digest.update(sha256 + repr(spans).encode())
    return digest.hexdigest()
