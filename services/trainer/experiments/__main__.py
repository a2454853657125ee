"""The process behind `ratchet experiment run`, with torch: progress on standard error, a report in a folder.

Interrupted, it leaves what it has done, and goes on from there when it is started again.
"""

import argparse
import logging
import sys
import time
import warnings
from pathlib import Path

from services.core.errors import RatchetError
from services.core.sandbox import Sandbox
from services.core.settings import from_environment
from services.trainer.experiments import files, store
from services.trainer.experiments.display import Display
from services.trainer.experiments.runner import Runner
from services.trainer.experiments.trainee import Models
from services.trainer.interruption import Interrupted, Interruption

INTERRUPTED = 130  # exit status, as a shell has it for Ctrl-C


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done, 130 when it was interrupted."""
    asked = argparse.ArgumentParser()
    asked.add_argument("file", type=Path)
    asked.add_argument("--fresh", action="store_true")
    options = asked.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    warnings.simplefilter("ignore", FutureWarning)  # of the libraries among themselves, at every model loaded
    display = Display(sys.stderr, time.monotonic)
    try:
        _run(options.file, display, fresh=options.fresh)
    except RatchetError as exc:
        display.end(f"ratchet: {exc}")
        return 1
    except Interrupted:
        display.end("interrupted: start it again to go on")
        return INTERRUPTED
    return 0


def _run(path: Path, display: Display, *, fresh: bool) -> None:
    settings = from_environment()
    interruption = Interruption()
    loaded = files.load(path, settings.recipe_overrides)
    root = settings.ratchet_home / "experiments" / loaded.experiment.name
    if moved := store.begin(root, loaded.identity, fresh=fresh):
        display.end(f"the results so far are in {moved} now")
    models = Models(loaded, settings, interruption)
    with Sandbox.open(settings.sandbox_socket, allow_unsandboxed=settings.allow_unsandboxed) as sandbox:
        report = Runner(loaded, root, models, sandbox, display.show).run()
    display.end(f"{report.name}: done, the report is in {root}")


if __name__ == "__main__":
    sys.exit(main())
