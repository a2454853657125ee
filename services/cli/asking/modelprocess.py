"""A process with a model, asked once: JSON to its standard input, JSON from its standard output.

What it says meanwhile comes over its standard error: lines of `progress DONE TOTAL WHAT`, others that a
caller may listen to, and, when it cannot do what is asked, why.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from tempfile import TemporaryFile

from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError, StackError
from services.core.models import Json
from services.core.process import SHARES_CORES, die_with_parent

LAUNCH = ("-m", "services.trainer.launch", "--nproc-per-node", "1", "-m")  # sooner than `-m` alone: see there


def ask(
    environment: Environment, module: str, sent: Json, on_line: Callable[[str], bool] = lambda _: False
) -> Json:
    """What `python -m MODULE` answers; its progress is shown while it runs.

    on_line: is given each other line it says, and tells whether that was for it. Raises ConfigurationError
    with what it refuses, StackError when it fails.
    """
    parent = os.getpid()
    with (
        TemporaryFile("w+", encoding="utf-8") as answer,  # larger than a pipe holds
        subprocess.Popen(
            [sys.executable, *LAUNCH, module],
            env={**SHARES_CORES, **variables(environment)},
            stdin=subprocess.PIPE,
            stdout=answer,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509  the command has one thread
        ) as child,
    ):
        assert child.stdin is not None
        assert child.stderr is not None
        with suppress(BrokenPipeError):  # it ended before it had read everything, and said why
            json.dump(sent, child.stdin)
            child.stdin.close()
        said, broke = _followed(child.stderr, on_line)
        child.wait()
        if child.returncode == 0:
            answer.seek(0)
            return dict(json.load(answer))
    if child.returncode == 1 and not broke:
        raise ConfigurationError(inert(said))
    raise StackError(f"{module} ended with status {child.returncode}: {inert(said)}")


def _followed(lines: Iterable[str], on_line: Callable[[str], bool]) -> tuple[str, bool]:
    """Show progress until the process ends; its last words, and whether it broke with a traceback."""
    said, broke = "without a word", False
    for line in lines:
        if not show_progress(line) and not on_line(line):
            said = line.strip() or said
            broke = broke or line.startswith("Traceback")
    return said, broke


def variables(environment: Environment) -> dict[str, str]:
    """The variables a process with a model is started with: the hub's cache lies in CACHE_DIR."""
    hub = str(environment.settings.cache_dir / "huggingface")
    return {**os.environ, "HF_HOME": hub, **environment.variables}


def show_progress(line: str) -> bool:
    """A line of progress, `done of what`, written over by the next where somebody looks; no other line."""
    if not line.startswith("progress "):
        return False
    done, total, what = line.removeprefix("progress ").strip().split(" ", 2)
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{inert(what)}: {done}/{total}" + ("\n" if done == total else ""))
        sys.stderr.flush()
    elif done == total:
        sys.stderr.write(f"{inert(what)}: {total}\n")
    return True
