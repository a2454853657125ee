"""`ratchet logs`: the end of each part's log, together or some alone, and what is written from now on."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from services.cli.environment import Environment
from services.cli.operating.tail import Tail
from services.cli.printing.inert import inert_lines
from services.core.errors import StackError

POLL = 0.3  # seconds
Say = Callable[[str, str], None]  # of a service, its line


def run(
    environment: Environment, services: Sequence[str], *, lines: int, follow: bool, as_json: bool = False
) -> None:
    """Print the last lines; with `follow`, what comes after them until Ctrl-C.

    Raises StackError when there is no such log.
    """
    directory = environment.settings.logs_dir
    tails = {name: Tail(path) for name, path in chosen(directory, services).items()}
    titled = len(tails) > 1
    say = _json_line if as_json else _line
    with suppress(KeyboardInterrupt):
        for tail in tails.values():
            if titled and not as_json:
                print(f"==> {tail.name} ({tail.path})")
            _print_end(tail, lines, follow, say)
        while follow:
            time.sleep(POLL)
            if not services:  # a part may have started since
                for path in directory.glob("*.log"):
                    tails.setdefault(path.stem, Tail(path))
            _print_more(tails.values(), as_json, titled=len(tails) > 1)


def chosen(directory: Path, services: Sequence[str]) -> dict[str, Path]:
    """Service → its log. Raises StackError for one that has none, naming those that have."""
    found = {path.stem: path for path in sorted(directory.glob("*.log"))}
    if missing := [name for name in services if name not in found]:
        raise StackError(
            f"there is no log of {', '.join(map(repr, missing))} in {directory}: {_choice(found)}"
        )
    if not found:
        raise StackError(f"there are no logs in {directory} yet: `ratchet up` writes them")
    return {name: found[name] for name in services} if services else found


def _print_end(tail: Tail, lines: int, follow: bool, say: Say) -> None:
    last = tail.last(lines)
    if not follow and tail.unfinished:
        last = [*last, tail.unfinished][-lines:]
    for line in last:
        say(tail.name, line)


def _print_more(tails: Iterable[Tail], as_json: bool, *, titled: bool) -> None:
    say = _json_line if as_json else _named_line if titled else _line
    for tail in tails:
        for line in tail.more():
            say(tail.name, line)


def _line(_name: str, line: str) -> None:
    print(inert_lines(line), flush=True)


def _named_line(name: str, line: str) -> None:
    print(f"{name:<9} | {inert_lines(line)}", flush=True)


def _json_line(name: str, line: str) -> None:
    """The line as it is, and, where it is a JSON object, what it says."""
    told: dict[str, object] = {"service": name, "line": line}
    with suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict):
            told["record"] = record
    print(json.dumps(told), flush=True)


def _choice(found: dict[str, Path]) -> str:
    return f"there are {', '.join(found)}" if found else "there are none yet, `ratchet up` writes them"
