"""A process with a model, asked once: JSON to its standard input, JSON from its standard output.

What it says meanwhile comes over its standard error: lines of `progress DONE TOTAL WHAT`, others that a
caller may listen to, and, when it cannot do what is asked, why.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from tempfile import TemporaryFile

from services.cli.environment import Environment
from services.cli.inert import inert
from services.core.errors import ConfigurationError, StackError
from services.core.models import Json
from services.core.process import SHARES_CORES, die_with_parent


def ask(
    environment: Environment, module: str, sent: Json, on_line: Callable[[str], bool] = lambda _: False
) -> Json:
    """What `python -m MODULE` answers; its progress is shown while it runs.

    on_line: is given each other line it says, and tells whether that was for it. Raises ConfigurationError
    with what it refuses, StackError when it fails.
    """
    hub, parent = str(environment.settings.cache_dir / "huggingface"), os.getpid()
    with (
        TemporaryFile("w+", encoding="utf-8") as answer,  # larger than a pipe holds
        subprocess.Popen(
            [sys.executable, "-m", module],
            env={**SHARES_CORES, **os.environ, "HF_HOME": hub, **environment.variables},
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
        try:
            json.dump(sent, child.stdin)
            child.stdin.close()
        except BrokenPipeError:
            pass  # it ended before it had read everything, and said why
        said = traced = ""
        for line in child.stderr:
            if not show_progress(line) and not on_line(line):
                said = line.strip() or said
                traced = traced or ("Traceback" if line.startswith("Traceback") else "")
        child.wait()
        if child.returncode == 0:
            answer.seek(0)
            return dict(json.load(answer))
    if child.returncode == 1 and not traced:
        raise ConfigurationError(inert(said))
    raise StackError(f"{module} ended with status {child.returncode}: {inert(said)}")


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
