"""`python -m services.trainer`: the daemon, or on a machine beside the first a node."""

import logging
import os
import sys

from services.core import log as logs
from services.core.db import Database
from services.core.errors import RatchetError
from services.core.process import StopSignal, die_with_parent
from services.core.settings import from_environment
from services.trainer.daemon import machines
from services.trainer.daemon.node import Node
from services.trainer.daemon.supervisor import Daemon
from services.trainer.recipes import files as recipe_files
from services.trainer.webhooks.sender import Sender

log = logging.getLogger("services.trainer")


def main() -> int:
    if parent := os.environ.get("RATCHET_PARENT_PID"):
        die_with_parent(int(parent))
    settings = from_environment()
    logs.setup("trainer", settings.log_level, settings.secrets(), settings.log_format)
    resolved = recipe_files.load(settings.recipe, settings.recipe_overrides)
    logs.bind(track=resolved.name)
    stop = StopSignal()
    here = machines.for_recipe(settings, resolved)
    if not here.is_first:
        Node(settings, resolved.name, here).run(stop)
        return 0
    database = Database(
        settings.database(),
        application="ratchet trainer",
        min_conn=settings.db_pool_min_conn,
        max_conn=settings.db_pool_max_conn,
    )
    log.info("recipe %s (%s, %s)", resolved.name, resolved.base_model, resolved.method)
    sender = Sender(settings)
    sender.start()
    try:
        Daemon(settings, resolved, database).run(stop)
    finally:
        sender.stop()
        database.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RatchetError as exc:
        sys.stderr.write(f"trainer: {exc}\n")
        sys.exit(1)
