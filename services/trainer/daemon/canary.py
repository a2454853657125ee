"""The canary from the daemon's side: a process asked of a new champion, and a rollback when it fails.

What was found is kept with the adapter, so that a champion is asked about once, also after a restart.
"""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile

from services.core.errors import PromotionError
from services.core.models import Json
from services.core.process import die_with_parent
from services.core.settings import PROJECT, Settings
from services.trainer.ledger import Adapter, Lease, Ledger
from services.trainer.promotions.line import By

log = logging.getLogger(__name__)
MODULE = "services.trainer.canary"


class Canary:
    """At most one process, for the champion of one track."""

    def __init__(self, settings: Settings, ledger: Ledger, track: str) -> None:
        self._settings = settings
        self._ledger = ledger
        self._dir = settings.adapters_dir / track
        self._asked: Adapter | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._answer = TemporaryFile()  # noqa: SIM115  lives as long as the daemon
        self._since = 0.0  # monotonic seconds

    @property
    def runs(self) -> bool:
        return self._process is not None

    def start(self) -> bool:
        """Ask about the champion if nobody has; whether there is something to wait for."""
        champion = self._ledger.champion()
        if champion is None or champion.canary is not None or "canary" not in champion.manifest:
            return False
        self._asked, self._since = champion, time.monotonic()
        self._answer = TemporaryFile()  # noqa: SIM115
        self._process = _started(self._dir / champion.directory, self._settings, self._answer.fileno())
        return True

    def look(self, lease: Lease | None) -> str | None:
        """None while it runs; then what came of it, in words. A champion that failed is rolled back."""
        if self._process is None or self._asked is None:
            return None
        status = self._process.poll()
        late = time.monotonic() - self._since > self._settings.load_timeout
        if status is None and not late:
            return None
        found = self._said(status)
        adapter = self._asked
        self.stop()
        self._ledger.record_canary(adapter.adapter_id, found)
        if found["passed"] is False and lease is not None:
            return self._roll_back(adapter, str(found["reason"]), lease)
        level = logging.INFO if found["passed"] else logging.WARNING
        log.log(level, "canary of %s: %s", adapter.directory, found["reason"])
        return f"canary of {adapter.directory}: {found['reason']}"

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._asked = None

    def _roll_back(self, adapter: Adapter, reason: str, lease: Lease) -> str:
        champions = self._ledger.champions(self._dir)
        try:
            moved = champions.reject(adapter.directory, By("canary", reason, lease.token))
        except PromotionError as exc:  # it was moved by hand meanwhile
            return str(exc)
        champions.settle_trained()
        message = f"{adapter.directory} was rolled back to {moved.champion or 'the base model'}: {reason}"
        log.error("%s", message)
        return message

    def _said(self, status: int | None) -> Json:
        """Its answer; without one it is unknown whether the adapter is well."""
        self._answer.seek(0)
        lines = self._answer.read().decode("utf-8", "replace").splitlines()
        try:
            found = json.loads(lines[-1])
        except (IndexError, ValueError):
            found = None
        if isinstance(found, dict) and "passed" in found:
            return found
        how = (
            f"no answer within {self._settings.load_timeout:.0f} s" if status is None else f"status {status}"
        )
        return {"passed": None, "reason": f"it could not be tried: {how}"}


def _started(folder: Path, settings: Settings, answer: int) -> "subprocess.Popen[bytes]":
    parent = os.getpid()
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, str(folder.absolute())],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH")))),
            "TOKENIZERS_PARALLELISM": "false",
            "TQDM_DISABLE": "1",
            "HF_HOME": os.environ.get("HF_HOME", str((settings.cache_dir / "huggingface").absolute())),
        },
        stdout=answer,
        preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509  it takes no lock
    )
