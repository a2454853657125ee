"""What was judged becomes rows: a chunk of files, one transaction, safe to repeat.

What is kept of near duplicates is decided under one lock for all processors, so that the outcome does
not depend on how many there are. The lock is held while rows are written, not while files are judged.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from services.core.db import Transaction, as_json
from services.core.process import failpoint
from services.processor import clusters
from services.processor.reasons import Reason
from services.processor.stages.fingerprints import FINGERPRINT_VERSION
from services.processor.values import Draft, Known, Rejection, Unit

KNOWN_PAGE = 5_000  # rows

CONTENT_COLUMNS = (
    "id", "sha256", "cluster_id", "language", "text", "bytes", "lines", "characters", "score",
    "score_reasons", "scorer_version", "licence", "redactions", "live", "units_version",
)  # fmt: skip
UNIT_COLUMNS = (
    "content_id", "ordinal", "kind", "name", "start_byte", "end_byte", "start_line", "end_line",
    "comment_byte", "fingerprint",
)  # fmt: skip
FILE_COLUMNS = (
    "path", "size_bytes", "mtime_ns", "language", "content_id", "cluster_id", "reason", "detail",
    "duplicate_of",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class File:
    """A path of a source and what became of it: a draft's address, or a refusal."""

    path: str
    size_bytes: int
    mtime_ns: int
    language: str | None
    outcome: bytes | Rejection
    is_known: bool  # it has a row already


@dataclass(frozen=True, slots=True)
class Stored:
    """What the database holds of the drafts of a chunk, and of their near duplicates."""

    ids: dict[bytes, int]  # address → content
    cluster_of: dict[int, int]  # content → its cluster; of the kept members of groups too
    versions: dict[int, int]  # content → the scorer it was scored by
    outdated: frozenset[bytes] = frozenset()  # addresses of those whose units lack fingerprints of today
    blank: frozenset[bytes] = frozenset()  # of those whose text was forgotten, and that may come again
    group_of: dict[int, int] = field(default_factory=dict)  # band key → group
    kept_of: dict[int, clusters.Kept] = field(default_factory=dict)  # group → its kept member

    def has(self, address: bytes) -> bool:
        """Whether the text is there, not just its row."""
        return address in self.ids and address not in self.blank


def look_up(transaction: Transaction, drafts: Mapping[bytes, Draft]) -> Stored:
    """What is stored of these drafts and of the texts that share a band key with one."""
    rows = transaction.all("stored_contents", addresses=list(drafts)) if drafts else []
    stored = Stored(
        ids={bytes(row.sha256): row.id for row in rows},
        cluster_of={row.id: row.cluster_id for row in rows},
        versions={row.id: row.scorer_version for row in rows},
        outdated=frozenset(bytes(row.sha256) for row in rows if row.units_version < FINGERPRINT_VERSION),
        blank=frozenset(bytes(row.sha256) for row in rows if row.blank),
    )
    if keys := clusters.wanted_keys(candidates(drafts)):
        stored.group_of.update(transaction.all("groups_of_keys", keys=_array(keys)))
    if groups := set(stored.group_of.values()):
        for row in transaction.all("kept_of_groups", groups=_array(groups)):
            address = bytes(row.sha256)
            stored.kept_of[row.group_id] = clusters.Kept(row.content_id, address, row.score, row.live)
            stored.ids[address] = row.content_id
            stored.cluster_of[row.content_id] = row.cluster_id
    return stored


def candidates(drafts: Mapping[bytes, Draft]) -> list[clusters.Candidate]:
    return [clusters.Candidate(draft.sha256, draft.score.value, draft.bands) for draft in drafts.values()]


def decide(drafts: Mapping[bytes, Draft], stored: Stored) -> clusters.Decision:
    """What is kept of these drafts, given what is stored."""
    return clusters.decide(candidates(drafts), stored.group_of, stored.kept_of)


class Storing:
    """The rows of one chunk, written under the lock by `run`."""

    def __init__(
        self,
        transaction: Transaction,
        source_id: int,
        rules: int,
        drafts: Mapping[bytes, Draft],
        units: Mapping[bytes, Sequence[Unit]],
        stored: Stored,
        decision: clusters.Decision,
    ) -> None:
        self._tx = transaction
        self._source_id = source_id
        self._rules = rules
        self._drafts = drafts
        self._units = units
        self._stored = stored
        self._decision = decision
        self._ids = dict(stored.ids)
        self._cluster_of = dict(stored.cluster_of)  # content → cluster, brought up to date below

    def run(self, files: Sequence[File]) -> None:
        """Write what the decision says, then what became of the files."""
        before = self._held_before(files)
        self._keep()
        self._unite_clusters(files, before)
        self._insert_contents()
        self._fingerprint_again()
        self._record_groups()
        self._demote()
        self._upsert(files)
        held = {row.content_id for row in before.values() if row.content_id is not None}
        still = {self._ids[address] for address in self._decision.kept}
        release(self._tx, held - still)
        failpoint("processor.before_commit")

    def _held_before(self, files: Sequence[File]) -> dict[str, "Before"]:
        """By path, what it held until now."""
        known = [file.path for file in files if file.is_known]
        if not known:
            return {}
        rows = self._tx.all("held_before", source_id=self._source_id, paths=known)
        return {row.path: Before(row.content_id, row.cluster_id) for row in rows}

    def _keep(self) -> None:
        """Give ids to the texts that are new; bring those that are stored up to date."""
        new = [address for address in self._decision.kept if address not in self._ids]
        if new:
            self._ids.update(zip(new, _take(self._tx, "new_content_ids", len(new)), strict=True))
        stored = [self._ids[address] for address in self._decision.kept if address in self._stored.ids]
        if stored:
            self._tx.execute("revive_contents", ids=_array(stored))
        for address, draft in self._drafts.items():
            content_id = self._stored.ids.get(address)
            version = self._stored.versions.get(content_id or 0, draft.score.version)
            if version < draft.score.version:
                points, value = draft.score.points, draft.score.value
                self._tx.execute(
                    "rescore",
                    id=content_id,
                    score=value,
                    reasons=as_json(points),
                    version=draft.score.version,
                )

    def _unite_clusters(self, files: Sequence[File], before: Mapping[str, "Before"]) -> None:
        """One cluster for what is nearly the same and for what replaces one another; old ones merge."""
        node = {address: -number for number, address in enumerate(self._drafts, start=1)}
        forest = clusters.Forest()

        def place(address: bytes) -> int:
            content_id = self._stored.ids.get(address)
            cluster = self._stored.cluster_of.get(content_id or 0)
            if address not in node:
                assert cluster is not None, "what is kept is a draft or stored"
                return cluster
            if cluster is not None:
                forest.join(node[address], cluster)
            return forest.root(node[address])

        for address in self._decision.kept:
            place(address)
        for address, kept in self._decision.rejected.items():
            forest.join(place(address), place(kept))
        for content_id, kept in self._decision.demoted.items():
            forest.join(self._stored.cluster_of[content_id], place(kept))
        for file in files:
            was = before.get(file.path)
            if was is not None and was.cluster_id is not None and self._is_new(file.outcome):
                forest.join(place(file.outcome), was.cluster_id)
        self._name_clusters(forest, node)

    def _is_new(self, outcome: bytes | Rejection) -> TypeGuard[bytes]:
        """A text stored now: one stored before has a past of its own, in which this path has no part."""
        return (
            isinstance(outcome, bytes) and outcome in self._decision.kept and outcome not in self._stored.ids
        )

    def _name_clusters(self, forest: clusters.Forest, node: Mapping[bytes, int]) -> None:
        oldest: dict[int, int] = {}  # root → the oldest stored cluster in its component
        for member in forest:
            if member > 0:
                root = forest.root(member)
                oldest[root] = min(member, oldest.get(root, member))
        unnamed = {forest.root(number) for number in node.values()} - oldest.keys()
        if unnamed:
            oldest.update(zip(unnamed, _take(self._tx, "new_cluster_ids", len(unnamed)), strict=True))
        for member in [member for member in forest if member > 0]:
            if (into := oldest[forest.root(member)]) != member:
                for query in ("merge_clusters", "redirect_merges", "record_merge"):
                    self._tx.execute(query, absorbed=member, into=into)
        for address, number in node.items():
            if (content_id := self._ids.get(address)) is not None:
                self._cluster_of[content_id] = oldest[forest.root(number)]
        for content_id, cluster in self._stored.cluster_of.items():
            self._cluster_of[content_id] = oldest.get(forest.root(cluster), cluster)

    def _insert_contents(self) -> None:
        new = [self._drafts[address] for address in self._decision.kept if address not in self._stored.ids]
        again = [self._drafts[address] for address in self._decision.kept if address in self._stored.blank]
        for draft in again:  # their rows stayed when their texts were forgotten
            self._tx.execute("restore_text", id=self._ids[draft.sha256], text=draft.text)
        self._tx.copy("contents", CONTENT_COLUMNS, map(self._content_row, new))
        self._tx.copy("units", UNIT_COLUMNS, itertools.chain.from_iterable(map(self._unit_rows, new + again)))

    def _content_row(self, draft: Draft) -> tuple[object, ...]:
        content_id = self._ids[draft.sha256]
        redactions = [[redaction.kind, redaction.line] for redaction in draft.redactions]
        score = draft.score
        return (
            content_id, draft.sha256, self._cluster_of[content_id], draft.language, draft.text,
            draft.size_bytes, draft.lines, len(draft.text), score.value, score.points, score.version,
            draft.licence, redactions,
            True, FINGERPRINT_VERSION,
        )  # fmt: skip

    def _unit_rows(self, draft: Draft) -> Iterable[tuple[object, ...]]:
        content_id = self._ids[draft.sha256]
        for ordinal, unit in enumerate(self._units.get(draft.sha256, ())):
            yield (
                content_id, ordinal, unit.kind, unit.name, unit.start_byte, unit.end_byte, unit.start_line,
                unit.end_line, unit.comment_byte, unit.fingerprint,
            )  # fmt: skip

    def _fingerprint_again(self) -> None:
        """Texts stored before: their units are as they were, and known by other fingerprints or by none."""
        again = [address for address in self._stored.outdated if address in self._units]
        if not again:
            return
        rows = [
            (content_id, unit.start_byte, unit.end_byte, unit.fingerprint)
            for address in again
            for content_id in [self._ids[address]]
            for unit in self._units[address]
        ]
        self._tx.execute("create_incoming_fingerprints")
        columns = ("content_id", "start_byte", "end_byte", "fingerprint")
        self._tx.copy("incoming_fingerprints", columns, rows)
        self._tx.execute("record_fingerprints")
        ids = _array(self._ids[address] for address in again)
        self._tx.execute("record_units_version", ids=ids, version=FINGERPRINT_VERSION)

    def _record_groups(self) -> None:
        decision = self._decision
        new = decision.new_groups
        real = dict(zip(new, _take(self._tx, "new_group_ids", len(new)), strict=True))
        added = [(real[group], real[group], self._ids[decision.champions[group]]) for group in new]
        self._tx.copy("groups", ("id", "root", "content_id"), added)
        for absorbed, into in decision.merged.items():
            self._tx.execute("merge_groups", absorbed=absorbed, into=into)
        for group, address in decision.champions.items():
            if group > 0:
                self._tx.execute("set_kept", group_id=group, content_id=self._ids[address])
        keys = ((key, real.get(group, group)) for key, group in decision.keys)
        self._tx.copy("bands", ("key", "group_id"), keys)

    def _demote(self) -> None:
        for content_id, kept in self._decision.demoted.items():
            better = self._ids[kept]
            detail = _duplicate_detail(better)
            self._tx.execute("demote_content", content_id=content_id)
            self._tx.execute("refuse_demoted", content_id=content_id, better=better, detail=detail)
            self._tx.execute("redirect_duplicates", content_id=content_id, better=better)

    def _upsert(self, files: Sequence[File]) -> None:
        self._tx.execute("create_incoming_files")
        self._tx.copy("incoming_files", FILE_COLUMNS, map(self._file_row, files))
        self._tx.execute("upsert_files", source_id=self._source_id, rules=self._rules)

    def _file_row(self, file: File) -> tuple[object, ...]:
        told = (file.path, file.size_bytes, file.mtime_ns, file.language)
        if isinstance(file.outcome, Rejection):
            return (*told, None, None, file.outcome.reason.value, file.outcome.detail, None)
        if file.outcome in self._decision.kept:
            content_id = self._ids[file.outcome]
            return (*told, content_id, self._cluster_of[content_id], None, None, None)
        kept = self._ids[self._decision.rejected[file.outcome]]
        refusal = (Reason.NEAR_DUPLICATE.value, _duplicate_detail(kept), kept)
        return (*told, None, self._cluster_of[kept], *refusal)


@dataclass(frozen=True, slots=True)
class Before:
    """What a path held until now."""

    content_id: int | None
    cluster_id: int | None


def release(transaction: Transaction, contents: Iterable[int]) -> bool:
    """Texts that may have lost their last file; true when near duplicates of one are to be judged again."""
    if not (ids := set(contents)):
        return False
    gone = [row.id for row in transaction.all("release_contents", ids=_array(ids))]
    return bool(gone) and transaction.execute("judge_duplicates_again", ids=_array(gone)) > 0


def retire(transaction: Transaction, ids: Sequence[int]) -> bool:
    """Files that are gone; true when near duplicates of what they held are to be judged again."""
    transaction.execute("lock_store")
    rows = transaction.all("retire_files", ids=list(ids))
    return release(transaction, (row.content_id for row in rows if row.content_id is not None))


def retire_source(transaction: Transaction, name: str) -> int:
    """Every file of a source that is gone; how many there were."""
    row = transaction.one("find_source", name=name)
    transaction.execute("lock_store")
    held = transaction.all("retire_source", source_id=row.id)
    transaction.execute("forget_stamp", source_id=row.id)
    release(transaction, (row.content_id for row in held if row.content_id is not None))
    return len(held)


def live_sources(transaction: Transaction) -> list[str]:
    """Names of the sources that have files which are not retired."""
    return [str(row.name) for row in transaction.all("live_sources")]


def known_files(transaction: Transaction, source_id: int, after: str) -> list[Known]:
    """A page of what is known of a source's paths, in their order, from beyond this path on."""
    rows = transaction.all("known_files", source_id=source_id, after=after, most=KNOWN_PAGE)
    return [Known(*row) for row in rows]


def _take(transaction: Transaction, query: str, count: int) -> list[int]:
    return [row[0] for row in transaction.all(query, count=count)] if count else []


def _array(ids: Iterable[int]) -> str:
    """A bigint[] as PostgreSQL reads it fastest."""
    return "{" + ",".join(map(str, ids)) + "}"


def _duplicate_detail(content_id: int) -> str:
    return f"of content {content_id}"
