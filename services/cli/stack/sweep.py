"""End what an earlier `ratchet up` of this home left running: parts, their children, its PostgreSQL."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil

from services.cli.stack import session
from services.cli.stack.processes import SERVER, SUPERVISOR, PidFiles, end, family, is_alive, marked, wait

PATIENCE = 10.0  # seconds, as every service needs at most to stop
SERVER_PATIENCE = 16.0  # seconds PostgreSQL gets for a fast shutdown
LEFTOVER_PATIENCE = 2.0  # seconds its children get after it has ended


def sweep(home: Path) -> list[str]:
    """End whatever an earlier supervisor of this home left running; what was ended, in words.

    The services first, PostgreSQL last and by a fast shutdown. A pid that now is another
    program's is left alone.
    """
    files = PidFiles(home)
    records = [record for record in files.all() if record.name != SUPERVISOR]
    recorded = {record.name: process for record in records if (process := record.process())}
    server = recorded.pop(SERVER, None)
    processes = {process.pid: process for process in [*recorded.values(), *marked(home)]}
    left = [_describe(process) for process in processes.values()]
    end(processes.values(), PATIENCE)
    if server is not None:
        left.append(_describe(server))
        _stop_server(server)
    for record in records:
        files.forget(record.name)
    session.forget(home)
    return left


def _stop_server(server: psutil.Process) -> None:
    """SIGINT, which is PostgreSQL's fast shutdown; SIGKILL when that takes too long."""
    children = family([server])
    with suppress(psutil.NoSuchProcess):
        server.send_signal(signal.SIGINT)
    for stubborn in wait([server], SERVER_PATIENCE):
        stubborn.kill()
    end(filter(is_alive, children), LEFTOVER_PATIENCE)


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} ({' '.join(process.cmdline()[:4])})"
    except psutil.Error:
        return str(process.pid)
