"""The far end of `services.cli.asking.modelprocess.ask`: a process asked once, JSON in and JSON out."""

import json
import logging
import sys
from collections.abc import Callable

from services.core.errors import RatchetError
from services.core.models import Json


def answer(work: Callable[[Json], Json]) -> int:
    """Answer what is on standard input; the exit status, 1 with a line of why where Ratchet refuses it."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        found = work(json.load(sys.stdin))
    except RatchetError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    json.dump(found, sys.stdout)
    return 0


def progress(done: int, total: int, what: str) -> None:
    """Tell who asked how far it is."""
    sys.stderr.write(f"progress {done} {total} {what}\n")
    sys.stderr.flush()
