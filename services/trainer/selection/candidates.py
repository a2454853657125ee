"""What may be in a round's snapshot, read inside a transaction."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.core.db import Transaction
from services.core.models import ContentRole
from services.trainer.recipes.recipe import Recipe
from services.trainer.selection.choice import Candidate, Past

Read = list[list[Candidate]]  # one list for each group of languages that has a share of its own
Roles = dict[int, set[ContentRole]]  # of clusters, in earlier rounds
LATEST_ROUNDS = 8  # of a track: the sources that they trained on are those that share a round


@dataclass(frozen=True)
class Candidates:
    """A track's contents, as the next round of it may have them."""

    tx: Transaction
    track: str
    recipe: Recipe
    threshold: int  # score that a content has at least

    def best(self, most: int, with_set_aside: bool) -> Read:
        """The best `most`; where the recipe weighs languages, of each of them and of the others together."""
        asked: dict[str, Any] = {"track": self.track, "threshold": self.threshold, "most": most}
        weights = self.recipe.language_weights
        if weights is None:
            query = "candidates" if with_set_aside else "candidates_not_set_aside"
            return [[_candidate(row) for row in self.tx.all(query, **asked)]]
        self.tx.execute("without_hurry")  # a language that is rare is looked for far down
        asked["set_aside"] = with_set_aside
        named = sorted(set(weights) - {"*"})
        groups = [
            self.tx.all("candidates_in_languages", languages=[name], among=True, **asked)
            for name in named
            if weights[name]
        ]
        if weights.get("*"):
            groups.append(self.tx.all("candidates_in_languages", languages=named, among=False, **asked))
        return [[replace(_candidate(row), language=row.language) for row in rows] for rows in groups]

    def elsewhere(self, full: Collection[int], most: int) -> list[Candidate]:
        """The best of other sources than these."""
        self.tx.execute("without_hurry")  # a flood is gone through to find what else there is
        weights = self.recipe.language_weights or {"*": 1.0}
        among = not weights.get("*")
        rows = self.tx.all(
            "candidates_elsewhere",
            track=self.track,
            threshold=self.threshold,
            most=most,
            full=sorted(full),
            languages=[name for name, weight in weights.items() if bool(weight) == among],
            among=among,
        )
        return [replace(_candidate(row), language=row.language) for row in rows]

    def replayable(self, wanted: int) -> list[Candidate]:
        """What may be replayed, as drawn: more than enough, since some may be held out by now."""
        if not self.recipe.replay_share:
            return []
        self.tx.execute("without_hurry")  # all that was ever learned is drawn from
        most = 2 * math.ceil(wanted * self.recipe.replay_share)
        return [_candidate(row) for row in self.tx.all("replayable", track=self.track, most=most)]

    def set_aside(self, role: ContentRole) -> list[Candidate]:
        """Of what earlier rounds set aside, as much as a round is judged by."""
        rows = self.tx.all(
            "set_aside_contents",
            track=self.track,
            threshold=self.threshold,
            role=role,
            newest=role is ContentRole.HELD_OUT,
            most=self.recipe.held_out_max,
        )
        return [_candidate(row) for row in rows]

    def past(self) -> Past:
        anchors = tuple(_candidate(row) for row in self.tx.all("anchors", track=self.track))
        sources: frozenset[int] = frozenset()
        if self.recipe.source_share is not None:
            self.tx.execute("without_hurry")  # some rounds' contents are gone through
            rows = self.tx.all("latest_sources", track=self.track, rounds=LATEST_ROUNDS)
            sources = frozenset(row.source_id for row in rows)
        return Past(self.tx.value("trained_through", track=self.track), anchors, sources)

    def dated(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        rows = self.tx.all("changes", content_ids=[each.content_id for each in candidates])
        changes = {row.content_id: (row.changed_at, row.has_line_times) for row in rows}
        unknown = (None, False)
        return [
            replace(each, changed_at=changed_at, has_line_times=has_line_times)
            for each in candidates
            for changed_at, has_line_times in [changes.get(each.content_id, unknown)]
        ]

    def sourced(self, candidates: list[Candidate]) -> list[Candidate]:
        """With their sizes and sources, where the recipe asks for them."""
        if self.recipe.source_share is None:
            return candidates
        rows = self.tx.all("sources_of", content_ids=[each.content_id for each in candidates])
        found = {row.content_id: (row.bytes, tuple(row.sources)) for row in rows}
        return [
            replace(each, size=size, sources=sources)
            for each in candidates
            for size, sources in [found.get(each.content_id, (0, ()))]
        ]

    def past_roles(self, candidates: Sequence[Candidate]) -> Roles:
        clusters = list({candidate.cluster_id for candidate in candidates})
        roles: Roles = {}
        for row in self.tx.all("cluster_roles", track=self.track, clusters=clusters):
            roles.setdefault(row.cluster_id, set()).add(ContentRole(row.role))
        return roles


def _candidate(row: Any) -> Candidate:
    return Candidate(row.content_id, bytes(row.sha256), row.cluster_id, row.score)
