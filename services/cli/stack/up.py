"""`ratchet up`, from top to bottom: check, sweep, database, migrations, services, then watch and tell."""

import json
import logging
import signal
import sys
import time
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler

from services.cli.environment import Environment
from services.cli.printing import report
from services.cli.printing.progress import rows
from services.cli.printing.screen import Screen, Terminal
from services.cli.stack import dashboard_token, demo, sandbox, session
from services.cli.stack.migrate import migrate
from services.cli.stack.postgres import EmbeddedPostgres
from services.cli.stack.preflight import alone, check_port, check_room
from services.cli.stack.sandbox import LocalSandbox
from services.cli.stack.supervisor import Part, Say, Supervisor
from services.cli.stack.sweep import sweep
from services.core import log
from services.core.db import Database
from services.core.models import Json, RoundState
from services.core.process import StopSignal
from services.core.settings import Settings, from_environment
from services.core.target import Target
from services.metrics import collector
from services.metrics.cached import Cached
from services.trainer.recipes import files as recipe_files

TICK = 0.5  # seconds between two looks at the parts
SNAPSHOT_PERIOD = 1.0  # seconds between two looks at the database
SNAPSHOT_PATIENCE = 0.3  # seconds a tick waits for one
SERVICES = {"processor": 12.0, "trainer": 30.0, "metrics": 12.0}  # in stopping order; seconds each may take
LOG_MAX_BYTES = 1_000_000


def run(environment: Environment, *, until_round: bool = False, as_json: bool = False) -> int:
    """Run the stack until Ctrl-C, SIGTERM, or the first finished round; the exit status.

    0 after a stop that was asked for, or a promoted or refused round; 1 after a failed round. With
    `as_json` the last line of standard output is the round as JSON, the rest goes to standard error.
    Raises RatchetError when the stack cannot start; nothing is left running then.
    """
    stop = StopSignal()
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))
    screen = Screen(Terminal(sys.stderr if as_json else sys.stdout))
    with alone(environment.home):
        _log_to_file(environment)
        outcome = _run_alone(environment, stop, screen, until_round)
    if as_json and outcome is not None:
        print(json.dumps(outcome.as_json()))
    return 1 if until_round and outcome is not None and outcome.state == RoundState.FAILED else 0


def _run_alone(
    environment: Environment, stop: StopSignal, screen: Screen, until_round: bool
) -> report.Outcome | None:
    settings = environment.settings
    for left in sweep(environment.home):
        screen.say(f"stopped what an earlier run left behind: {left}")
    check_room(environment.home)
    check_port(settings.metrics_host, settings.metrics_port)
    recipe_files.load(settings.recipe, settings.recipe_overrides)  # else the trainer says so, again and again
    _fill_ingest(environment, screen.say)
    ours = session.Session(_dashboard(settings))
    server = None if environment.names_database else EmbeddedPostgres(environment.home)
    supervisor = Supervisor(environment.home, screen.say, server)
    try:
        target = _start_database(environment, supervisor, ours, screen.say)
        watched = _as_metrics(environment, target)
        seen = {row["id"] for row in collector.snapshot(watched)["rounds"] if row["closed_at"]}
        if not stop:
            place = _sandbox(environment, ours, screen.say)
            ours.write(environment.home)
            token, where = dashboard_token.token(environment)
            supervisor.start(parts(environment, target, place, token))
            screen.say(f"services started, logs in {settings.logs_dir} · Ctrl-C stops everything")
            screen.say(
                f"to promote, pause or start rounds in the dashboard, sign in with the token in {where}"
            )
        outcome = None
        for outcome in _rounds(settings, supervisor, watched, seen, stop, screen):
            _tell(outcome, screen)
            if until_round:
                break
        return outcome
    finally:
        screen.close()
        screen.say("stopping …")
        supervisor.stop()
        session.forget(environment.home)
        screen.say("stopped; a round that is open goes on from its last step when this is started again")


def _rounds(
    settings: Settings,
    supervisor: Supervisor,
    database: Database,
    seen: set[int],
    stop: StopSignal,
    screen: Screen,
) -> Iterator[report.Outcome]:
    """Watch the parts and show progress until `stop`; every round that ends meanwhile."""
    snapshots: Cached[Json] = Cached(
        lambda: collector.snapshot(database, settings.quality_threshold), SNAPSHOT_PERIOD, SNAPSHOT_PATIENCE
    )
    dashboard = ("dashboard", _dashboard(settings))
    while not stop:
        supervisor.watch()
        reading = snapshots.read()
        if reading.value is not None:
            for closed in report.ended(reading.value, seen, settings.adapters_dir):
                yield report.outcome(closed, settings.adapters_dir)
            away = [("database", reading.error)] if reading.error else []
            screen.show([*rows(reading.value), *away, dashboard])
        stop.wait(TICK)


def parts(environment: Environment, target: Target, place: LocalSandbox, token: str) -> list[Part]:
    """The services, in the order in which they start and stop; the trainer learns where the sandbox is."""
    knows = {"metrics": {"DASHBOARD_TOKEN": token}}
    if place.socket:
        knows["trainer"] = {"SANDBOX_SOCKET": str(place.socket)}
    services = [
        Part(
            name=name,
            command=(sys.executable, "-m", f"services.{name}"),
            environment=environment.for_service(name, target) | knows.get(name, {}),
            log=environment.settings.logs_dir / f"{name}.log",
            patience=patience,
        )
        for name, patience in SERVICES.items()
    ]
    return [*services, sandbox.part(environment, place)] if place.starts else services


def _start_database(
    environment: Environment, supervisor: Supervisor, ours: session.Session, say: Say
) -> Target:
    """Start PostgreSQL, or take the one that is named, and migrate it."""
    begun = time.monotonic()
    target = environment.owner() if environment.names_database else supervisor.start_server()
    ours.seconds["postgres"] = round(time.monotonic() - begun, 3)
    begun = time.monotonic()
    applied = migrate(environment.as_owner(target))
    ours.seconds["migrate"] = round(time.monotonic() - begun, 3)
    ours.database = {"host": target.host, "port": target.port, "dbname": target.dbname}
    say(
        f"PostgreSQL at {target.host}:{target.port}"
        + (f", migrations applied: {len(applied)}" if applied else "")
    )
    return target


def _sandbox(environment: Environment, ours: session.Session, say: Say) -> LocalSandbox:
    """Where generated programs will run; a person hears of it when they cannot, or not safely."""
    place = sandbox.decide(environment, sandbox.complaint())
    place.make_folder()
    ours.sandbox = place.as_json()
    if not place.isolated:
        say(f"sandbox: {place.says}")
        logging.getLogger(__name__).warning("sandbox: %s", place.says)
    return place


def _as_metrics(environment: Environment, target: Target) -> Database:
    """The database as the role that can only read."""
    login = from_environment(environment.for_service("metrics", target)).database()
    return Database(login, application="ratchet up", max_conn=2)


def _fill_ingest(environment: Environment, say: Say) -> None:
    ingest = environment.settings.ingest_dir
    filled = demo.fill_if_empty(ingest, environment.home)
    if filled is not None:
        say(
            f"{ingest} is empty: copied {filled.files} files of {len(filled.packages)} packages that are"
            f" installed here as demonstration code; drop your own repositories into {ingest}"
        )


def _tell(outcome: report.Outcome, screen: Screen) -> None:
    screen.print(report.table(outcome))
    if (code := report.how_to_use(outcome)) is not None:
        screen.say(f"Use it from Python:\n{code}\n")


def _dashboard(settings: Settings) -> str:
    host, port = settings.metrics_host, settings.metrics_port
    everywhere = host in ("0.0.0.0", "::", "127.0.0.1", "::1")  # noqa: S104 - compared, not bound
    return f"http://{'localhost' if everywhere else host}:{port}"


def _log_to_file(environment: Environment) -> None:
    """Our own log beside those of the services: the screen is for progress."""
    settings = environment.settings
    settings.logs_dir.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(settings.logs_dir / "up.log", maxBytes=LOG_MAX_BYTES, backupCount=1)
    handler.setFormatter(log.formatter("up", settings.secrets(), settings.log_format))
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
