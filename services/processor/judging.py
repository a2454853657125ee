"""The judge process: hostile bytes are decoded, searched and parsed here, and nowhere else.

A child without credentials, with limits on memory and on processor time a request; it opens no
file of a source. When it dies or hangs, the batch is asked again file by file, in a new child, so that
the one file that did it is refused for it and the others are judged as ever.

Frames over its standard input and output: four bytes of length, then msgpack, decoded into typed
values on both sides (a child that was taken over can answer nonsense, but not make us run it).
"""

import logging
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from services.core.errors import RatchetError
from services.core.process import die_with_parent
from services.core.settings import PROJECT
from services.processor.reasons import Reason
from services.processor.values import Judgement, Parsed, Rejection

if TYPE_CHECKING:
    from services.processor.decontaminate import Benchmarks

log = logging.getLogger(__name__)

REQUEST_FILES = 64
REQUEST_BYTES = 1_000_000  # of a request with more than one file
CPU_SECONDS = 10  # a request may use; the slowest megabyte we know takes under two
WALL_SECONDS = 60.0  # a request may take on a busy machine
DATA_BYTES = 400_000_000  # the child's private memory; a few files at the size limit need 150 MB
MAX_ANSWER_BYTES = 64_000_000  # a megabyte that is nothing but units answers with 10 MB
LENGTH = struct.Struct("<I")


class ToJudge(msgspec.Struct, tag=True):
    files: list[tuple[str, bytes]]  # path below its source, bytes


class ToParse(msgspec.Struct, tag=True):
    texts: list[tuple[str, str]]  # language, text


Request = ToJudge | ToParse
Item = TypeVar("Item", tuple[str, bytes], tuple[str, str])
Answer = TypeVar("Answer")
_encode = msgspec.msgpack.Encoder().encode
_requests = msgspec.msgpack.Decoder(Request)
_judgements = msgspec.msgpack.Decoder(list[Judgement])
_parsed = msgspec.msgpack.Decoder(list[Parsed])


class JudgeDiedError(Exception):
    """The judge process ended, or was killed, before it answered."""

    def __init__(self, refusal: Rejection) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


class JudgeNotReadyError(RatchetError, RuntimeError):
    """The judge process cannot begin: a fault of the installation or the settings, not of any file."""


class Judge:
    """The parent's end: starts the child at the first request, replaces it when it dies. Not thread-safe."""

    def __init__(self, benchmarks: Path | None, *, decontaminate: bool = True) -> None:
        self._arguments = [str(benchmarks or ""), "yes" if decontaminate else "no"]
        self._child: subprocess.Popen[bytes] | None = None

    def judge(self, files: Sequence[tuple[str, bytes]]) -> list[Judgement]:
        """The judgement of each (path, bytes), in order."""
        answers: list[Judgement] = []
        for batch in _batches(files):
            try:
                answers += self._judge(batch)
            except JudgeDiedError:
                answers += [self._judge_alone(file) for file in batch]
        return answers

    def parse(self, texts: Sequence[tuple[str, str]]) -> list[Parsed]:
        """What the parser makes of each (language, text), in order."""
        answers: list[Parsed] = []
        for batch in _batches(texts):
            try:
                answers += self._parse(batch)
            except JudgeDiedError:
                answers += [self._parse_alone(text) for text in batch]
        return answers

    def close(self) -> None:
        """End the child; the next request starts another."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _judge(self, files: list[tuple[str, bytes]]) -> list[Judgement]:
        return self._answers(_judgements, ToJudge(files), files)

    def _judge_alone(self, file: tuple[str, bytes]) -> Judgement:
        try:
            return self._judge([file])[0]
        except JudgeDiedError as exc:
            log.warning("%s: %s", file[0], exc)
            return Judgement(None, refused=exc.refusal)

    def _parse(self, texts: list[tuple[str, str]]) -> list[Parsed]:
        return self._answers(_parsed, ToParse(texts), texts)

    def _answers(
        self, decoder: msgspec.msgpack.Decoder[list[Answer]], request: Request, asked: Sequence[object]
    ) -> list[Answer]:
        """One for each of what was asked; a child that answers anything else is not asked again."""
        payload = self._ask(request)
        try:
            answers = decoder.decode(payload)
        except msgspec.DecodeError as exc:
            answers, said = [], str(exc)[:200]
        else:
            said = f"{len(answers)} answers to {len(asked)} questions"
        if len(answers) != len(asked):
            self.close()
            raise JudgeDiedError(Rejection(Reason.JUDGE_CRASHED, said))
        return answers

    def _parse_alone(self, text: tuple[str, str]) -> Parsed:
        try:
            return self._parse([text])[0]
        except JudgeDiedError as exc:
            log.warning("a %s text of %d characters: %s", text[0], len(text[1]), exc)
            return Parsed(refused=exc.refusal)

    def _ask(self, request: Request) -> bytes:
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        payload = _encode(request)
        deadline = time.monotonic() + WALL_SECONDS
        try:
            _write(child.stdin.fileno(), LENGTH.pack(len(payload)) + payload, deadline)
            (length,) = LENGTH.unpack(_read(child.stdout.fileno(), LENGTH.size, deadline))
            if length <= MAX_ANSWER_BYTES:
                return _read(child.stdout.fileno(), length, deadline)
            child.kill()  # only one that was taken over says so
            status = child.wait()
        except (BrokenPipeError, EOFError):
            status = child.wait()
        except TimeoutError:
            status = -signal.SIGXCPU
        self.close()
        raise JudgeDiedError(_refusal(status))

    def _start(self) -> subprocess.Popen[bytes]:
        """A child that knows nothing of ours: no setting, no password, no descriptor but its two pipes.

        Raises JudgeNotReadyError with what it said when it does not come to be ready.
        """
        environment = {
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(PROJECT), *filter(None, sys.path)])),
            "OPENBLAS_NUM_THREADS": "1",  # it computes on one core, and each thread would reserve memory
            "RATCHET_PARENT_PID": str(os.getpid()),
        }
        command = [sys.executable, "-P", "-m", "services.processor.judging", *self._arguments]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=environment, cwd="/")
        self._child = child
        assert child.stdin is not None
        assert child.stdout is not None
        os.set_blocking(child.stdin.fileno(), False)
        try:
            deadline = time.monotonic() + WALL_SECONDS
            (length,) = LENGTH.unpack(_read(child.stdout.fileno(), LENGTH.size, deadline))
            trouble = _read(child.stdout.fileno(), length, deadline).decode()
        except EOFError:
            trouble = f"it ended with status {child.wait()}; what it said is above"
        except TimeoutError:
            trouble = f"it was not ready after {WALL_SECONDS:.0f} s"
        if trouble:
            self.close()
            raise JudgeNotReadyError(f"the judge process does not start: {trouble}")
        return child


def _batches(items: Sequence[Item]) -> list[list[Item]]:
    batches: list[list[Item]] = []
    size = 0
    for item in items:
        if not batches or len(batches[-1]) >= REQUEST_FILES or size + len(item[1]) > REQUEST_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(item)
        size += len(item[1])
    return batches


def _refusal(status: int) -> Rejection:
    """What to say of a file whose judge ended with this status."""
    if status == -signal.SIGXCPU:
        return Rejection(Reason.JUDGE_TIMEOUT, f"more than {CPU_SECONDS} s of processor time")
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return Rejection(Reason.JUDGE_CRASHED, f"the judge process ended with {how}")


def _write(descriptor: int, data: bytes, deadline: float) -> None:
    left = memoryview(data)
    while left:
        _, ready, _ = select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        left = left[os.write(descriptor, left) :]


def _read(descriptor: int, size: int, deadline: float) -> bytes:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        received = os.readv(descriptor, [left])  # os.read would make room for all that is left each time
        if not received:
            raise EOFError
        left = left[received:]
    return bytes(data)


# The child's side


def main(benchmarks: str, decontaminate: str) -> None:
    die_with_parent(int(os.environ["RATCHET_PARENT_PID"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    from services.processor.decontaminate import Benchmarks
    from services.processor.judge import judge, parse

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    try:
        folder = Path(benchmarks) if benchmarks else None
        measured_by = Benchmarks.load(folder) if decontaminate == "yes" else Benchmarks.of(())
    except (RatchetError, OSError) as exc:
        _send(stdout, str(exc).encode())
        return
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    _send(stdout, b"")
    while (request := _next(stdin)) is not None:
        _limit_processor_time()
        match request:
            case ToJudge(files):
                answer = _encode([_judged(judge, path, data, measured_by) for path, data in files])
            case ToParse(texts):
                answer = _encode([_parsed_text(parse, language, text) for language, text in texts])
        _send(stdout, answer)


def _judged(
    judge: Callable[[str, bytes, "Benchmarks"], Judgement], path: str, data: bytes, measured_by: "Benchmarks"
) -> Judgement:
    try:
        return judge(path, data, measured_by)
    except Exception as exc:  # a fault of ours, or no memory: of this file alone
        return Judgement(None, refused=_fault(exc))


def _parsed_text(parse: Callable[[str, str], Parsed], language: str, text: str) -> Parsed:
    try:
        return parse(language, text)
    except Exception as exc:
        return Parsed(refused=_fault(exc))


def _fault(exc: Exception) -> Rejection:
    return Rejection(Reason.JUDGE_CRASHED, f"{type(exc).__name__}: {exc}"[:200])


def _send(stream: BinaryIO, payload: bytes) -> None:
    stream.write(LENGTH.pack(len(payload)) + payload)
    stream.flush()


def _next(stream: BinaryIO) -> Request | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    request: Request = _requests.decode(stream.read(length))
    return request


def _limit_processor_time() -> None:
    """From now on so many seconds, or the kernel ends this process (SIGXCPU)."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + CPU_SECONDS, hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
