"""Serve the history on a free port until Ctrl-C: something to look at, and to take pictures of."""

import logging
import signal
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

from pydantic import SecretStr

from services.cli.stack.postgres import EmbeddedPostgres
from services.core import db
from services.core.models import HEARTBEAT_INTERVAL
from services.core.target import Target
from tests.integration.metrics.server import running
from tests.metrics_history import fill
from tests.metrics_history.filling import beat

NO_DURABILITY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
PASSWORD = "of-the-history"


def main() -> int:
    logging.basicConfig(level=logging.WARNING)
    for asked in (signal.SIGINT, signal.SIGTERM):  # a shell has its background jobs ignore the first
        signal.signal(asked, signal.default_int_handler)
    stop = Event()
    with tempfile.TemporaryDirectory(prefix="ratchet-history-") as home:
        postgres = EmbeddedPostgres(Path(home), NO_DURABILITY)
        try:
            owner = postgres.start()
            db.migrate(owner, {"ratchet_metrics": PASSWORD})
            with closing(db.Database(owner)) as database:
                fill(database)
                Thread(target=_keep_beating, args=(database, stop), daemon=True).start()
                _serve(owner)
        except KeyboardInterrupt:
            return 0
        finally:
            stop.set()
            postgres.stop()
    return 0


def _serve(owner: Target) -> None:
    role = owner.model_copy(update={"user": "ratchet_metrics", "password": SecretStr(PASSWORD)})
    with running(role) as server:
        sys.stdout.write(f"{server.url}/  (Ctrl-C ends it)\n")
        sys.stdout.flush()
        server.process.wait()


def _keep_beating(database: db.Database, stop: Event) -> None:
    while not stop.wait(HEARTBEAT_INTERVAL):
        beat(database, datetime.now(UTC))


if __name__ == "__main__":
    sys.exit(main())
