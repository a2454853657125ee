"""`ratchet logs`: the end of each part's log, together or one alone."""

import sys
import time
from pathlib import Path

from services.cli.environment import Environment
from services.core.errors import StackError

POLL = 0.3  # seconds


def run(environment: Environment, service: str | None, *, lines: int, follow: bool) -> None:
    """Print the last lines; with `follow`, what comes after them until Ctrl-C.

    Raises StackError when there is no such log.
    """
    directory = environment.settings.logs_dir
    found = {path.stem: path for path in sorted(directory.glob("*.log"))}
    if service is not None and service not in found:
        raise StackError(f"there is no log of {service!r} in {directory}: {_choice(found)}")
    if not found:
        raise StackError(f"there are no logs in {directory} yet: `ratchet up` writes them")
    chosen = {service: found[service]} if service else found
    try:
        positions = {name: _print_end(name, path, lines, len(chosen) > 1) for name, path in chosen.items()}
        while follow:
            time.sleep(POLL)
            for name, path in chosen.items():
                positions[name] = _print_from(path, positions[name])
    except KeyboardInterrupt:
        return


def _print_end(name: str, path: Path, lines: int, titled: bool) -> int:
    """Print the last lines; the position behind them in bytes."""
    data = path.read_bytes()
    if titled:
        print(f"==> {name} ({path})")
    print("\n".join(data.decode(errors="replace").splitlines()[-lines:]), flush=True)
    return len(data)


def _print_from(path: Path, position: int) -> int:
    if path.stat().st_size < position:
        position = 0  # set aside and begun anew
    with path.open("rb") as file:
        file.seek(position)
        sys.stdout.write(file.read().decode(errors="replace"))
        sys.stdout.flush()
        return file.tell()


def _choice(found: dict[str, Path]) -> str:
    return f"there are {', '.join(found)}" if found else "there are none yet, `ratchet up` writes them"
