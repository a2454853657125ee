"""A round's snapshot: chosen, stored, read again."""

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.core.db import Transaction
from services.core.models import ContentRole
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import SampleSource, Spans, Unit
from services.trainer.selection import held_out
from services.trainer.selection.candidates import Candidates, Read, Roles
from services.trainer.selection.choice import Candidate, Choice, choose
from services.trainer.selection.held_out import MOST_SET_ASIDE, SET_ASIDE

MOST_READS = 4  # lists of candidates that are read to find sources that are not full yet


@dataclass(frozen=True)
class Selection:
    """What the next round of a track trains on and is judged by, seen from inside a transaction."""

    tx: Transaction
    track: str
    recipe: Recipe
    threshold: int  # score that a content has at least
    max_dataset_size: int

    def choice(self) -> Choice:
        """The snapshot, with the bytes that it is judged by. By time only where enough of them are left."""
        choice = self._judged(self._chosen())
        if choice.kind == "time" and choice.held_out.later < held_out.MIN_FORWARD:
            return replace(self, recipe=self.recipe.model_copy(update={"split": "cluster"})).choice()
        return choice

    def _chosen(self) -> Choice:
        """From the best candidates; from others when those that may not be trained on leave too few."""
        recipe = self.recipe
        found = Candidates(self.tx, self.track, recipe, self.threshold)
        wanted = min(self.max_dataset_size, recipe.max_contents or self.max_dataset_size)
        set_aside = math.ceil((recipe.held_out_min + recipe.validation_min) / MOST_SET_ASIDE)
        most = max(2 * wanted, wanted + set_aside)  # so many that the minima can be held out of them
        replayable = found.replayable(wanted)
        wanted -= min(len(replayable), int(wanted * recipe.replay_share))
        aside = [each for role in SET_ASIDE for each in found.set_aside(role)]
        past = found.past()

        def choose_from(read: Read) -> tuple[Choice, Roles]:
            unique = {each.content_id: each for group in (*read, aside) for each in group}
            candidates = found.sourced(found.dated(list(unique.values())))
            past_roles = found.past_roles([*candidates, *replayable, *past.anchors])
            chosen = choose(candidates, past_roles, recipe, self.max_dataset_size, replayable, past)
            return chosen, past_roles

        with_set_aside = True
        while True:
            read = found.best(most, with_set_aside)
            chosen, past_roles = choose_from(read)
            if all(len(group) < most or _trainable(group, past_roles, chosen) >= wanted for group in read):
                break
            most *= 1 if with_set_aside else 2
            with_set_aside = False
        full: set[int] = set()
        for _ in range(0 if all(len(group) < most for group in read) else MOST_READS):
            if not (newly := self._full(chosen) - full):
                break
            full |= newly
            read = [*read, found.elsewhere(full, most)]
            chosen, _ = choose_from(read)
        return chosen

    def _full(self, chosen: Choice) -> set[int]:
        """Sources that may give no more while there are others."""
        if self.recipe.source_share is None:
            return set()
        trained = chosen.of(ContentRole.TRAIN)
        given: Counter[int] = Counter()
        for content in trained:
            given.update(dict.fromkeys(content.sources, content.size))
        most = self.recipe.source_share * sum(content.size for content in trained)
        return {source for source, size in given.items() if size > most} | chosen.waiting.keys()

    def _judged(self, choice: Choice) -> Choice:
        """With the bytes by which it is judged: later lines, and no unit that is trained on elsewhere."""
        later = {}
        if choice.kind == "time" and choice.through is not None:
            ours = [
                c.content_id for c in choice.of(ContentRole.HELD_OUT) if c.content_id not in choice.anchors
            ]
            later = self._later_lines(ours, choice.through)
        aside = [each.content_id for role in SET_ASIDE for each in choice.of(role)]
        trained = [c.content_id for role, c in choice.contents if role not in SET_ASIDE]
        leaks: dict[int, list[tuple[int, int]]] = {}
        for row in self.tx.all("leaked_units", track=self.track, judged=aside, training=trained):
            leaks.setdefault(row.content_id, []).append((row.start_byte, row.end_byte))
        texts = self._texts([content_id for content_id in leaks if content_id not in later])
        before = {content_id: ((0, len(text.encode())),) for content_id, text in texts.items()} | later
        judged = {
            content_id: held_out.without(spans, leaks.get(content_id, ()))
            for content_id, spans in before.items()
        }
        return choice.counting(judged, {each for each in judged if before[each] and not judged[each]})

    def _later_lines(self, content_ids: list[int], through: int) -> dict[int, Spans]:
        """Bytes of the lines first written after `through`; none where no line's time is known."""
        rows = self.tx.all("line_times", content_ids=content_ids)
        times = {row.content_id: row.line_times or () for row in rows}
        texts = self._texts(content_ids)
        return {
            content_id: held_out.later_lines(texts[content_id], times.get(content_id, ()), through)
            for content_id in content_ids
        }

    def _texts(self, content_ids: list[int]) -> dict[int, str]:
        return {row.content_id: row.text for row in self.tx.all("texts", content_ids=content_ids)}


def store(tx: Transaction, track: str, round_id: int, choice: Choice) -> None:
    """The snapshot of a new round, what it sets aside for good, and anchors where it is the first."""
    positions: dict[ContentRole, int] = dict.fromkeys(ContentRole, -1)
    ids = [candidate.content_id for _, candidate in choice.contents]
    places = {place.content_id: place for place in tx.all("places", content_ids=ids)}
    rows = []
    for role, candidate in choice.contents:
        positions[role] += 1
        _, *place = places.get(candidate.content_id) or (None, None, None)
        spans = choice.judged.get(candidate.content_id)
        judged = None if spans is None else [list(span) for span in spans]
        rows.append((round_id, candidate.content_id, str(role), positions[role], *place, judged))
    columns = ("round_id", "content_id", "role", "position", "source", "path", "judged")
    tx.copy("round_contents", columns, rows)
    tx.execute("record_round_files", round_id=round_id)
    tx.execute("record_round_sources", round_id=round_id)
    for cluster_id, role in sorted(choice.newly_set_aside.items()):
        tx.execute("set_aside", track=track, cluster_id=cluster_id, role=role, round_id=round_id)
    tx.execute("keep_anchors", track=track, content_ids=sorted(choice.anchors), round_id=round_id)


def read(tx: Transaction, round_id: int) -> dict[ContentRole, list[SampleSource]]:
    """The round's contents with their text, units and places, in order, by role."""
    contents: dict[ContentRole, list[SampleSource]] = {role: [] for role in ContentRole}
    for row in tx.all("snapshot", round_id=round_id):
        spans = None if row.judged is None else tuple((start, end) for start, end in row.judged)
        content = replace(sample_source(row), judged=spans, cluster_id=row.cluster_id)
        contents[ContentRole(row.role)].append(content)
    return contents


def sample_source(row: Any) -> SampleSource:
    """From a row with a content's text, units and place."""
    units = tuple(Unit(sys.intern(kind), *rest) for kind, *rest in row.units or ())
    return SampleSource(
        row.content_id, bytes(row.sha256), row.language, row.text, row.score, units, row.source, row.path
    )


def _trainable(group: Sequence[Candidate], past_roles: Mapping[int, set[ContentRole]], choice: Choice) -> int:
    """How many of these the round could train on."""
    barred = {cluster for cluster, roles in past_roles.items() if len(roles) > 1}
    barred |= {cluster for cluster, roles in past_roles.items() if roles & set(SET_ASIDE)}
    barred |= set(choice.newly_set_aside)
    return sum(each.cluster_id not in barred and each.content_id not in choice.deferred for each in group)
