"""Ask the judge process: hostile bytes are decoded, searched and parsed there, and nowhere else.

It is a child without credentials, with limits on memory and on processor time a request, and opens no
file of a source. When it dies or hangs, the batch is asked again file by file, so that the one file
that did it is refused for it and the others are judged as ever.
"""

import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from services.core.errors import RatchetError
from services.core.settings import PROJECT
from services.processor import messages
from services.processor.messages import LENGTH, ToJudge, ToParse
from services.processor.reasons import Reason
from services.processor.values import Judgement, Parsed, Rejection

log = logging.getLogger(__name__)

REQUEST_FILES = 64
REQUEST_BYTES = 1_000_000  # of a request with more than one file
WALL_SECONDS = 60.0  # a request may take on a busy machine
FATAL = frozenset({Reason.JUDGE_CRASHED, Reason.JUDGE_TIMEOUT})
RENEWED_AFTER = 50_000  # texts parsed: the binding of the parser loses about 1 kB of memory with each
MAX_ANSWER_BYTES = 64_000_000  # a megabyte that is nothing but units answers with 10 MB


Item = TypeVar("Item", tuple[str, bytes], tuple[str, str])
Answer = TypeVar("Answer")


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
        self._parsed = 0  # texts, by this child

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
        if self._parsed > RENEWED_AFTER:
            self.close()
        self._parsed += len(texts)
        for batch in _batches(texts):
            try:
                answers += self._parse(batch)
            except JudgeDiedError:
                answers += [self._parse_alone(text) for text in batch]
        return answers

    def close(self) -> None:
        """End the child; the next request starts another."""
        child, self._child = self._child, None
        self._parsed = 0
        if child is not None:
            child.kill()
            child.communicate()

    def _judge(self, files: list[tuple[str, bytes]], *, alone: bool = False) -> list[Judgement]:
        return self._answers(messages.judgements, ToJudge(files, alone), files)

    def _judge_alone(self, file: tuple[str, bytes]) -> Judgement:
        try:
            answer = self._judge([file], alone=True)[0]
        except JudgeDiedError as exc:
            answer = Judgement(None, refused=exc.refusal)
        if answer.refused is not None and answer.refused.reason in FATAL:
            log.warning("%s: %s", file[0], answer.refused.detail)
        return answer

    def _parse(self, texts: list[tuple[str, str]], *, alone: bool = False) -> list[Parsed]:
        return self._answers(messages.parsed, ToParse(texts, alone), texts)

    def _parse_alone(self, text: tuple[str, str]) -> Parsed:
        try:
            answer = self._parse([text], alone=True)[0]
        except JudgeDiedError as exc:
            answer = Parsed(refused=exc.refusal)
        if answer.refused is not None and answer.refused.reason in FATAL:
            log.warning("a %s text of %d characters: %s", text[0], len(text[1]), answer.refused.detail)
        return answer

    def _answers(
        self,
        decoder: msgspec.msgpack.Decoder[list[Answer]],
        request: messages.Request,
        asked: Sequence[object],
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

    def _ask(self, request: messages.Request) -> bytes:
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        payload = messages.encode(request)
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
        raise JudgeDiedError(messages.how_it_ended(status))

    def _start(self) -> subprocess.Popen[bytes]:
        """A child that knows nothing of ours: no setting, no password, no descriptor but its two pipes.

        Raises JudgeNotReadyError with what it said when it does not come to be ready.
        """
        environment = {
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(PROJECT), *filter(None, sys.path)])),
            "OPENBLAS_NUM_THREADS": "1",  # it computes on one core, and each thread would reserve memory
            "RATCHET_PARENT_PID": str(os.getpid()),
        }
        command = [sys.executable, "-P", "-m", "services.processor.judge_process", *self._arguments]
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
