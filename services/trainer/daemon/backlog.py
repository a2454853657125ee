"""What waits to be learned by a track: contents of this code, or tasks of its set; when a round begins."""

import logging
import threading
import time
from typing import Protocol

from services.core.db import Database
from services.core.errors import DatabaseUnavailableError, RatchetError
from services.core.sandbox import Sandbox
from services.core.settings import Settings
from services.trainer.ledger import Ledger
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.tasks import folder

log = logging.getLogger(__name__)
MOST_COUNTED = 100_000  # tasks
READING = 1.0  # seconds between two looks while tasks are read


class Backlog(Protocol):
    """Methods raise DatabaseUnavailableError; none takes long."""

    @property
    def needed(self) -> int:
        """So much that is new begins a round."""

    @property
    def interval(self) -> float:
        """Seconds until it is worth another look."""

    def count(self) -> int:
        """How much is new to the track; counting may stop a little beyond what is needed."""

    def wanted(self, new: int) -> str:
        """What a round waits for, in words."""

    def missing(self) -> str | None:
        """Why a round that was asked for cannot begin now; None when it can."""


def of(settings: Settings, recipe: Recipe, database: Database, ledger: Ledger) -> Backlog:
    if recipe.objective == "reinforcement":
        return Tasks(settings, recipe, database, ledger)
    return Contents(settings, recipe, ledger)


class Contents:
    """Code that scores enough and that no round of the track has had."""

    def __init__(self, settings: Settings, recipe: Recipe, ledger: Ledger) -> None:
        self._settings = settings
        self._recipe = recipe
        self._ledger = ledger

    @property
    def needed(self) -> int:
        return self._settings.min_new_files

    @property
    def interval(self) -> float:
        return self._settings.check_interval

    def count(self) -> int:
        """Not through ten million rows: at most twice what is needed."""
        return self._ledger.count_new(self._settings.quality_threshold, 2 * self.needed)

    def wanted(self, new: int) -> str:
        return (
            f"{new:,} new contents that score {self._settings.quality_threshold} or more and fit the recipe"
            f" {self._recipe.name}, {self.needed:,} needed"
        )

    def missing(self) -> str | None:
        if self._ledger.count_new(self._settings.quality_threshold, 1) == 0:
            return f"there is nothing to train on: {self.wanted(0)}"
        return None


class Tasks:
    """Tasks that no round of the track has practised. Files are read, and references run, in a thread.

    A team goes on practising what it knows when it is asked to: nothing new is needed then.
    """

    def __init__(self, settings: Settings, recipe: Recipe, database: Database, ledger: Ledger) -> None:
        self._settings = settings
        self._recipe = recipe
        self._database = database
        self._ledger = ledger
        self._reading: threading.Thread | None = None
        self._read_again_at = 0.0  # monotonic seconds
        self._problem: str | None = None
        self._tried: tuple[int, int] | None = None  # references, of how many, while they are tried

    @property
    def needed(self) -> int:
        return section(self._recipe).min_new_tasks

    @property
    def interval(self) -> float:
        return READING if self._is_reading else self._settings.check_interval

    def count(self) -> int:
        """Of what was read so far; what has changed since is being read meanwhile."""
        if not self._is_reading and time.monotonic() >= self._read_again_at:
            self._reading = threading.Thread(target=self._read, daemon=True)
            self._reading.start()
        return self._ledger.count_new_tasks(section(self._recipe).tasks, MOST_COUNTED)

    def wanted(self, new: int) -> str:
        if self._is_reading:
            return self._reads()
        if self._problem is not None:
            return self._problem
        return (
            f"{new:,} new tasks of the set {section(self._recipe).tasks}, {self.needed:,} needed;"
            f" `ratchet train --now` has {self._recipe.name} go on with those it knows"
        )

    def missing(self) -> str | None:
        """Nothing: the round reads the tasks itself, and says what is wrong with them."""
        return None

    @property
    def _is_reading(self) -> bool:
        return self._reading is not None and self._reading.is_alive()

    def _reads(self) -> str:
        """In tenths: every change is logged."""
        if self._tried is None:
            return "reading the tasks"
        done, total = self._tried
        return f"trying the references of {total:,} tasks in the sandbox, {10 * (10 * done // total)} % done"

    def _has_tried(self, done: int, total: int) -> None:
        self._tried = (done, total)

    def _read(self) -> None:
        settings, self._tried = self._settings, None
        try:
            folder.sync(
                self._database,
                settings,
                lambda: Sandbox.open(settings.sandbox_socket, allow_unsandboxed=settings.allow_unsandboxed),
                section(self._recipe).task_sets,
                self._has_tried,
            )
            self._problem = None
        except DatabaseUnavailableError as exc:
            log.warning("the tasks are read later: %s", exc)
        except RatchetError as exc:
            self._problem = f"the tasks cannot be read: {exc}"
            log.error("%s", self._problem)
        except Exception as exc:  # unheard, the daemon would wait for ever
            self._problem = f"the tasks cannot be read ({type(exc).__name__}: {exc})"
            log.exception("the tasks cannot be read")
        self._read_again_at = time.monotonic() + self._settings.check_interval
