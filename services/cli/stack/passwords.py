"""Passwords that are made once and kept in files."""

import os
import secrets
from pathlib import Path

PRIVATE = 0o600  # the owner reads and writes
GROUP_READABLE = 0o640  # for a service that runs as another user of the same group


def kept(path: Path, mode: int = PRIVATE) -> str:
    """The password in the file. Of several processes that find none, one makes it and all read it.

    The file's directory must exist. Raises OSError when the file can be neither read nor written.
    """
    if not path.exists():
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        write(unfinished, secrets.token_urlsafe(24), mode)
        try:
            os.link(unfinished, path)  # unlike a rename, never overwrites one that another just made
        except FileExistsError:
            pass
        finally:
            unfinished.unlink()
    return path.read_text(encoding="ascii").strip()


def write(path: Path, value: str, mode: int = PRIVATE) -> None:
    """Write a file that must not exist and that others can read at no moment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(value + "\n")
        file.flush()
        os.fsync(file.fileno())
