"""As whom PostgreSQL runs, and how it is kept from outliving us.

PostgreSQL refuses to run as root. Root starts it as another user through util-linux `setpriv`;
nothing outside the server's own directory changes owner or mode for that.
"""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from services.core import process
from services.core.errors import StackError

CANDIDATES = ("postgres", "nobody")  # first that exists
# Lets the server through directories that only root may enter (mktemp -d, /root). access(2), by which
# PostgreSQL looks for its own files, heeds a user's capabilities only under no_setuid_fixup.
PASS_ANY_DIRECTORY = (
    "--inh-caps=-all,+dac_override",
    "--ambient-caps=-all,+dac_override",
    "--securebits=+no_setuid_fixup",
)


@dataclass(frozen=True)
class ServerUser:
    """Who runs the server: `prefix` goes before its command line."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the server's files must be given away to this user."""
        return self.uid != os.geteuid()

    def before_exec(self) -> Callable[[], None] | None:
        """What the child still has to do itself to die with us: nothing when `setpriv` does it."""
        if self.prefix:
            return None
        parent = os.getpid()
        return lambda: process.die_with_parent(parent, signal.SIGINT)


def choose(binaries: Path, directory: Path) -> ServerUser:
    """Who is to run the server of `binaries` on the existing `directory`.

    Raises StackError when we are root and there is no `setpriv` or no user to become, and when
    the directory is another user's and we are not root.
    """
    owner = directory.stat()
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0:
        if owner.st_uid != os.geteuid():
            raise StackError(
                f"{directory} belongs to user id {owner.st_uid}, and this is user id {os.geteuid()}:"
                " start Ratchet as the user it was first started as, or set RATCHET_HOME to a new directory"
            )
        prefix = (setpriv, "--pdeathsig", "INT", "--") if setpriv else ()
        return ServerUser(os.geteuid(), os.getegid(), prefix)
    if setpriv is None:
        raise StackError(
            "PostgreSQL does not run as root, and `setpriv`, which starts it as another user, is not"
            " installed: install util-linux, run Ratchet as an ordinary user, or set DATABASE_URL"
        )
    uid, gid = (owner.st_uid, owner.st_gid) if owner.st_uid != 0 else _unprivileged()
    become: tuple[str, ...] = (setpriv, f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
    if not _enters([*become, "--"], binaries, directory):
        become = (*become, *PASS_ANY_DIRECTORY)
    return ServerUser(uid, gid, (*become, "--pdeathsig", "INT", "--"))


def _unprivileged() -> tuple[int, int]:
    for name in CANDIDATES:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return user.pw_uid, user.pw_gid
    raise StackError(
        f"PostgreSQL does not run as root, and none of the users {', '.join(CANDIDATES)} exists:"
        " create one, run Ratchet as an ordinary user, or set DATABASE_URL"
    )


def _enters(become: list[str], binaries: Path, directory: Path) -> bool:
    """Whether that user may run the server and reach the directory without further ado."""
    script = 'test -x "$1/postgres" && test -r "$1/../share/postgres.bki" && test -d "$2"'
    test = [*become, "/bin/sh", "-c", script, "sh", str(binaries), str(directory)]
    done = subprocess.run(test, cwd="/", capture_output=True, check=False)
    return done.returncode == 0
