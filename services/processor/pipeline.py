"""One chunk of files from its bytes to its rows: read → first look → what is kept → parse → store.

Wired here, and nowhere else. A chunk is one transaction, from taking it to its end: a processor that
dies in between has done nothing, and another takes the chunk.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from services.core.db import Database, Transaction
from services.core.errors import DatabaseUnavailableError
from services.core.process import failpoint
from services.processor import claims, licence, source, store
from services.processor.claims import Claim, Entry
from services.processor.judge import judge_path
from services.processor.judging import Judge, JudgeNotReadyError
from services.processor.reading import VANISHED, Reader
from services.processor.reasons import Reason
from services.processor.rules import Rules
from services.processor.source import Source
from services.processor.values import Draft, Judgement, Outcome, Read, Rejection, Unit

log = logging.getLogger(__name__)


class Pipeline:
    """Takes chunks and works them off, one at a time. Not thread-safe: a thread has its own."""

    def __init__(self, database: Database, ingest: Path, rules: Rules, judge: Judge | None = None) -> None:
        self._database = database
        self._ingest = ingest
        self._rules = rules
        self._digest = rules.digest
        self._judge = judge or Judge(rules.benchmarks)
        self._sources: dict[str, Source] = {}  # by printable name, as last listed

    def close(self) -> None:
        self._judge.close()

    def take_one(self) -> Outcome | None:
        """Work off the oldest chunk that nobody works on; None when there is none.

        Raises DatabaseUnavailableError or JudgeNotReadyError; the chunk is then as it was.
        """
        claim: Claim | None = None
        try:
            with self._database.transaction() as transaction:
                claim = claims.take(transaction)
                outcome = None if claim is None else self._work(transaction, claim)
        except (DatabaseUnavailableError, JudgeNotReadyError):
            raise
        except Exception as exc:  # a fault of ours must not stop the other files
            if claim is None:
                raise
            return self._put_aside(claim, exc)
        if outcome is not None:
            failpoint("processor.after_commit")
        return outcome

    def _work(self, transaction: Transaction, claim: Claim) -> Outcome:
        lot = self._first_look(claim)
        failpoint("processor.after_read")
        units = self._parse(lot, store.look_up(transaction, lot.drafts))
        transaction.execute("lock_store")
        while True:  # what is stored may have changed since; ends at the latest with no draft left
            stored = store.look_up(transaction, lot.drafts)
            decision = store.decide(lot.drafts, stored)
            unparsed = {a for a in decision.kept if a not in stored.ids and a not in units}
            if not unparsed:
                break
            claims.put(transaction, claim.source_id, lot.put_off(unparsed))
        store.Storing(transaction, claim.source_id, self._digest, lot.drafts, units, stored, decision).run(
            lot.files
        )
        claims.finish(transaction, claim)
        return lot.outcome(decision.rejected)

    def _first_look(self, claim: Claim) -> "Lot":
        """Read and judge the files of a chunk."""
        lot = Lot(claim)
        to_judge: list[tuple[Entry, Read]] = []
        for entry, read in self._read(claim):
            if isinstance(read, Read):
                to_judge.append((entry, read))
            elif read.reason is not Reason.VANISHED:  # else the next walk will not meet it and retires it
                lot.refuse(entry, read)
        judgements = self._judge.judge([(entry.found.path, read.data) for entry, read in to_judge])
        for (entry, read), judgement in zip(to_judge, judgements, strict=True):
            lot.add(entry, read, permitted(judgement, claim.licence, self._rules))
        return lot

    def _read(self, claim: Claim) -> Iterator[tuple[Entry, Read | Rejection]]:
        with ExitStack() as stack:
            files: Reader | None = None
            for entry in claim.entries:
                found = entry.found
                if refused := found.refused or judge_path(found.path):
                    yield entry, refused
                elif entry.data is not None:
                    yield entry, Read(entry.data, found.size_bytes, found.mtime_ns)
                else:
                    try:
                        files = files or stack.enter_context(source.reader(self._source(claim.source)))
                    except (OSError, KeyError):  # the source itself is gone
                        yield entry, VANISHED
                    else:
                        yield entry, files.read(found)

    def _source(self, name: str) -> Source:
        """The source of this printable name; raises KeyError when there is none."""
        if name not in self._sources:
            self._sources = {found.printable: found for found in source.find(self._ingest)}
        return self._sources[name]

    def _parse(self, lot: "Lot", stored: store.Stored) -> dict[bytes, Sequence[Unit]]:
        """The units of every draft that may be kept; those that no parser accepts are refused.

        A draft that loses against a stored text is not parsed, one that loses against another draft is:
        the winner may turn out not to parse.
        """
        decision = store.decide(lot.drafts, stored)
        wanted = [
            draft
            for address, draft in lot.drafts.items()
            if address not in stored.ids
            and (address in decision.kept or decision.rejected[address] in lot.drafts)
        ]
        parsed = self._judge.parse([(draft.language, draft.text) for draft in wanted])
        units: dict[bytes, Sequence[Unit]] = {}
        for draft, result in zip(wanted, parsed, strict=True):
            if result.refused is not None:
                lot.refuse_draft(draft.sha256, result.refused)
            else:
                units[draft.sha256] = result.units
        return units

    def _put_aside(self, claim: Claim, exc: Exception) -> Outcome:
        """A chunk that cannot be stored is divided, until the one file at fault is alone and refused."""
        log.error("%s: %d files could not be stored together: %s", claim.source, len(claim.entries), exc,
                  exc_info=len(claim.entries) == 1)  # fmt: skip
        lot = Lot(claim)
        with self._database.transaction() as transaction:
            if not claims.finish(transaction, claim):
                return lot.outcome({})  # another took it meanwhile
            if len(claim.entries) > 1:
                claims.divide(transaction, claim)
                return lot.outcome({})
            refusal = Rejection(Reason.JUDGE_CRASHED, f"could not be stored: {type(exc).__name__}"[:200])
            lot.refuse(claim.entries[0], refusal)
            nothing = store.look_up(transaction, {})
            store.Storing(
                transaction, claim.source_id, self._digest, {}, {}, nothing, store.decide({}, nothing)
            ).run(lot.files)
        return lot.outcome({})


def permitted(judgement: Judgement, source_licence: str | None, rules: Rules) -> Judgement:
    """Refuse a draft whose own licence, or else its source's, is not among those allowed."""
    if judgement.draft is None:
        return judgement
    expression = judgement.draft.licence or source_licence
    if licence.is_permitted(expression, rules.licence_allow, rules.licence_deny):
        return judgement
    detail = f"{expression or 'unknown'} is not among the licences allowed"
    return Judgement(judgement.language, refused=Rejection(Reason.LICENCE_DENIED, detail))


class Lot:
    """The files of a chunk and what became of each so far, and the drafts among them, each text once."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._entries = {entry.found.path: entry for entry in claim.entries}
        self._files: dict[str, store.File] = {}
        self.drafts: dict[bytes, Draft] = {}

    @property
    def files(self) -> list[store.File]:
        return list(self._files.values())

    def refuse(self, entry: Entry, refusal: Rejection) -> None:
        found = entry.found
        self._put(entry, found.size_bytes, found.mtime_ns, None, refusal)

    def add(self, entry: Entry, read: Read, judgement: Judgement) -> None:
        outcome: bytes | Rejection
        if judgement.draft is not None:
            outcome = judgement.draft.sha256
            self.drafts.setdefault(outcome, judgement.draft)
        else:
            assert judgement.refused is not None, "a judgement is a draft or a refusal"
            outcome = judgement.refused
        self._put(entry, read.size_bytes, read.mtime_ns, judgement.language, outcome)

    def refuse_draft(self, address: bytes, refusal: Rejection) -> None:
        """Every file of the chunk with this text."""
        del self.drafts[address]
        for path, file in self._files.items():
            if file.outcome == address:
                self._files[path] = replace(file, outcome=refusal)

    def put_off(self, addresses: Collection[bytes]) -> list[Entry]:
        """Take the files with these texts out of the lot."""
        for address in addresses:
            del self.drafts[address]
        paths = [path for path, file in self._files.items() if file.outcome in addresses]
        for path in paths:
            del self._files[path]
        return [self._entries[path] for path in paths]

    def outcome(self, near_duplicates: Collection[bytes]) -> Outcome:
        outcome = Outcome(self._claim.source_id)
        for file in self._files.values():
            if isinstance(file.outcome, Rejection):
                outcome.rejected[file.outcome.reason.value] += 1
            elif file.outcome in near_duplicates:
                outcome.rejected[Reason.NEAR_DUPLICATE.value] += 1
            else:
                outcome.stored += 1
        return outcome

    def _put(
        self, entry: Entry, size_bytes: int, mtime_ns: int, language: str | None, outcome: bytes | Rejection
    ) -> None:
        path = entry.found.path
        self._files[path] = store.File(path, size_bytes, mtime_ns, language, outcome, entry.is_known)
