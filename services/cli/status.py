"""`ratchet status`: the processes of this home, and the state that the database tells of."""

import json
import math
import sys
import time
from typing import Any

import psutil
from pydantic import SecretStr
from rich import box
from rich.table import Table

from services.cli.environment import Environment
from services.cli.processes import PidFiles, Recorded
from services.cli.progress import rows
from services.cli.screen import Terminal
from services.cli.stack import SUPERVISOR, session_file
from services.core.db import Database
from services.core.errors import RatchetError
from services.core.models import Json
from services.core.settings import Target, from_environment
from services.metrics import collector
from services.metrics.cached import Reading
from services.metrics.document import document, strict_json
from services.metrics.health import Health, Status, judge

WELL = {Status.OK: "well", Status.STARTING: "starting", Status.ILL: "ill", Status.UNKNOWN: "unknown"}


def run(environment: Environment, *, as_json: bool) -> None:
    """Print the state. A database that is away is part of the state, not an error."""
    state = read(environment)
    if as_json:
        print(strict_json(state))
    else:
        _print(state)


def read(environment: Environment) -> Json:
    """Everything: as GET /metrics?format=json has it, and this home's processes."""
    recorded = PidFiles(environment.home).all()
    session = _session(environment)
    reading, health = _look(environment, session)
    return {
        "running": any(record.name == SUPERVISOR and record.process() for record in recorded),
        "home": str(environment.home),
        "dashboard": session.get("dashboard"),
        "start_seconds": session.get("seconds"),
        "sandbox": session.get("sandbox"),
        "processes": [described for record in recorded if (described := _describe(record))],
        **document(reading, health),
    }


def _session(environment: Environment) -> Json:
    """What `ratchet up` wrote of itself; empty when it does not run."""
    try:
        document = json.loads(session_file(environment.home).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _describe(record: Recorded) -> Json | None:
    process = record.process()
    if process is None:
        return None
    try:
        memory = process.memory_info().rss
    except psutil.Error:
        return None
    return {
        "name": record.name,
        "pid": record.pid,
        "seconds": time.time() - record.created,
        "rss_bytes": memory,
    }


def _look(environment: Environment, session: Json) -> tuple[Reading[dict[str, Any]], Health]:
    """The snapshot and the health judged from the heartbeats, or why there are none."""
    try:
        database = _database(environment, session)
        signs = collector.vital_signs(database)
        snapshot = collector.snapshot(database, environment.settings.quality_threshold)
    except RatchetError as exc:
        error = str(exc)
        health = judge(error=error, migrated=False, beats=(), uptime_seconds=math.inf)
        return Reading(None, None, error), health
    health = judge(error=None, migrated=signs.migrated, beats=signs.beats, uptime_seconds=math.inf)
    return Reading(snapshot, 0.0), health


def _database(environment: Environment, session: Json) -> Database:
    """As the role that can only read, where `ratchet up` said, or where the environment says."""
    where = session.get("database")
    if not where:
        if not environment.names_database:
            raise RatchetError("nothing runs here: `ratchet up` (or `make up`) starts it")
        owner = environment.owner()
        where = {"host": owner.host, "port": owner.port, "dbname": owner.dbname}
    target = Target(**where, user="", password=SecretStr(""))
    login = from_environment(environment.for_service("metrics", target)).database()
    return Database(login, application="ratchet status", max_conn=1)


def _print(state: Json) -> None:
    console = Terminal(sys.stdout)
    if state["error"]:
        console.print(state["error"])
    if state["processes"]:
        console.print(_processes(state["processes"]))
    if state["ingest"] is not None:
        for label, text in rows(state):
            console.print(f"{label:10}{text}")
        for name, part in state["health"]["parts"].items():
            console.print(f"{name:10}{WELL[part['status']]}: {part['reason']}")
    if state["sandbox"]:
        console.print(f"{'sandbox':10}{state['sandbox']['says']}")
    for track in state["tracks"]:
        champion = track["champion"]
        best = f"round {champion['round']}: {champion['reason']}" if champion else "none yet"
        console.print(f"{'champion':10}{track['name']}: {best}")
    if state["dashboard"]:
        console.print(f"{'dashboard':10}{state['dashboard']}")


def _processes(processes: list[Json]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("process", "pid", "memory", "running for"):
        table.add_column(name, justify="left" if name == "process" else "right")
    for process in processes:
        memory = f"{process['rss_bytes'] / 1e6:.0f} MB"
        table.add_row(process["name"], str(process["pid"]), memory, f"{process['seconds']:.0f} s")
    return table
