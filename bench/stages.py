"""What each stage of ingestion costs by itself: its floor, and what ours takes, in CPU seconds.

The *floor* of a stage is the bare operation of its library (scandir and stat, read, decode, SHA-256, the
parse of tree-sitter, COPY of the finished rows into the same tables with their indexes). Where there is
no such thing, it is our own function alone: what full ingestion takes beyond the sum of the floors is then
the wiring (processes, pipes, claims, look-ups, decisions, locks).
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.full import Server
from services.core import db
from services.core.settings import PROJECT
from services.core.target import Target
from services.processor import clusters  # fmt: skip
from services.processor.judge import judge_path
from services.processor.messages import ToJudge, ToParse
from services.processor.sources import source  # fmt: skip
from services.processor.sources.options import Options
from services.processor.sources.source import Source
from services.processor.stages import (  # fmt: skip
    decode,
    dedup,
    filters,
    language,
    licence,
    minhash,
    score,
    secrets,
    syntax,
    units,
    words,
)
from services.processor.stages.decontaminate import Benchmarks
from services.processor.stages.grammars import GRAMMARS
from services.processor.values import Code, Draft, Found, Judgement, Parsed, Read, Rejection

REQUEST = 64  # files that a judge process is sent at once
BATCH = 256  # files, as a chunk has them: what one stage leaves in the caches, the next one finds there
TABLES = ("sources", "contents", "units", "groups", "bands", "files")  # in the order of their references
JUDGE_START = """
import services.processor.judging, services.processor.judge
from services.processor.stages.decontaminate import Benchmarks
Benchmarks.load(None)
"""
PROCESSOR_START = "import services.processor.worker"


@dataclass
class Stage:
    """CPU seconds for the whole corpus."""

    floor_s: float = 0.0
    ours_s: float = 0.0


@dataclass
class Stages:
    """All stages in the order in which a file meets them."""

    by_name: dict[str, Stage] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str, *, floor: bool = True, ours: bool = True) -> Iterator[None]:
        """Add the CPU time of this process to a stage's floor, to ours or to both."""
        begun = time.process_time()
        yield
        used = time.process_time() - begun
        self.add(name, used * floor, used * ours)

    def add(self, name: str, floor_s: float, ours_s: float) -> None:
        stage = self.by_name.setdefault(name, Stage())
        stage.floor_s += floor_s
        stage.ours_s += ours_s

    @property
    def floor_s(self) -> float:
        return sum(stage.floor_s for stage in self.by_name.values())

    @property
    def ours_s(self) -> float:
        return sum(stage.ours_s for stage in self.by_name.values())

    def table(self, files: int, full_s: float) -> str:
        """Microseconds a file of the corpus, and the share of full ingestion."""
        shown = {**self.by_name, "sum": Stage(self.floor_s, self.ours_s)}
        shown["wiring: what is left of the whole"] = Stage(0.0, full_s - self.ours_s)
        rows = [f"{'CPU µs a file':36}{'floor':>9}{'ours':>9}{'share':>9}"]
        for name, stage in shown.items():
            floor, ours = 1e6 * stage.floor_s / files, 1e6 * stage.ours_s / files
            rows.append(f"{name:36}{floor:9.1f}{ours:9.1f}{stage.ours_s / full_s:9.1%}")
        return "\n".join(rows)


@dataclass
class _Judged:
    """What the first looks left for what comes after them."""

    requests: list[tuple[str, bytes]] = field(default_factory=list)  # what a judge is sent
    refused: int = 0
    drafts: dict[bytes, Draft] = field(default_factory=dict)


def measure(folder: Path, server: Server, finished: Target) -> Stages:
    """Each stage by itself, over the sources in this folder; their rows lie in the database `finished`."""
    stages, judged = Stages(), _Judged()
    _start(stages)
    benchmarks = Benchmarks.load(None)
    for found, entries in _walk(stages, folder):
        for start in range(0, len(entries), BATCH):
            read = _read(stages, found, entries[start : start + BATCH])
            codes = _decode(stages, read)
            _judge(stages, codes, benchmarks, judged)
            judged.requests += read
            judged.refused += len(read) - len(codes)
    _second_look(stages, judged)
    _store(stages, server, finished)
    return stages


def _start(stages: Stages) -> None:
    """The imports of the processor and of one judge process, and the benchmarks that a judge loads."""
    for code in (PROCESSOR_START, JUDGE_START):
        command = [sys.executable, "-c", f"{code}\nimport time; print(time.process_time())"]
        done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, check=True)
        stages.add("start: imports, benchmarks", float(done.stdout), float(done.stdout))


def _walk(stages: Stages, folder: Path) -> list[tuple[Source, list[Found]]]:
    with stages.timed("walk, stat", ours=False):
        _scandir(folder)
    with stages.timed("walk, stat", floor=False):
        listed = [(found, list(source.walk(found, Options()))) for found in source.find(folder)]
    with stages.timed("rules of names"):
        return [
            (found, [entry for entry in entries if not (entry.refused or judge_path(entry.path))])
            for found, entries in listed
        ]


def _scandir(folder: str | Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _scandir(entry.path)
            else:
                entry.stat(follow_symlinks=False)


def _read(stages: Stages, found: Source, entries: Sequence[Found]) -> list[tuple[str, bytes]]:
    paths = [found.path / entry.path for entry in entries]
    with stages.timed("read", ours=False):
        for path in paths:
            with path.open("rb", buffering=0) as file:
                file.read()
    with stages.timed("read", floor=False), source.reader(found) as files:
        read = [(entry.path, files.read(entry)) for entry in entries]
    return [(path, data.data) for path, data in read if isinstance(data, Read)]


def _decode(stages: Stages, read: Sequence[tuple[str, bytes]]) -> list[Code]:
    """Up to the filters; the codes that pass them."""
    with stages.timed("decode", ours=False):
        for _, data in read:
            with suppress(UnicodeDecodeError):
                data.decode()
    with stages.timed("decode", floor=False):
        texts = [(path, text) for path, data in read if isinstance(text := decode.decode(data), str)]
    with stages.timed("language"):
        spoken = [(path, language.detect(path, text), text) for path, text in texts]
    with stages.timed("filters"):
        codes = [
            Code(path, one, text, text.encode(), text.splitlines())
            for path, one, text in spoken
            if isinstance(one, str)
        ]
        return [code for code in codes if filters.refuse(code) is None]


def _judge(stages: Stages, codes: list[Code], benchmarks: Benchmarks, judged: _Judged) -> None:
    """All else of the first look, at what passes the filters."""
    with stages.timed("words, n-grams"):
        pairs = [(code, words.ngrams(words.hashes_of(code.figures.folded))) for code in codes]
    with stages.timed("decontamination"):
        pairs = [pair for pair in pairs if benchmarks.match(pair[0].text, pair[0].language, pair[1]) is None]
    with stages.timed("secrets"):
        redactions = [secrets.redact(code.text).redactions for code, _ in pairs]
    with stages.timed("address", ours=False):
        for code, _ in pairs:
            hashlib.sha256(code.data).digest()
    with stages.timed("address", floor=False):
        addresses = [dedup.address(code.data) for code, _ in pairs]
    with stages.timed("score"):
        scores = [score.score(code) for code, _ in pairs]
    with stages.timed("MinHash"):
        bands = [minhash.keys_of(grams) for _, grams in pairs]
    with stages.timed("licence"):
        licences = [licence.of_file(code.text) for code, _ in pairs]
    for (code, _), address, points, keys, terms, found in zip(
        pairs, addresses, scores, bands, licences, redactions, strict=True
    ):
        judged.drafts[address] = Draft(
            address, code.language, code.text, len(code.data), len(code.lines), points, keys, terms, found
        )


def _second_look(stages: Stages, judged: _Judged) -> None:
    """What is kept is parsed; what goes to a judge process and back is packed and unpacked."""
    drafts = list(judged.drafts.values())
    with stages.timed("near duplicates"):
        candidates = [clusters.Candidate(draft.sha256, draft.score.value, draft.bands) for draft in drafts]
        decision = clusters.decide(candidates, {}, {})
    kept = [judged.drafts[address] for address in decision.kept]
    with stages.timed("msgpack"):
        for start in range(0, len(judged.requests), REQUEST):
            batch = drafts[start : start + REQUEST]
            _there_and_back(
                ToJudge(judged.requests[start : start + REQUEST]), [Judgement(None, one) for one in batch]
            )
    for start in range(0, len(kept), REQUEST):
        _parse(stages, kept[start : start + REQUEST])


def _parse(stages: Stages, kept: Sequence[Draft]) -> None:
    """A request's worth, so that no more is held than a judge process holds."""
    texts = [(GRAMMARS[draft.language], draft.text.encode()) for draft in kept if draft.language in GRAMMARS]
    parsers = [(syntax.parser(grammar.module, grammar.entry), data) for grammar, data in texts]
    with stages.timed("parse, units", ours=False):
        for parser, data in parsers:
            parser.parse(data)
    with stages.timed("parse, units", floor=False):
        found = [units.split(draft.language, draft.text) for draft in kept]
    with stages.timed("msgpack"):
        parsed = [Parsed(refused=one) if isinstance(one, Rejection) else Parsed(one) for one in found]
        _there_and_back(ToParse([(draft.language, draft.text) for draft in kept]), parsed)


def _there_and_back(request: ToJudge | ToParse, answers: Sequence[Judgement | Parsed]) -> None:
    encode = msgspec.msgpack.Encoder().encode
    msgspec.msgpack.Decoder(type(request)).decode(encode(request))
    if answers:
        msgspec.msgpack.Decoder(list[type(answers[0])]).decode(encode(answers))  # type: ignore[misc]


def _store(stages: Stages, server: Server, finished: Target) -> None:
    """The finished rows once more into empty tables, by COPY in one transaction: the CPU of both sides."""
    with server.database() as empty, tempfile.TemporaryDirectory() as folder:
        with closing(db.connect(finished)) as connection, connection.cursor() as cursor:
            for table in TABLES:
                with Path(folder, table).open("wb") as file:
                    cursor.copy_expert(f"COPY {table} TO STDOUT", file)
        with closing(db.connect(empty)) as connection, connection.cursor() as cursor:
            before = server.cpu_seconds() + time.process_time()
            for table in TABLES:
                with Path(folder, table).open("rb") as file:
                    cursor.copy_expert(f"COPY {table} FROM STDIN", file)
            connection.commit()
            used = server.cpu_seconds() + time.process_time() - before  # the backend still lives
        stages.add("rows by COPY, with the server", used, used)
