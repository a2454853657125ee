"""The rows of one chunk: its texts, their units and groups, and what became of each file."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from services.core.db import Transaction, as_json
from services.core.process import failpoint
from services.processor import clusters
from services.processor.reasons import Reason
from services.processor.stages.fingerprints import FINGERPRINT_VERSION
from services.processor.store import leaving, uniting
from services.processor.store.ids import array, take
from services.processor.store.stored import Stored
from services.processor.values import Draft, Rejection, Unit

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
class Before:
    """What a path held until now."""

    content_id: int | None
    cluster_id: int | None


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
        self._cluster_of: dict[int, int] = {}  # content → its cluster once they are united

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
        leaving.release(self._tx, held - still)
        failpoint("processor.before_commit")

    def _held_before(self, files: Sequence[File]) -> dict[str, Before]:
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
            self._ids.update(zip(new, take(self._tx, "new_content_ids", len(new)), strict=True))
        stored = [self._ids[address] for address in self._decision.kept if address in self._stored.ids]
        if stored:
            self._tx.execute("revive_contents", ids=array(stored))
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

    def _unite_clusters(self, files: Sequence[File], before: Mapping[str, Before]) -> None:
        replaced = [
            (file.outcome, was.cluster_id)
            for file in files
            if (was := before.get(file.path)) is not None
            and was.cluster_id is not None
            and self._is_new(file.outcome)
        ]
        self._cluster_of = uniting.unite(
            self._tx, self._drafts, self._stored, self._decision, self._ids, replaced
        )

    def _is_new(self, outcome: bytes | Rejection) -> TypeGuard[bytes]:
        """A text stored now: one stored before has a past of its own, in which this path has no part."""
        return (
            isinstance(outcome, bytes) and outcome in self._decision.kept and outcome not in self._stored.ids
        )

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
        ids = array(self._ids[address] for address in again)
        self._tx.execute("record_units_version", ids=ids, version=FINGERPRINT_VERSION)

    def _record_groups(self) -> None:
        decision = self._decision
        new = decision.new_groups
        real = dict(zip(new, take(self._tx, "new_group_ids", len(new)), strict=True))
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


def _duplicate_detail(content_id: int) -> str:
    return f"of content {content_id}"
