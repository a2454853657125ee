"""Cages: bubblewrap around a Python of its own, or, where nothing else is allowed to be, none.

A cage has a user, pid, network, ipc, uts and cgroup namespace, a root of the interpreter and its libraries
that cannot be written, a small /tmp, no /proc, no environment and the `seccomp` filter. Root does without
the user namespace: its cages belong to user ids that nobody has, two a slot.
"""

import json
import os
import select
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.sandbox import seccomp

PROJECT = Path(__file__).resolve().parents[2]
INSIDE = Path("services/sandbox/inside")
MIB = 1 << 20
ROOT = "/ratchet"  # what PROJECT is in a cage
PACKAGES = "/packages"
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
FIRST_UID = 700_000_000  # of root's cages: above all ranges that systems hand out
SCRATCH = "/tmp"  # noqa: S108 (a cage's own)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": SCRATCH, "TMPDIR": SCRATCH, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg",
}  # fmt: skip
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
TO_DIE = 2.0  # seconds
FLAGS = ("-s", "-S", "-P")  # no user's packages, no site, no current directory


@dataclass(frozen=True)
class Role:
    """Whose cage it is: which module of `inside` it calls, and under which limits."""

    module: str
    memory_bytes: int  # address space of one process
    processes: int  # of the cage; 0: none but the first, with its threads
    file_bytes: int  # of one file
    open_files: int
    scratch_bytes: int  # of /tmp

    @property
    def laid_down(self) -> tuple[int, int, int, int]:
        """What the process in the cage does for itself."""
        return self.memory_bytes, self.processes, self.file_bytes, self.open_files


ANSWERS = Role("candidate", 1024 * MIB, 0, 16 * MIB, 64, 16 * MIB)  # a function that answers calls
BESIDE = Role("candidate", 4096 * MIB, 64, 64 * MIB, 256, 256 * MIB)  # a program with its unit tests
CHECKS = Role("checker", 2048 * MIB, 64, 16 * MIB, 64, 16 * MIB)


@dataclass(frozen=True)
class Cages:
    """How cages are made here. Without `bwrap` there are none, and programs run as they are."""

    bwrap: str | None
    as_root: bool = False  # needs no user namespace, and gives each slot user ids of its own
    packages: Path | None = None  # what programs may import beside the standard library

    @property
    def isolation(self) -> str:
        return "bubblewrap" if self.bwrap else "none"

    def start(
        self,
        role: Role,
        slot: int,
        line: int,
        arguments: Sequence[object] = (),
        stderr: int = subprocess.DEVNULL,
    ) -> "Caged":
        """A process that calls `inside.<role>.main(uid, limits, *arguments)` with `line` as descriptor 3.

        `line` stays the caller's to close. Raises OSError when nothing can be started.
        """
        uid = FIRST_UID + 2 * slot + (role is CHECKS) if self.as_root else None
        script = self._script(role.module, line, [uid, role.laid_down, *arguments])
        command = [PYTHON, *FLAGS, "-c", script]
        if self.bwrap is None:
            return Caged(command, [line], stderr=stderr)
        reader, info = os.pipe()
        given = {"--info-fd": info}
        if (filtered := seccomp.program(processes=role.processes > 0)) is not None:
            given["--seccomp"] = _in_memory(filtered)
        told = [word for option, fd in given.items() for word in (option, str(fd))]
        try:
            wrapped = [self.bwrap, *self._options(role), *told, "--", *command]
            return Caged(wrapped, [line, *given.values()], reader, stderr=stderr)
        except OSError:
            os.close(reader)
            raise
        finally:
            for fd in given.values():
                os.close(fd)

    def _script(self, module: str, line: int, arguments: Sequence[object]) -> str:
        root, packages = (ROOT, PACKAGES) if self.bwrap else (str(PROJECT), str(self.packages))
        return (
            f"import posix, sys; posix.dup2({line}, 3); sys.path.insert(0, {root!r});"
            + (f" sys.path.append({packages!r});" if self.packages else "")
            + f" from services.sandbox.inside.{module} import main; main(*{list(arguments)!r})"
        )

    def _options(self, role: Role) -> Iterator[str]:
        for space in ("pid", "net", "ipc", "uts", *(() if self.as_root else ("user",))):
            yield f"--unshare-{space}"
        yield from ("--unshare-cgroup-try", "--die-with-parent", "--new-session")
        yield from ("--cap-drop", "ALL")
        if self.as_root:  # to become another user, which leaves it none
            yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        else:
            # A reaper between would be nobody's child when bubblewrap ends before it. Root keeps one: what
            # changed its user is no longer bubblewrap's to kill.
            yield "--as-pid-1"
        yield from self._mounts()
        yield from ("--perms", "1777", "--size", str(role.scratch_bytes), "--tmpfs", SCRATCH)
        yield from ("--remount-ro", "/", "--chdir", SCRATCH)

    def _mounts(self) -> Iterator[str]:
        base = Path(sys.base_prefix).resolve()
        stdlib = Path(sysconfig.get_path("stdlib")).resolve()
        prefix = (PYTHON, str(stdlib)) if base in (Path("/"), Path("/usr")) else (str(base),)
        inside = Path(ROOT) / INSIDE
        mounted = (*LIBRARIES, *prefix)
        parents = {parent for path in (*mounted, inside) for parent in Path(path).parents}
        for parent in sorted(parents):  # else they are its own user's alone
            yield from ("--perms", "0755", "--dir", str(parent))
        for path in mounted:
            yield from ("--ro-bind-try", path, path)
        for path in DEVICES:
            yield from ("--dev-bind-try", path, path)
        yield from ("--ro-bind", str(PROJECT / INSIDE), str(inside))
        if self.packages:
            yield from ("--ro-bind", str(self.packages), PACKAGES)


class Caged:
    """A process in its cage. After `kill` neither it nor anything it started is left."""

    def __init__(
        self, command: list[str], passed: Sequence[int], info: int | None = None, *, stderr: int
    ) -> None:
        """`info` is where bubblewrap tells of its child, from now on ours to close; None without it."""
        self._info = info
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command,
            env=ENVIRONMENT,
            cwd="/",
            stdin=nothing,
            stdout=nothing,
            stderr=stderr,
            pass_fds=passed,
            start_new_session=True,
        )

    def kill(self) -> None:
        """Safe to call twice. Killing the first process of a pid namespace ends all of them."""
        if self._process.returncode is not None:
            return
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL) if self._info is None else self._kill_inside()
                self._await_end()
            except (OSError, ValueError):
                pass  # bubblewrap was still on its way: what it has started dies with it
            self._process.kill()
        self._process.wait()
        if self._info is not None:
            os.close(self._info)

    def said(self) -> str:
        """The last line that it wrote to its standard error, if that was kept; ends it."""
        self.kill()
        written = self._process.stderr.read() if self._process.stderr else b""
        return (written.decode(errors="replace").strip().splitlines() or ["it ended without a word"])[-1]

    def _await_end(self) -> None:
        """For so long; Popen.wait would look again every fifty milliseconds."""
        process = os.pidfd_open(self._process.pid)
        try:
            poll = select.poll()
            poll.register(process, select.POLLIN)
            poll.poll(TO_DIE * 1000)  # milliseconds
        finally:
            os.close(process)

    def _kill_inside(self) -> None:
        """bubblewrap says which process is the first inside; it then reaps that one, and ends itself."""
        assert self._info is not None
        with open(self._info, closefd=False, encoding="ascii") as info:
            os.kill(int(json.load(info)["child-pid"]), signal.SIGKILL)


def _in_memory(content: bytes) -> int:
    """A file descriptor to read the content from."""
    fd = os.memfd_create("filter")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
