"""The judge process itself: `python -m services.processor.judge_process BENCHMARKS DECONTAMINATE`.

It reads requests from its standard input and writes answers to its standard output; `judging` has
the other end. A file that is asked about alone, because it may have ended a judge before, is judged
in a fork: its end costs milliseconds, not a new interpreter.
"""

import os
import resource
import sys
import time
from pathlib import Path
from typing import BinaryIO

from services.core.errors import RatchetError
from services.core.process import die_with_parent
from services.processor import messages
from services.processor.judge import judge, parse
from services.processor.messages import LENGTH, ToJudge, ToParse
from services.processor.reasons import Reason
from services.processor.stages.decontaminate import Benchmarks
from services.processor.values import Judgement, Parsed, Rejection

ANSWERED = 77  # exit status of a fork that has sent its answer
DATA_BYTES = 400_000_000  # private memory; a few files at the size limit need 150 MB


def main(benchmarks: str, decontaminate: str) -> None:
    die_with_parent(int(os.environ["RATCHET_PARENT_PID"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
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
        if request.alone:
            _answer_in_a_fork(request, measured_by, stdout)
        else:
            _limit_processor_time()
            _send(stdout, _answer(request, measured_by))


def _answer(request: messages.Request, measured_by: Benchmarks) -> bytes:
    match request:
        case ToJudge(files):
            return messages.encode([_judged(path, data, measured_by) for path, data in files])
        case ToParse(texts):
            return messages.encode([_parsed(language, text) for language, text in texts])


def _answer_in_a_fork(request: messages.Request, measured_by: Benchmarks, stdout: BinaryIO) -> None:
    """The fork answers; when it dies before it does, its end is the answer."""
    judge_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with_parent(judge_pid)
        _limit_processor_time()
        _send(stdout, _answer(request, measured_by))
        os._exit(ANSWERED)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != ANSWERED:
        refusal = messages.how_it_ended(status)
        is_file = isinstance(request, ToJudge)
        _send(
            stdout,
            messages.encode([Judgement(None, refused=refusal) if is_file else Parsed(refused=refusal)]),
        )


def _judged(path: str, data: bytes, measured_by: Benchmarks) -> Judgement:
    try:
        return judge(path, data, measured_by)
    except Exception as exc:  # a fault of ours, or no memory: of this file alone
        return Judgement(None, refused=_fault(exc))


def _parsed(language: str, text: str) -> Parsed:
    try:
        return parse(language, text)
    except Exception as exc:
        return Parsed(refused=_fault(exc))


def _fault(exc: Exception) -> Rejection:
    return Rejection(Reason.JUDGE_CRASHED, f"{type(exc).__name__}: {exc}"[:200])


def _send(stream: BinaryIO, payload: bytes) -> None:
    stream.write(LENGTH.pack(len(payload)) + payload)
    stream.flush()


def _next(stream: BinaryIO) -> messages.Request | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    request: messages.Request = messages.requests.decode(stream.read(length))
    return request


def _limit_processor_time() -> None:
    """From now on so many seconds, or the kernel ends this process (SIGXCPU)."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + messages.CPU_SECONDS, hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
