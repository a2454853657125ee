"""`python -m services.metrics`: the application under gunicorn, until SIGTERM."""

import gc
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from services.core import log
from services.core.errors import ConfigurationError
from services.core.process import die_with_parent
from services.core.settings import Settings, from_environment
from services.metrics.stream.hub import CAP

if TYPE_CHECKING:
    from flask import Flask

THREADS = 16  # requests at a time beside the streams; none waits longer than cached.PATIENCE for the database
SWITCH = 0.0001  # seconds after which a page that is being rendered lets a short answer pass: six times each
GRACE = 5  # seconds that requests under way have to end after SIGTERM


class ProjectLogger(Logger):
    """gunicorn's messages go the way of all others, to the handler of services.core.log."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Server(BaseApplication):
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        options = {
            "bind": f"{_bracketed(self._settings.metrics_host)}:{self._settings.metrics_port}",
            "worker_class": "gthread",
            "workers": 1,
            "threads": THREADS + CAP,
            "post_worker_init": _begin,
            "graceful_timeout": GRACE,
            "control_socket_disable": True,  # its default path is shared between projects
            "worker_tmp_dir": _beat_directory(),
            "accesslog": None,
            "loglevel": self._settings.log_level.lower(),
            "logger_class": ProjectLogger,
            "proc_name": "ratchet metrics",
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> "Flask":
        from services.metrics.app import create_app  # in the worker: the master stays small

        sys.setswitchinterval(SWITCH)
        return create_app(self._settings)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _begin(worker: Any) -> None:
    """The worker has loaded the application."""
    # it waits for requests under way when it is to stop, and streams would not end
    worker.wsgi.extensions["stream"].alive = lambda: worker.alive
    gc.freeze()  # what is there now stays: to look through it for garbage holds every answer up for 30 ms


def _beat_directory() -> str:
    """Where the worker's sign of life to its master lies: in memory, so that no slow disk kills it."""
    memory = Path("/dev/shm")  # noqa: S108  gunicorn makes its file there with mkstemp
    return str(memory) if os.access(memory, os.W_OK | os.X_OK) else tempfile.gettempdir()


def main() -> None:
    if parent := os.environ.get("RATCHET_PARENT_PID"):
        die_with_parent(int(parent))
    try:
        settings = from_environment()
        log.setup("metrics", settings.log_level, settings.secrets(), settings.log_format)
        settings.database()
    except ConfigurationError as exc:
        sys.exit(f"metrics cannot start: {exc}")
    Server(settings).run()


if __name__ == "__main__":
    main()
