"""`python -m services.sandbox --socket PATH`: the service, until SIGTERM."""

import argparse
import logging
import os
import signal
import sys
import sysconfig
import threading
from pathlib import Path

from services.core import log as logs
from services.core.errors import SandboxError
from services.core.process import StopSignal, die_with_parent
from services.core.settings import from_environment
from services.sandbox import isolation
from services.sandbox.server import Server
from services.sandbox.slot import default_workers

log = logging.getLogger("sandbox")


def main(arguments: list[str]) -> int:
    """Says `ready …` on standard output when programs may come. 2: it cannot work here."""
    asked = parser().parse_args(arguments)
    if parent := os.environ.get("RATCHET_PARENT_PID"):
        die_with_parent(int(parent))
    settings = from_environment()
    logs.setup("sandbox", settings.log_level, settings.secrets(), settings.log_format)
    stop = StopSignal()
    packages = None if asked.packages == Path("none") else asked.packages.resolve()
    try:
        cages = isolation.find(packages, allow_unsandboxed=asked.allow_unsandboxed)
        server = Server(asked.socket, cages, asked.workers or default_workers())
    except SandboxError as exc:
        print(exc, file=sys.stdout if asked.private else sys.stderr, flush=True)
        return 2
    if cages.bwrap is None:
        log.warning("generated programs run WITHOUT ISOLATION here, with all rights of this user")
    server.start()
    print(f"ready {asked.socket} isolation={cages.isolation}", flush=True)
    if asked.private:
        threading.Thread(target=_until_alone, daemon=True).start()
    while not stop.wait(60):
        pass
    server.stop()
    if asked.private:
        asked.socket.parent.rmdir()
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m services.sandbox", description=__doc__)
    made.add_argument("--socket", type=Path, required=True, help="Unix socket to listen at")
    made.add_argument("--workers", type=int, default=0, help="programs at once; 0: one a core")
    made.add_argument(
        "--packages",
        type=Path,
        default=Path(sysconfig.get_path("purelib")),
        help="folder of packages that programs may import; none: the standard library alone",
    )
    made.add_argument("--allow-unsandboxed", action="store_true", help="run programs even without isolation")
    made.add_argument(
        "--private", action="store_true", help="end with standard input, and take the socket's folder along"
    )
    return made


def _until_alone() -> None:
    """Whom we serve holds the other end of our standard input, and is gone when that ends."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
