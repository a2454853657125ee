"""The first look at a chunk's files: read and judge, on any host that sees the sources. No database."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from services.processor.claims import Claim, Entry
from services.processor.judge import judge_path
from services.processor.judging import Judge
from services.processor.reasons import Reason
from services.processor.rules import Rules
from services.processor.sources import source
from services.processor.sources.reading import VANISHED, Reader
from services.processor.sources.source import Source
from services.processor.stages import licence
from services.processor.store.storing import File
from services.processor.values import Draft, Judgement, Outcome, Parsed, Read, Rejection


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at one entry came to, and the size and time of what was read."""

    size_bytes: int
    mtime_ns: int
    judgement: Judgement


class Looker(Protocol):
    """What the pipeline asks: here and now, or of what other hosts have answered already."""

    def look(self, claim: Claim) -> Sequence[Looked]:
        """One for each entry, in order."""

    def parse(self, texts: Sequence[tuple[str, str]]) -> list[Parsed]:
        """One for each (language, text), in order."""

    def close(self) -> None: ...


class FirstLook:
    """Looks here and now. Not thread-safe: a thread has its own."""

    def __init__(self, ingest: Path, rules: Rules, judge: Judge | None = None) -> None:
        self._ingest = ingest
        self._rules = rules
        self._judge = judge or Judge(rules.benchmarks, decontaminate=rules.decontaminate)
        self._sources: dict[str, Source] = {}  # by printable name, as last listed

    def close(self) -> None:
        self._judge.close()

    def look(self, claim: Claim) -> list[Looked]:
        """Read and judge the files of a chunk."""
        reads = list(self._read(claim))
        files = [(entry.found.path, read.data) for entry, read in reads if isinstance(read, Read)]
        judgements = iter(self._judge.judge(files))
        return [self._looked(claim, entry, read, judgements) for entry, read in reads]

    def parse(self, texts: Sequence[tuple[str, str]]) -> list[Parsed]:
        return self._judge.parse(texts)

    def _looked(
        self, claim: Claim, entry: Entry, read: Read | Rejection, judgements: Iterator[Judgement]
    ) -> Looked:
        if isinstance(read, Rejection):
            found = entry.found
            return Looked(found.size_bytes, found.mtime_ns, Judgement(None, refused=read))
        judgement = permitted(next(judgements), claim.licence, self._rules)
        return Looked(read.size_bytes, read.mtime_ns, judgement)

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
                        files = files or stack.enter_context(self._reader(claim.source))
                    except (OSError, KeyError):  # the source itself is gone
                        yield entry, VANISHED
                    else:
                        yield entry, files.read(found)

    def _reader(self, name: str) -> Reader:
        """Of the source of this name. Raises KeyError when there is none, OSError when it is gone."""
        if name not in self._sources:
            self._sources = {found.printable: found for found in source.find(self._ingest)}
        return source.reader(self._sources[name])


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
        self._files: dict[str, File] = {}
        self.drafts: dict[bytes, Draft] = {}

    @property
    def files(self) -> list[File]:
        return list(self._files.values())

    def refuse(self, entry: Entry, refusal: Rejection) -> None:
        found = entry.found
        self._put(entry, found.size_bytes, found.mtime_ns, None, refusal)

    def add(self, entry: Entry, looked: Looked) -> None:
        judgement = looked.judgement
        outcome: bytes | Rejection
        if judgement.draft is not None:
            outcome = judgement.draft.sha256
            self.drafts.setdefault(outcome, judgement.draft)
        else:
            assert judgement.refused is not None, "a judgement is a draft or a refusal"
            outcome = judgement.refused
        self._put(entry, looked.size_bytes, looked.mtime_ns, judgement.language, outcome)

    def refuse_path(self, path: str, refusal: Rejection) -> None:
        """One file that had been accepted; its text goes with the last file that has it."""
        file = self._files[path]
        self._files[path] = replace(file, outcome=refusal)
        if isinstance(file.outcome, bytes) and all(
            other.outcome != file.outcome for other in self._files.values()
        ):
            self.drafts.pop(file.outcome, None)

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
        self._files[path] = File(path, size_bytes, mtime_ns, language, outcome, entry.is_known)


def lot_of(claim: Claim, looks: Sequence[Looked]) -> Lot:
    """The chunk's files as they were looked at; what has vanished is left to the next walk."""
    lot = Lot(claim)
    for entry, looked in zip(claim.entries, looks, strict=True):
        refused = looked.judgement.refused
        if refused is None or refused.reason is not Reason.VANISHED:
            lot.add(entry, looked)
    return lot
