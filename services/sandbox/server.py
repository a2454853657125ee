"""Programs in, outcomes out: JSON lines on a Unix socket.

The server greets with `{"sandbox": 1, "isolation": …, "workers": …}`. A client sends
`{"id": …, "program": {…}}` and gets `{"id": …, "outcome": {…}}` or `{"id": …, "error": …}`, in the order of
finishing. One that hangs up frees what it left: programs that wait are dropped, those that run are ended.
"""

import contextlib
import json
import logging
import queue
import socket
import threading
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from services.core.errors import SandboxError
from services.core.sandbox import LONGEST_LINE, STYLES, VERSION, Outcome, Program
from services.sandbox.cage import Cages
from services.sandbox.slot import Job, Slot

WAITING = 1024  # programs of one client; it is not read from while so many have no outcome
LONGEST_TIMEOUT = 600.0  # seconds a program may ask for
FOLDER_DECIDES = 0o666  # who may enter the socket's folder may ask
log = logging.getLogger("sandbox")


class Client:
    """One connection. `read` returns when it ends; its jobs end then as well."""

    def __init__(self, connection: socket.socket, jobs: "queue.SimpleQueue[Job | None]") -> None:
        self._connection = connection
        self._jobs = jobs
        self._open: set[Job] = set()
        self._room = threading.Semaphore(WAITING)
        self._writing = threading.Lock()

    def read(self, greeting: dict[str, Any]) -> None:
        with self._connection, self._connection.makefile("rb") as lines:
            try:
                self._write(greeting)
                while line := lines.readline(LONGEST_LINE):
                    self._room.acquire()
                    self._take(line)
            except (OSError, ValueError) as exc:
                log.warning("a client is cut off: %s", exc)
            finally:
                self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        for job in list(self._open):
            job.cancel()

    def _take(self, line: bytes) -> None:
        """Queue what the line asks for. Raises ValueError for what is no request at all."""
        if not line.endswith(b"\n"):
            raise ValueError(f"a request of more than {LONGEST_LINE:,} bytes")
        request = json.loads(line)
        number = request["id"] if isinstance(request, dict) else None
        if type(number) is not int:
            raise ValueError("a request has an id, which is a whole number")
        try:
            program = program_of(request.get("program"))
        except ValueError as exc:
            self._answer(number, None, SandboxError(str(exc)))
            return
        job = Job(program, lambda outcome: self._answer(number, job, outcome))
        self._open.add(job)
        self._jobs.put(job)

    def _answer(self, number: int, job: Job | None, outcome: Outcome | SandboxError) -> None:
        if job is not None:
            self._open.discard(job)
        self._room.release()
        said = {"outcome": asdict(outcome)} if isinstance(outcome, Outcome) else {"error": str(outcome)}
        with contextlib.suppress(OSError):
            self._write({"id": number, **said})

    def _write(self, message: dict[str, Any]) -> None:
        with self._writing:
            self._connection.sendall(json.dumps(message).encode() + b"\n")


def program_of(sent: object) -> Program:
    """Raises ValueError that names the field which is missing, unknown or not what it should be."""
    kinds = {"timeout": (int, float)}
    known = {field.name: kinds.get(field.name, (str,)) for field in fields(Program)}
    if not isinstance(sent, dict):
        raise ValueError("a program is an object")  # noqa: TRY004 (the sender's mistake)
    for name, value in sent.items():
        if name not in known:
            raise ValueError(f"a program has no field {name!r}; it has {', '.join(known)}")
        if type(value) not in known[name]:
            raise ValueError(f"{name} is {type(value).__name__}, expected {known[name][0].__name__}")
    try:
        program = Program(**sent)
    except TypeError as exc:
        raise ValueError(f"an incomplete program: {exc}") from exc
    if program.style not in STYLES:
        raise ValueError(f"style is {program.style!r}, expected one of {', '.join(STYLES)}")
    if not 0 < program.timeout <= LONGEST_TIMEOUT:
        raise ValueError(f"timeout is {program.timeout}, expected more than 0 and at most {LONGEST_TIMEOUT}")
    return program


class Server:
    """Listens from `start` to `stop`. Raises SandboxError when the socket cannot be had."""

    def __init__(self, path: Path, cages: Cages, workers: int) -> None:
        self._path = path
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._slots = [Slot(number, cages) for number in range(workers)]
        self._threads = [threading.Thread(target=self._work, args=[slot]) for slot in self._slots]
        self._clients: set[Client] = set()
        self._stopping = False
        self._greeting = {"sandbox": VERSION, "isolation": cages.isolation, "workers": workers}
        self._listener = listen(path)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """End every program and every checker, and take the socket away."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in list(self._clients):
            client.close()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while not self._stopping:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[Client(connection, self._jobs)], daemon=True).start()

    def _serve(self, client: Client) -> None:
        self._clients.add(client)
        try:
            client.read(self._greeting)
        finally:
            self._clients.discard(client)

    def _work(self, slot: Slot) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                if not job.cancelled and not self._stopping:
                    slot.run(job)
        finally:
            slot.close()


def listen(path: Path) -> socket.socket:
    """A socket at the path, in the place of one that nobody listens at. Raises SandboxError."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        if _answers(path):
            raise SandboxError(f"{path} is served already: another sandbox runs")  # noqa: TRY301
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(FOLDER_DECIDES)
        listener.listen()
    except OSError as exc:
        listener.close()
        raise SandboxError(f"no socket can be made at {path}: {exc}") from exc
    except SandboxError:
        listener.close()
        raise
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as other:
        try:
            other.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True
