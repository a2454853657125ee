"""Which contents a round trains on, and by which it is judged: a pure, deterministic choice."""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.core.models import ContentRole
from services.trainer.recipes.recipe import Recipe

MOST_SET_ASIDE = 0.2  # of all clusters at most, however small the corpus


@dataclass(frozen=True)
class Candidate:
    """A content that the track has not learned from."""

    content_id: int
    sha256: bytes
    cluster_id: int
    score: int
    language: str = ""  # known where the recipe weighs languages


@dataclass(frozen=True)
class Choice:
    """A round's snapshot, in order, and the clusters it sets aside for good."""

    contents: tuple[tuple[ContentRole, Candidate], ...]
    newly_set_aside: Mapping[int, ContentRole]  # cluster_id → role

    def of(self, role: ContentRole) -> list[Candidate]:
        return [candidate for its_role, candidate in self.contents if its_role is role]

    @property
    def hash(self) -> str:
        """SHA-256 over role and content hash in order: the same snapshot has the same hash anywhere."""
        digest = hashlib.sha256()
        for role, candidate in self.contents:
            digest.update(role.encode() + candidate.sha256)
        return digest.hexdigest()


def choose(
    candidates: Iterable[Candidate],
    past_roles: Mapping[int, Collection[ContentRole]],
    recipe: Recipe,
    max_dataset_size: int,
    replayable: Iterable[Candidate] = (),
) -> Choice:
    """Split by cluster, then take the best for training, of each language its share.

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
    ordered = sorted(
        (candidate for candidate in candidates if candidate.cluster_id not in torn),
        key=lambda candidate: (-candidate.score, candidate.sha256),
    )
    members: dict[int, list[Candidate]] = {}
    for candidate in ordered:
        members.setdefault(candidate.cluster_id, []).append(candidate)
    settled = {cluster: role for cluster in members for role in past_roles.get(cluster, ())}
    newly = _set_aside([cluster for cluster in members if cluster not in settled], members, settled, recipe)
    roles = {**settled, **newly}

    by_role: dict[ContentRole, list[Candidate]] = {role: [] for role in ContentRole}
    for candidate in ordered:
        by_role[roles.get(candidate.cluster_id, ContentRole.TRAIN)].append(candidate)
    fresh = by_role[ContentRole.TRAIN]
    replayed = [
        each for each in replayable if set(past_roles.get(each.cluster_id, ())) == {ContentRole.TRAIN}
    ]
    limit = min(max_dataset_size, recipe.max_contents or max_dataset_size)
    kept_for_replay = min(len(replayed), int(limit * recipe.replay_share))
    fresh = within_shares(fresh, recipe.language_weights, limit - kept_for_replay)
    share = recipe.replay_share / (1 - recipe.replay_share)
    by_role[ContentRole.TRAIN] = fresh
    by_role[ContentRole.REPLAY] = replayed[: min(limit - len(fresh), round(len(fresh) * share))]
    contents = tuple((role, candidate) for role in ContentRole for candidate in by_role[role])
    return Choice(contents, newly)


def within_shares(
    ordered: Sequence[Candidate], weights: Mapping[str, float] | None, limit: int
) -> list[Candidate]:
    """The first `limit` of these, in order, no language above its share of them; `*` stands for the others.

    Shares are of the smaller of `limit` and all there are, and among the languages that there are. What a
    language has beyond its share is for later rounds, whatever room the others leave.
    """
    if weights is None:
        return list(ordered[:limit])
    group = {each.language: each.language if each.language in weights else "*" for each in ordered}
    present = {name: weights.get(name, 0.0) for name in set(group.values())}
    total = sum(present.values())
    size = min(limit, len(ordered))
    left = {name: math.ceil(size * weight / total) if weight else 0 for name, weight in present.items()}
    taken = []
    for candidate in ordered:
        if left[group[candidate.language]] > 0:
            left[group[candidate.language]] -= 1
            taken.append(candidate)
    return taken[:limit]


def _set_aside(
    free: Sequence[int],
    members: Mapping[int, list[Candidate]],
    already: Mapping[int, ContentRole],
    recipe: Recipe,
) -> dict[int, ContentRole]:
    """The roles of new clusters: by share, topped up to the minimum while a fifth of all allows."""
    place = {cluster: _place(recipe.name, members[cluster]) for cluster in free}
    ranked = sorted(free, key=lambda cluster: place[cluster])
    held = recipe.held_out_share
    chosen = {
        cluster: ContentRole.HELD_OUT if place[cluster] < held else ContentRole.VALIDATION
        for cluster in ranked
        if place[cluster] < held + recipe.validation_share
    }
    most = max(2, int(MOST_SET_ASIDE * len(members)))
    minima = ((ContentRole.HELD_OUT, recipe.held_out_min), (ContentRole.VALIDATION, recipe.validation_min))
    total_min = sum(minimum for _, minimum in minima)
    for role, minimum in minima:
        wanted = min(minimum, max(1, most * minimum // total_min))
        roles = {**already, **chosen}
        have = sum(roles.get(cluster) is role for cluster in members)
        spare = (cluster for cluster in ranked if cluster not in chosen)
        for cluster in list(spare)[: max(0, wanted - have)]:
            chosen[cluster] = role
    return chosen


def _place(track: str, contents: Sequence[Candidate]) -> float:
    """A cluster's place in [0, 1): uniform, and the same whenever it is asked for."""
    founder = min(candidate.sha256 for candidate in contents)
    digest = hashlib.blake2b(track.encode() + b"\0" + founder, digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
