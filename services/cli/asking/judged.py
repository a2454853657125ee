"""What the processor makes of one file now: the same walk, reader and pure functions, and no database."""

import os
from dataclasses import dataclass

from services.cli.asking.locate import PathError, Place
from services.core.errors import RatchetError
from services.processor.judge import judge_path
from services.processor.judging import Judge
from services.processor.look import permitted
from services.processor.rules import Rules
from services.processor.sources import licence_files, options, source
from services.processor.sources.options import Options
from services.processor.sources.reading import DIRECTORY_FLAGS, read_file
from services.processor.sources.source import Kind, Source
from services.processor.values import Draft, Found, Read, Rejection, Unit


@dataclass(frozen=True, slots=True)
class Verdict:
    """A draft or a refusal, and what it was judged from."""

    found: Found
    language: str | None = None
    refused: Rejection | None = None
    draft: Draft | None = None
    units: tuple[Unit, ...] = ()
    source_licence: str | None = None


def judge_now(place: Place, rules: Rules, judge: Judge) -> Verdict | None:
    """The verdict on what lies there; None: nothing does, or the processor passes it over.

    Raises PathError for a directory, RatchetError when the source cannot be read.
    """
    try:
        if place.source is not None:
            return _judge_in_source(place.source, place.path, rules, judge)
        if place.file is not None:
            directory = os.open(place.file.parent, DIRECTORY_FLAGS)
            try:
                read = read_file(directory, place.file.name)
            finally:
                os.close(directory)
            return _judge(_found(place.path, read), read, None, rules, judge)
    except OSError as exc:
        raise RatchetError(f"{place.shown} cannot be read: {exc.strerror or exc}") from exc
    return None


def _judge_in_source(found: Source, path: str, rules: Rules, judge: Judge) -> Verdict | None:
    chosen = options.read(found.path) if found.kind is not Kind.LOOSE else Options()
    met = _stream(found, path, chosen) if found.kind in source.STREAMS else _walk(found, path, chosen)
    if met is None:
        if path.endswith("/"):
            raise PathError(f"{found.printable}/{path} is a directory: name a file in it")
        return None
    licence = chosen.licence or licence_files.of_source(found, chosen, rules.restricts_licences)
    return _judge(*met, licence, rules, judge)


def _walk(found: Source, path: str, chosen: Options) -> tuple[Found, Read | Rejection] | None:
    """The entry of a tree for this path, or the refused directory that it lies in."""
    for entry in source.walk(found, chosen):
        if _covers(entry, path):
            if refused := entry.refused or judge_path(entry.path):
                return entry, refused
            with source.reader(found) as files:
                return entry, files.read(entry)
        if entry.path > path:
            return None
    return None


def _stream(found: Source, path: str, chosen: Options) -> tuple[Found, Read | Rejection] | None:
    for entry, data in source.stream(found, chosen):
        if _covers(entry, path):
            if isinstance(data, Rejection):
                return entry, data
            return entry, judge_path(path) or Read(data, entry.size_bytes, entry.mtime_ns)
    return None


def _covers(entry: Found, path: str) -> bool:
    return entry.path == path or (entry.path.endswith("/") and path.startswith(entry.path))


def _found(path: str, read: Read | Rejection) -> Found:
    return Found(path, read.size_bytes, read.mtime_ns) if isinstance(read, Read) else Found(path, 0, 0)


def _judge(
    found: Found, read: Read | Rejection, source_licence: str | None, rules: Rules, judge: Judge
) -> Verdict:
    if isinstance(read, Rejection):
        return Verdict(found, refused=read, source_licence=source_licence)
    (judgement,) = judge.judge([(found.path, read.data)])
    judgement = permitted(judgement, source_licence, rules)
    draft, refused = judgement.draft, judgement.refused
    if draft is None:
        return Verdict(found, judgement.language, refused, source_licence=source_licence)
    (parsed,) = judge.parse([(draft.language, draft.text)])
    if parsed.refused is not None:
        return Verdict(found, judgement.language, parsed.refused, source_licence=source_licence)
    return Verdict(found, judgement.language, None, draft, parsed.units, source_licence)
