"""`ratchet down`: ask the supervisor to stop everything, then see that nothing is left."""

import json

from services.cli.environment import Environment
from services.cli.stack.preflight import alone
from services.cli.stack.processes import SUPERVISOR, PidFiles, end
from services.cli.stack.sweep import sweep

PATIENCE = 75.0  # seconds: the trainer's 30, both shutdowns of PostgreSQL, and some air


def run(environment: Environment, *, as_json: bool) -> None:
    """Stop the stack of this home, whole or in pieces. Raises StackError when a new one starts meanwhile."""
    home = environment.home
    if not home.exists():
        _tell(as_json, None, [])
        return
    record = PidFiles(home).read(SUPERVISOR)
    supervisor = record.process() if record else None
    if supervisor is not None:
        end([supervisor], PATIENCE)
    with alone(home):
        _tell(as_json, supervisor.pid if supervisor else None, sweep(home))


def _tell(as_json: bool, stopped: int | None, swept: list[str]) -> None:
    if as_json:
        print(json.dumps({"stopped": stopped, "swept": swept}))
        return
    if stopped is not None:
        print(f"stopped (process {stopped})")
    for left in swept:
        print(f"stopped what was left behind: {left}")
    if stopped is None and not swept:
        print("nothing was running")
