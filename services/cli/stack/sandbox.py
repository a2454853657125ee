"""The sandbox of a local stack: where the trainer finds one, or why there is none and what to do.

Without one everything but the suites that run programs works: they raise SandboxError.
"""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from services.cli.environment import Environment
from services.cli.stack.supervisor import Part
from services.core.errors import SandboxError
from services.core.models import Json
from services.sandbox import isolation

NAME = "sandbox"
PATIENCE = 12.0  # seconds it may take to stop
SOCKET_PATH_MAX = 107  # bytes of a path that the kernel takes (sockaddr_un of unix(7))
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "LOG_LEVEL")  # no secret, no login


def complaint() -> str | None:
    """Why no isolated program can run on this machine, and what to do; None: one was run."""
    try:
        isolation.find(None, allow_unsandboxed=False)
    except SandboxError as exc:
        return str(exc)
    return None


@dataclass(frozen=True)
class LocalSandbox:
    """Where the trainer finds the sandbox, and in words how it is."""

    socket: Path | None  # None: there is none
    starts: bool  # whether it is a part of this stack
    isolated: bool
    says: str

    def make_folder(self) -> None:
        """Who may enter the socket's folder may have programs run: this user alone."""
        if self.starts and self.socket is not None:
            self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def as_json(self) -> Json:
        return asdict(self) | {"socket": str(self.socket) if self.socket else None}


def decide(environment: Environment, complaint: str | None) -> LocalSandbox:
    """The sandbox of this stack; `complaint` is why bubblewrap does not work here, None: it does."""
    settings = environment.settings
    if settings.sandbox_socket is not None:
        return LocalSandbox(
            settings.sandbox_socket, False, True, f"at {settings.sandbox_socket}, as SANDBOX_SOCKET says"
        )
    socket = environment.home / "run" / NAME / "socket"
    if len(bytes(socket)) > SOCKET_PATH_MAX:
        return LocalSandbox(
            None, False, complaint is None, f"started when it is needed: {socket} is too long for a socket"
        )
    if complaint is None:
        return LocalSandbox(socket, True, True, "every generated program runs in a bubblewrap of its own")
    if settings.allow_unsandboxed:
        return LocalSandbox(
            socket, True, False, "generated programs run as you, with no isolation: ALLOW_UNSANDBOXED is set"
        )
    return LocalSandbox(None, False, False, f"{complaint}. All that runs no such programs works")


def part(environment: Environment, sandbox: LocalSandbox) -> Part:
    """The service, without the database's address, a password or a token."""
    command = [sys.executable, "-m", "services.sandbox", "--socket", str(sandbox.socket)]
    return Part(
        name=NAME,
        command=command if sandbox.isolated else [*command, "--allow-unsandboxed"],
        environment={name: value for name in KEPT if (value := environment.variables.get(name))},
        log=environment.settings.logs_dir / f"{NAME}.log",
        patience=PATIENCE,
    )
