"""`ratchet status`: the processes of this home, and the state that the database tells of."""

import math
import sys
import time
from contextlib import closing, suppress
from typing import Any

import psutil
from pydantic import SecretStr
from rich import box
from rich.table import Table

from services.cli.environment import Environment
from services.cli.printing import measured
from services.cli.printing.inert import inert
from services.cli.printing.progress import rows
from services.cli.printing.screen import Row, Screen, Terminal
from services.cli.stack import session
from services.cli.stack.processes import SUPERVISOR, PidFiles, Recorded
from services.core.db import Database
from services.core.errors import RatchetError
from services.core.models import Json
from services.core.settings import from_environment
from services.core.target import Target
from services.metrics import collector
from services.metrics.cached import Reading
from services.metrics.document import document, strict_json
from services.metrics.health import Health, Status, VitalSigns, judge

PERIOD = 1.0  # seconds between two looks
WELL = {Status.OK: "well", Status.STARTING: "starting", Status.ILL: "ill", Status.UNKNOWN: "unknown"}


def run(environment: Environment, *, as_json: bool) -> None:
    """Print the state. A database that is away is part of the state, not an error."""
    state = read(environment)
    if as_json:
        print(strict_json(state))
    else:
        _print(state)


def watch(environment: Environment, *, as_json: bool, period: float = PERIOD) -> None:
    """Go on printing it until Ctrl-C: in place on a terminal, else what changed; as JSON an object a line."""
    screen = Screen(Terminal(sys.stdout))
    with suppress(KeyboardInterrupt), closing(screen):
        while True:
            state = read(environment)
            if as_json:
                print(strict_json(state, indent=None), flush=True)
            else:
                screen.show(told(state))
            time.sleep(period)


def read(environment: Environment) -> Json:
    """Everything: as GET /metrics?format=json has it, and this home's processes."""
    recorded = PidFiles(environment.home).all()
    said = session.read(environment.home)
    reading, health = _look(environment, said)
    return {
        "running": any(record.name == SUPERVISOR and record.process() for record in recorded),
        "home": str(environment.home),
        "dashboard": said.get("dashboard"),
        "start_seconds": said.get("seconds"),
        "sandbox": said.get("sandbox"),
        "processes": [described for record in recorded if (described := _describe(record))],
        **document(reading, health),
    }


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


def look(environment: Environment) -> tuple[Reading[dict[str, Any]], Health]:
    """What is known of this environment now: the snapshot, and how each part is."""
    return _look(environment, session.read(environment.home))


def _look(environment: Environment, said: Json) -> tuple[Reading[dict[str, Any]], Health]:
    """The snapshot and the health judged from the heartbeats, or why there are none."""
    try:
        with closing(_database(environment, said)) as database:
            signs = collector.vital_signs(database)
            snapshot = collector.snapshot(database, environment.settings.quality_threshold)
    except RatchetError as exc:
        error = str(exc)
        health = judge(VitalSigns(migrated=False), error=error, uptime_seconds=math.inf)
        return Reading(None, None, error), health
    health = judge(signs, error=None, uptime_seconds=math.inf)
    return Reading(snapshot, 0.0), health


def _database(environment: Environment, said: Json) -> Database:
    """As the role that can only read where its password is kept here, else as whom the environment names."""
    where = said.get("database")
    if not where:
        if not environment.names_database:
            raise RatchetError("nothing runs here: `ratchet up` (or `make up`) starts it")
        owner = environment.owner()
        if not (environment.home / "secrets" / "metrics" / "password").exists():
            return Database(owner, application="ratchet status", max_conn=1)
        where = {"host": owner.host, "port": owner.port, "dbname": owner.dbname}
    target = Target(**where, user="", password=SecretStr(""))
    login = from_environment(environment.for_service("metrics", target)).database()
    return Database(login, application="ratchet status", max_conn=1)


def _print(state: Json) -> None:
    console = Terminal(sys.stdout)
    if state["processes"]:
        console.print(_processes(state["processes"]))
    rows_told = told(state)
    wide = max(len(label) for label, _ in rows_told) + 2
    for label, text in rows_told:
        console.print(f"{label:{wide}}{text}")


def told(state: Json) -> list[Row]:
    """What to look at first, a line each."""
    said: list[Row] = [("ratchet", inert(state["error"]))] if state["error"] else []
    if state["ingest"] is not None:
        said += rows(state)
        for name, part in state["health"]["parts"].items():
            said.append((name, f"{WELL[part['status']]}: {inert(part['reason'])}"))
    if state["sandbox"]:
        said.append(("sandbox", inert(state["sandbox"]["says"])))
    for track in state["tracks"]:
        champion = track["champion"]
        best = f"round {champion['round']}: {inert(champion['reason'])}" if champion else "none yet"
        whose = "champion" if len(state["tracks"]) == 1 else f"champion of {track['name']}"
        said.append((whose, best if whose != "champion" else f"{track['name']}: {best}"))
    said += measurements(state["operations"])
    if state["dashboard"]:
        said.append(("dashboard", state["dashboard"]))
    return said


def measurements(operations: Json | None) -> list[Row]:
    """What was measured beside the verdicts; nothing of what was not."""
    said: list[Row] = []
    for row in (operations or {}).get("tracks", ()):
        if (words := measured.parity(row["parity"])) is not None:
            said.append(("measured", f"{inert(row['track'])}: the champion's {words}"))
        if (words := measured.planted((row["verdict"] or {}).get("planted"))) is not None:
            said.append(("measured", f"{inert(row['track'])}: in the last round {words}"))
    return said


def _processes(processes: list[Json]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("process", "pid", "memory", "running for"):
        table.add_column(name, justify="left" if name == "process" else "right")
    for process in processes:
        memory = f"{process['rss_bytes'] / 1e6:.0f} MB"
        table.add_row(process["name"], str(process["pid"]), memory, f"{process['seconds']:.0f} s")
    return table
