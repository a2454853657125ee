"""Tell the database every few seconds that this processor lives, whatever the pipeline is doing."""

import logging
import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from services.core.db import Database, Transaction, as_json
from services.core.errors import DatabaseUnavailableError
from services.core.models import HEARTBEAT_INTERVAL, Service, ServiceState
from services.core.room import room
from services.processor.progress import Progress

log = logging.getLogger(__name__)

STUCK_AFTER = 180.0  # seconds in one chunk: two minutes when every file of it has to be given up
GOODBYE = 2.0  # seconds for the last word at stop


class Heartbeat:
    """A thread that beats while the block runs, and takes the row away after a good stop."""

    def __init__(self, database: Database, progress: Progress, ingest: Path) -> None:
        self._database = database
        self._progress = progress
        self._ingest = ingest
        self._instance = f"{socket.gethostname()}:{os.getpid()}"
        self._over = False
        self._news = threading.Event()  # something to tell before the next beat is due
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._over = True
        self._news.set()
        self._thread.join(GOODBYE)
        if error is not None:
            return
        try:
            self._database.run(self._end, give_up_after=GOODBYE)
        except DatabaseUnavailableError as exc:
            log.warning("stopping without a last heartbeat: %s", exc)

    def _end(self, transaction: Transaction) -> None:
        transaction.execute("end_beats", service=Service.PROCESSOR.value, instance=self._instance)

    def _run(self) -> None:
        away = False
        while not self._over:
            self._news.clear()
            try:
                self.beat()
                self._look_at_others()
                away = False
            except DatabaseUnavailableError as exc:
                if not away:
                    log.warning("no heartbeat: %s", exc)
                away = True
            self._news.wait(HEARTBEAT_INTERVAL)

    def _look_at_others(self) -> None:
        """A trainer cannot tell its own death: who finds it silent does."""
        with self._database.transaction() as transaction:
            transaction.execute("notice_stalls")

    def hurry(self) -> None:
        """Beat at once: there is news."""
        self._news.set()

    def beat(self) -> None:
        progress = self._progress
        state, detail = progress.state, {**progress.detail(), "disks": room([self._ingest])}
        idle_s = time.monotonic() - progress.moved
        if state is ServiceState.SCANNING and idle_s > STUCK_AFTER:
            state = ServiceState.ERROR
            detail["message"] = f"nothing of {progress.source} done for {idle_s:.0f} s"
        if progress.trouble:
            state = ServiceState.ERROR
        with self._database.transaction() as transaction:
            transaction.execute(
                "beat",
                service=Service.PROCESSOR.value,
                instance=self._instance,
                state=state.value,
                detail=as_json(detail),
            )
