"""`ratchet solutions`: programs that teams wrote and that passed their tests; taking some back."""

from collections.abc import Iterator, Sequence

from services.cli.asking import connection
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.metrics.document import strict_json
from services.trainer import solutions


def run(environment: Environment, task_set: str | None, *, as_json: bool) -> None:
    """Print how many there are, by task set. Raises ConfigurationError for a set that has none."""
    with connection.opened(environment, "ratchet solutions") as database, database.transaction() as tx:
        found = [row._asdict() for row in tx.all("cli_solutions")]
    if task_set is not None:
        found = [_of(task_set, found)]
    print(strict_json({"solutions": found}) if as_json else "\n".join(lines(found)))


def withdraw(environment: Environment, task_set: str, *, as_json: bool) -> None:
    """Take back those of a task set. Raises ConfigurationError when it has none, and while one is used."""
    with connection.opened(environment, "ratchet solutions") as database, database.transaction() as tx:
        _of(task_set, [row._asdict() for row in tx.all("cli_solutions")])
        withdrawn = solutions.withdraw(tx, task_set=task_set, round_id=None)
    told = f"{withdrawn:,} solutions of {inert(task_set)} are withdrawn: their texts are gone for good"
    print(strict_json({"task_set": task_set, "withdrawn": withdrawn}) if as_json else told)


def lines(found: Sequence[Json]) -> Iterator[str]:
    if not found:
        yield "no solution yet: rounds with objective: reinforcement keep the programs that pass their tests"
        return
    wide = max(8, *(len(inert(row["task_set"])) for row in found))
    yield f"{'task set':<{wide}}{'tasks':>8}{'offered':>9}{'rounds':>8}{'learned':>9}"
    for row in found:
        yield (
            f"{inert(row['task_set']):<{wide}}{row['tasks']:>8,}{row['offered']:>9,}{row['rounds']:>8,}"
            f"{row['learned']:>9,}"
        )
    yield ""
    yield "offered: to rounds with a solutions_share; rounds: that wrote them; learned: by a champion"


def _of(task_set: str, found: Sequence[Json]) -> Json:
    for row in found:
        if row["task_set"] == task_set:
            return row
    known = ", ".join(inert(row["task_set"]) for row in found) or "there are none yet"
    raise ConfigurationError(f"task set {inert(task_set)!r} has no solutions; those that have some: {known}")
