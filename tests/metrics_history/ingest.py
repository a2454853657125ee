"""Three sources, read and judged as the processor does it: stored texts with their units, and refusals."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from services.core.db import Transaction
from services.processor.judge import judge, parse
from services.processor.reasons import Reason
from services.processor.stages.decontaminate import Benchmarks
from services.processor.stages.fingerprints import FINGERPRINT_VERSION
from services.processor.store.storing import CONTENT_COLUMNS, UNIT_COLUMNS
from services.processor.values import Draft, Judgement, Rejection, Unit
from tests.metrics_history.code import SUFFIXES, written
from tests.metrics_history.hostile import HOSTILE, PEOPLE

NO_BENCHMARKS = Benchmarks.of([])
RULES = 7
FIRST_LOOK = timedelta(days=10)  # before the moment of the history


@dataclass(frozen=True)
class Repository:
    """A source and how much of which language is in it."""

    name: str
    kind: str
    licence: str | None
    commit: str | None
    files: Mapping[str, int]  # language → contents


SOURCES = (
    Repository("billing-service", "git", "MIT", "3f9d2c51" * 5, {"python": 78, "typescript": 46, "java": 28}),
    Repository("routing-engine", "bare", "Apache-2.0", "a81be40c" * 5, {"rust": 62, "go": 48}),
    Repository('drop <i>2026" & co.zip', "archive", None, None, {"python": 38}),
)


@dataclass(frozen=True)
class Entry:
    """A file, when it was first read, and what became of it."""

    path: str
    data: bytes
    at: datetime
    judgement: Judgement
    units: tuple[Unit, ...] = ()
    copy_of: str | None = None  # path, in this source, of what it is nearly the same as


def arrivals(count: int, moment: datetime) -> Iterator[datetime]:
    """When each of so many files was read: most at the first look, a tenth within the last hour."""
    for number in range(count):
        share = number / count
        if share < 0.6:
            yield moment - FIRST_LOOK + timedelta(seconds=0.4 * number)
        elif share < 0.9:
            yield moment - FIRST_LOOK * (1 - share) * 2 + timedelta(seconds=7 * number)
        else:
            yield moment - timedelta(minutes=55) * (1 - share) * 10


def fill(transaction: Transaction, moment: datetime) -> None:
    """Write the three sources as they were found until `moment`."""
    for ordinal, repository in enumerate(SOURCES):
        source_id = transaction.value("add_source", name=repository.name, kind=repository.kind)
        transaction._cursor.execute(
            "UPDATE sources SET commit_id = %s, licence = %s, stamp = 'read', history_id = %s,"
            " first_seen_at = %s, last_scanned_at = %s WHERE id = %s",
            (repository.commit, repository.licence, repository.commit, moment - FIRST_LOOK,
             moment - timedelta(minutes=4 + 3 * ordinal), source_id),
        )  # fmt: skip
        entries = list(_entries(repository, ordinal, moment))
        _store(transaction, source_id, repository, entries)
        _look(transaction, source_id, repository, entries)


def _look(transaction: Transaction, source_id: int, repository: Repository, entries: Sequence[Entry]) -> None:
    """One for each day on which something came."""
    for day, found in itertools.groupby(
        sorted(entries, key=lambda each: each.at), lambda each: each.at.date()
    ):
        came = list(found)
        kept = sum(entry.judgement.draft is not None for entry in came)
        before = sum(entry.at.date() < day for entry in entries)
        transaction._cursor.execute(
            "INSERT INTO looks"
            " (source_id, ended_at, seconds, commit_id, kept, refused, unchanged, retired, renamed)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, 0, 0)",
            (
                source_id,
                came[-1].at,
                0.4 + 0.02 * len(came),
                repository.commit,
                kept,
                len(came) - kept,
                before,
            ),
        )


def _entries(repository: Repository, ordinal: int, moment: datetime) -> Iterator[Entry]:
    found: list[tuple[str, bytes]] = []
    for language, count in repository.files.items():
        suffix = SUFFIXES[language]
        for number in range(count):
            text = written(language, number + 1000 * ordinal)
            found.append((f"src/{language}/{number % 7}/part_{number:03}.{suffix}", text.encode()))
    found.sort(key=lambda each: each[0].split("/")[2:])
    hostile = HOSTILE if repository.kind == "archive" else PEOPLE if repository.kind == "git" else []
    found[len(found) // 4 : len(found) // 4] = hostile
    refused = list(_refusals(repository, found))
    times = list(arrivals(len(found), moment))
    for (path, data), at in zip(found, times, strict=True):
        judgement = judge(path, data, NO_BENCHMARKS)
        units: tuple[Unit, ...] = ()
        if judgement.draft is not None:
            parsed = parse(judgement.draft.language, judgement.draft.text)
            units = parsed.units
            if parsed.refused is not None:
                judgement = Judgement(judgement.language, refused=parsed.refused)
        yield Entry(path, data, at, judgement, units)
    for number, (path, data, judgement, copy_of) in enumerate(refused):
        yield Entry(path, data, times[number * 7 % len(times)], judgement, copy_of=copy_of)


Refused = tuple[str, bytes, Judgement, str | None]


def _refusals(repository: Repository, found: list[tuple[str, bytes]]) -> Iterator[Refused]:
    """Files that the processor refuses, for eight reasons, by its own rules where it has to read."""
    language = next(iter(repository.files))
    suffix, some = SUFFIXES[language], [data.decode() for _, data in found]
    read: list[tuple[str, str]] = []
    for number in range(9):
        text = some[-1 - number]
        read.append((f"tiny/{number}.{suffix}", text[:20]))
        read.append((f"gen/{number}.{suffix}", f"// Code generated by protoc {number}. DO NOT EDIT.\n{text}"))
        if number % 2:
            read.append((f"wide/{number}.{suffix}", f"{text}\n{text.replace(chr(10), ' ') * 9}"))
            read.append(
                (f"again/{number}.{suffix}", "".join(line + "\n" * 2 for line in text.splitlines()) * 4)
            )
        if number % 3 == 0:
            read.append((f"broken/{number}.{suffix}", text.replace("(", "((")))
            read.append((f"assets/logo{number}.png", "PNG"))
    for path, text in read:
        judgement = judge(path, text.encode(), NO_BENCHMARKS)
        if judgement.draft is not None:
            parsed = parse(judgement.draft.language, text)
            judgement = Judgement(judgement.language, refused=parsed.refused)
        if judgement.refused is not None:
            yield path, text.encode(), judgement, None
    yield "node_modules/", b"", Judgement(None, refused=Rejection(Reason.VENDORED, "directory")), None
    copied = [(path, data) for path, data in found if path.startswith("src/")][::9]
    for path, data in copied:
        refusal = Rejection(Reason.NEAR_DUPLICATE, "")
        yield f"old/{path}", data + b"\n", Judgement(language, refused=refusal), path


def _store(transaction: Transaction, source_id: int, repository: Repository, entries: list[Entry]) -> None:
    kept = [(entry, entry.judgement.draft) for entry in entries if entry.judgement.draft is not None]
    ids = [row[0] for row in transaction.all("new_content_ids", count=len(kept))]
    clusters = [row[0] for row in transaction.all("new_cluster_ids", count=len(kept))]
    held = {entry.path: pair for (entry, _), pair in zip(kept, zip(ids, clusters, strict=True), strict=True)}
    transaction.copy(
        "contents",
        (*CONTENT_COLUMNS, "created_at"),
        [(*_content(draft, *held[entry.path]), entry.at) for entry, draft in kept],
    )
    transaction.copy(
        "units",
        UNIT_COLUMNS,
        [
            (held[entry.path][0], ordinal, unit.kind, unit.name, unit.start_byte, unit.end_byte,
             unit.start_line, unit.end_line, unit.comment_byte, unit.fingerprint)
            for entry, _ in kept
            for ordinal, unit in enumerate(entry.units)
        ],
    )  # fmt: skip
    transaction.copy("files", FILE_COLUMNS, _files(source_id, repository, entries, held))


FILE_COLUMNS = (
    "source_id", "path", "size_bytes", "mtime_ns", "language", "content_id", "cluster_id", "reason", "detail",
    "duplicate_of", "rules", "seen_at", "first_seen_at", "commit_id", "changed_at",
)  # fmt: skip


def _content(draft: Draft, content_id: int, cluster_id: int) -> tuple[object, ...]:
    redactions = [[redaction.kind, redaction.line] for redaction in draft.redactions]
    return (
        content_id, draft.sha256, cluster_id, draft.language, draft.text, draft.size_bytes, draft.lines,
        len(draft.text), draft.score.value, draft.score.points, draft.score.version, draft.licence,
        redactions, True, FINGERPRINT_VERSION,
    )  # fmt: skip


def _files(
    source_id: int, repository: Repository, entries: Iterable[Entry], held: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[object, ...]]:
    for entry in entries:
        content_id, cluster_id = held.get(entry.path, (None, None))
        refused, copy_of = entry.judgement.refused, held.get(entry.copy_of or "")
        if copy_of is not None and refused is not None:
            refused, cluster_id = replace(refused, detail=f"of content {copy_of[0]}"), copy_of[1]
        elif entry.copy_of is not None:
            continue  # what it is a copy of was refused itself
        changed = entry.at - timedelta(days=30)
        yield (
            source_id, entry.path, len(entry.data), int(changed.timestamp()) * 10**9,
            entry.judgement.language, content_id, cluster_id,
            refused and refused.reason.value, refused and refused.detail, copy_of and copy_of[0],
            RULES, entry.at, entry.at,
            repository.commit if repository.kind == "git" else None,
            changed if repository.kind == "git" else None,
        )  # fmt: skip
