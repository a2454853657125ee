"""`python -m services.processor`: run until SIGTERM."""

import logging
import os
import sys

from services.core import log
from services.core.errors import ConfigurationError
from services.core.process import StopSignal, die_with_parent
from services.core.settings import from_environment
from services.processor.worker import Worker


def main() -> int:
    if parent := os.environ.get("RATCHET_PARENT_PID"):
        die_with_parent(int(parent))
    stop = StopSignal()
    try:
        settings = from_environment()
        log.setup("processor", settings.log_level, settings.secrets(), settings.log_format)
        worker = Worker(settings, stop)
    except ConfigurationError as exc:
        log.setup("processor")
        logging.getLogger(__name__).error("%s", exc)
        return 2
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
