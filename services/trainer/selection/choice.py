"""Which contents a round trains on, and by which it is judged: a pure, deterministic choice."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.core.models import ContentRole
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import Spans
from services.trainer.selection import held_out, shares
from services.trainer.selection.held_out import Cluster, HeldOut, Kind, Split


@dataclass(frozen=True)
class Candidate:
    """A content that the track has not learned from."""

    content_id: int
    sha256: bytes
    cluster_id: int
    score: int
    language: str = ""  # known where the recipe weighs languages
    changed_at: int | None = None  # seconds since 1970; None: no history is known
    has_line_times: bool = False  # it is known when its lines were first written
    size: int = 0  # bytes; this and the sources are known where the recipe has a `source_share`
    sources: tuple[int, ...] = ()  # ids of those that have a live file of it


@dataclass(frozen=True)
class Past:
    """What earlier rounds of the track decided for the later ones."""

    through: int | None = None  # the latest time up to which one of them trained
    anchors: tuple[Candidate, ...] = ()  # contents that every round is judged by; none: yet to be chosen
    sources: frozenset[int] = frozenset()  # that the latest of them trained on and that are still there


@dataclass(frozen=True)
class Choice:
    """A round's snapshot, in order, and the clusters it sets aside for good."""

    contents: tuple[tuple[ContentRole, Candidate], ...]
    newly_set_aside: Mapping[int, ContentRole]  # cluster_id → role
    kind: Kind
    through: int | None  # nothing that changed later is trained on
    anchors: frozenset[int]  # content ids
    deferred: frozenset[int]  # ids of contents that are too new for this round
    judged: Mapping[int, Spans]  # content id → bytes that count, of those that do not count with all
    leaked: int = 0  # held-out contents left out because nothing is left to judge
    waiting: Mapping[int, int] = field(default_factory=dict)  # source → contents beyond its share, for later

    def of(self, role: ContentRole) -> list[Candidate]:
        return [candidate for its_role, candidate in self.contents if its_role is role]

    def is_worth_a_round(self, fewest: int) -> bool:
        """Whether there is anything to train on; and `fewest`, where shares of sources alone prevent that."""
        trained, waiting = len(self.of(ContentRole.TRAIN)), sum(self.waiting.values())
        return trained >= (fewest if waiting and trained + waiting >= fewest else 1)

    @property
    def hash(self) -> str:
        """The same snapshot has the same hash anywhere."""
        return self.digest().hexdigest()

    def digest(self) -> "hashlib._Hash":
        """SHA-256 over role and content hash in order, to be gone on with."""
        digest = hashlib.sha256()
        for role, candidate in self.contents:
            digest.update(role.encode() + candidate.sha256)
            if (spans := self.judged.get(candidate.content_id)) is not None:
                digest.update(repr(spans).encode())
        return digest

    @property
    def held_out(self) -> HeldOut:
        """What the round is judged by."""
        judged = self.of(ContentRole.HELD_OUT)
        anchors = sum(candidate.content_id in self.anchors for candidate in judged)
        others = len(judged) - anchors
        return HeldOut(
            kind=self.kind,
            through=self.through,
            version=held_out.version((each.sha256, self.judged.get(each.content_id)) for each in judged),
            anchors=anchors,
            later=others if self.kind == "time" else 0,
            whole=others if self.kind == "cluster" else 0,
            leaked=self.leaked,
            waiting=sum(self.waiting.values()),
        )

    def counting(self, judged: Mapping[int, Spans], leaked: Collection[int]) -> "Choice":
        """Judged by these bytes of these contents, and by no content of which none are left.

        `leaked` are the contents of which nothing is left because it is trained on elsewhere.
        """
        contents = tuple(each for each in self.contents if judged.get(each[1].content_id) != ())
        gone = sum(c.content_id in leaked for role, c in self.contents if role is ContentRole.HELD_OUT)
        return replace(self, contents=contents, judged=judged, leaked=gone)


def choose(
    candidates: Iterable[Candidate],
    past_roles: Mapping[int, Collection[ContentRole]],
    recipe: Recipe,
    max_dataset_size: int,
    replayable: Iterable[Candidate] = (),
    past: Past = Past(),
) -> Choice:
    """Split by time or by cluster, then take the best for training, of each language and source its share.

    `replayable` are contents that the champion has learned from, in the order they are drawn in: with a
    recipe's `replay_share` so many are taken that they are that share of all that is trained on. None of
    a cluster that is anything but trained on, by `past_roles`, is.

    `past_roles` are the roles that earlier rounds of the track gave to clusters (cluster_id → roles). A
    cluster keeps its role for good: what was held out is never trained on, what was trained on is never
    set aside. Clusters merge when their contents turn out to be near-duplicates, and one merged from
    parts that had different roles fits none: a snapshot leaves it out, neither trained nor judged by.
    New clusters go to a role by a hash of track and content, so the choice depends on nothing but its
    arguments.
    """
    torn = {cluster for cluster, roles in past_roles.items() if len(set(roles)) > 1}
    held = {cluster for cluster, roles in past_roles.items() if set(roles) == {ContentRole.HELD_OUT}}
    anchors = sorted((each for each in past.anchors if each.cluster_id in held), key=_by_hash)
    barred = {each.content_id for each in past.anchors}  # but where their cluster is held out
    ordered = sorted(
        (
            each
            for each in candidates
            if each.cluster_id not in torn and (each.content_id not in barred or each.cluster_id in held)
        ),
        key=_best_first,
    )
    clusters = _clusters(ordered, past_roles)
    split = held_out.split(clusters, recipe, past.through, has_anchors=bool(anchors))
    roles = {cluster.cluster_id: cluster.role for cluster in clusters} | dict(split.newly)

    by_role: dict[ContentRole, list[Candidate]] = {role: [] for role in ContentRole}
    for candidate in ordered:
        by_role[roles[candidate.cluster_id] or ContentRole.TRAIN].append(candidate)
    fresh = [each for each in by_role[ContentRole.TRAIN] if not _is_later(each, split)]
    deferred = frozenset(each.content_id for each in by_role[ContentRole.TRAIN]) - {
        each.content_id for each in fresh
    }
    replayed = [
        each for each in replayable if set(past_roles.get(each.cluster_id, ())) == {ContentRole.TRAIN}
    ]
    limit = min(max_dataset_size, recipe.max_contents or max_dataset_size)
    kept_for_replay = min(len(replayed), int(limit * recipe.replay_share))
    taken = shares.within(fresh, recipe, limit - kept_for_replay, past.sources)
    fresh = taken.contents
    share = recipe.replay_share / (1 - recipe.replay_share)
    by_role[ContentRole.TRAIN] = fresh
    by_role[ContentRole.REPLAY] = replayed[: min(limit - len(fresh), round(len(fresh) * share))]
    anchors = anchors or _first_anchors(_forward(by_role[ContentRole.HELD_OUT], split), recipe)
    by_role[ContentRole.HELD_OUT] = _judged_by(by_role[ContentRole.HELD_OUT], anchors, split, recipe)
    validation = sorted(by_role[ContentRole.VALIDATION], key=_by_hash)
    by_role[ContentRole.VALIDATION] = sorted(validation[: recipe.held_out_max], key=_best_first)
    return Choice(
        contents=tuple((role, candidate) for role in ContentRole for candidate in by_role[role]),
        newly_set_aside=split.newly,
        kind=split.kind,
        through=_trained_through(split, fresh),
        anchors=frozenset(each.content_id for each in anchors),
        deferred=deferred,
        judged={},
        waiting=taken.waiting,
    )


def _best_first(candidate: Candidate) -> tuple[int, bytes]:
    return -candidate.score, candidate.sha256


def _by_hash(candidate: Candidate) -> bytes:
    """An order that is random, and always the same."""
    return candidate.sha256


def _clusters(
    ordered: Sequence[Candidate], past_roles: Mapping[int, Collection[ContentRole]]
) -> list[Cluster]:
    """Of the candidates, none torn, in the order of their best."""
    members: dict[int, list[Candidate]] = {}
    for candidate in ordered:
        members.setdefault(candidate.cluster_id, []).append(candidate)
    return [
        Cluster(
            cluster_id=cluster_id,
            founder=min(each.sha256 for each in of_cluster),
            changed_at=max((c.changed_at for c in of_cluster if c.changed_at is not None), default=None),
            written_at=max((c.changed_at or 0 for c in of_cluster if c.has_line_times), default=None),
            role=next(iter(past_roles.get(cluster_id, ())), None),
        )
        for cluster_id, of_cluster in members.items()
    ]


def _is_later(candidate: Candidate, split: Split) -> bool:
    if split.kind == "cluster" or split.through is None or candidate.changed_at is None:
        return False
    return candidate.changed_at > split.through


def _forward(candidates: Sequence[Candidate], split: Split) -> list[Candidate]:
    """Those that this round can be judged by: in a split by time only what has later lines."""
    if split.kind == "cluster":
        return list(candidates)
    return [each for each in candidates if each.has_line_times and _is_later(each, split)]


def _first_anchors(judged: Sequence[Candidate], recipe: Recipe) -> list[Candidate]:
    """Half of what the first round is judged by, drawn by hash; none while that is too little to judge by."""
    if len(judged) < held_out.MIN_FORWARD:
        return []
    most = int(held_out.ANCHOR_SHARE * min(len(judged), recipe.held_out_max))
    return sorted(judged, key=_by_hash)[:most]


def _judged_by(
    candidates: Sequence[Candidate], anchors: Sequence[Candidate], split: Split, recipe: Recipe
) -> list[Candidate]:
    """The anchors, then the newest of the others, `held_out_max` in all.

    Where whole files count, an anchor that was edited since stands for its cluster: both are nearly the same.
    """
    ours = {each.content_id for each in anchors}
    live = {each.content_id for each in candidates}
    edited = {each.cluster_id for each in anchors if each.content_id not in live}
    others = [
        each
        for each in _forward(candidates, split)
        if each.content_id not in ours and (split.kind == "time" or each.cluster_id not in edited)
    ]
    others.sort(key=lambda each: (-(each.changed_at or 0), each.sha256))
    kept = anchors[: recipe.held_out_max]
    return sorted([*kept, *others[: recipe.held_out_max - len(kept)]], key=_best_first)


def _trained_through(split: Split, trained: Sequence[Candidate]) -> int | None:
    """A round that does not go by time trains on whatever there is: later ones are judged by newer lines."""
    known = [each.changed_at for each in trained if each.changed_at is not None]
    known += [] if split.through is None else [split.through]
    return max(known, default=None)
