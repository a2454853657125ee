"""`python -m services.serving`: the front before a vLLM that runs elsewhere, until SIGTERM."""

import logging
import os
import socket
import sys

import uvicorn

from services.core import log
from services.core.errors import ConfigurationError
from services.core.process import die_with_parent
from services.core.settings import Settings, from_environment
from services.serving.backend import Backend
from services.serving.follower import Follower
from services.serving.front import create_app
from services.serving.shelf import Policy

GRACE = 10  # seconds that answers under way have to end after SIGTERM


def main() -> None:
    if parent := os.environ.get("RATCHET_PARENT_PID"):
        die_with_parent(int(parent))
    try:
        settings = from_environment()
        log.setup("serving", settings.log_level, settings.secrets(), settings.log_format)
        listener = listen(settings.serve_host, settings.serve_port)
    except ConfigurationError as exc:
        sys.exit(f"serving cannot start: {exc}")
    server(settings, settings.recipe, settings.serve_backend).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket for the front. Raises ConfigurationError when there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        raise ConfigurationError(
            f"port {port} on {host} cannot be used ({exc.strerror}): stop what uses it, or set SERVE_PORT"
            " (or --port) to a free one"
        ) from exc
    listener.listen()
    return listener


def server(settings: Settings, track: str, backend_url: str) -> uvicorn.Server:
    """The front of a track, with the server at that address behind it; to be run until SIGTERM or SIGINT."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it says every request
    backend = Backend(backend_url)
    policy = Policy(settings.serve_max_lora_rank, settings.serve_without_parity)
    app = create_app(Follower(settings.adapters_dir / track, backend, policy), backend)
    return uvicorn.Server(
        uvicorn.Config(
            app, log_config=None, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE
        )
    )


if __name__ == "__main__":
    main()
