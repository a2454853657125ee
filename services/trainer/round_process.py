"""The process of a round, one of those that torchrun starts: `python -m services.trainer.round_process`.

Settings, signals, the other processes, and what an error means to the daemon.
"""

import logging
import os
import signal
import sys
import warnings
from typing import NoReturn

import torch

from services.core import log as logs
from services.core.db import Database
from services.core.errors import (
    ConfigurationError,
    ModelNotFoundError,
    PublishError,
    RatchetError,
    is_disk_full,
)
from services.core.process import die_with_parent
from services.core.settings import Settings, from_environment
from services.trainer import failure, round_log
from services.trainer.context import Books, Context
from services.trainer.engine import distributed
from services.trainer.heartbeat import Heart
from services.trainer.interruption import Interrupted, Interruption
from services.trainer.ledger import LEASE_VARIABLE, Lease, Ledger
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.rounds import run

log = logging.getLogger(__name__)
PERMANENT = (ConfigurationError, ModelNotFoundError, PublishError)  # trying again at once cures none


def main() -> int:
    """Exit status 0: the round is closed, or nothing was to do; 1: it failed; 143: it was interrupted."""
    if "TORCHELASTIC_RUN_ID" in os.environ:  # otherwise the parent is the daemon, which has seen to it
        die_with_parent(os.getppid(), signal.SIGKILL)  # torchrun passes SIGTERM on; without it nobody would
    warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # PEFT uses it
    settings = from_environment()
    logs.setup("trainer.round", settings.log_level, settings.secrets(), settings.log_format)
    if os.environ.get("RANK", "0") == "0":
        round_log.keep(settings)
    interruption = Interruption()
    recipe = recipe_files.load(settings.recipe, settings.recipe_overrides)
    folder = settings.checkpoints_dir / recipe.name
    try:
        _run(settings, recipe, interruption)
    except Interrupted:
        log.info("interrupted; the round goes on when the trainer is back")
        return 128 + signal.SIGTERM
    except RatchetError as exc:
        log.error("%s", exc)
        failure.leave(folder, str(exc), permanent=isinstance(exc, PERMANENT))
        return 1
    except torch.OutOfMemoryError as exc:
        message = f"out of GPU memory: set BATCH_SIZE or MAX_LENGTH lower ({str(exc).splitlines()[0]})"
        log.error("%s", message)
        failure.leave(folder, message)
        return 1
    except Exception as exc:
        log.exception("the round failed")
        full = is_disk_full(exc)
        message = f"{settings.checkpoints_dir.absolute()} is full: make room" if full else str(exc)
        failure.leave(folder, f"{type(exc).__name__}: {message}", permanent=full)
        return 1
    return 0


def _run(settings: Settings, recipe: Recipe, interruption: Interruption) -> None:
    first = os.environ.get("RANK", "0") == "0"
    heart = Heart(settings.checkpoints_dir / recipe.name if first else None)
    database = _database(settings) if first else None
    try:
        books = None
        if database is not None:
            lease = Lease(recipe.name, int(os.environ[LEASE_VARIABLE]))
            books = Books(Ledger(database, recipe.name), lease)
        joined = distributed.join(settings.load_timeout)
        run(Context(settings, recipe, books, heart, interruption, joined))
    finally:
        if database is not None:
            database.close()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _database(settings: Settings) -> Database:
    return Database(
        settings.database(),
        application="ratchet round",
        min_conn=settings.db_pool_min_conn,
        max_conn=settings.db_pool_max_conn,
    )


def leave(status: int) -> NoReturn:
    """End the process at once: taking torch's thousands of modules apart takes seconds on a busy machine."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    leave(main())
