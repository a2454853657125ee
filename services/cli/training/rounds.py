"""`ratchet rounds`: the newest rounds, a line each."""

from collections.abc import Iterator, Sequence
from typing import Any

from services.cli.asking import connection, tracks
from services.cli.environment import Environment
from services.cli.printing.figures import RATE, gain, moment, short, took
from services.cli.printing.inert import inert
from services.core.models import Json
from services.metrics.document import strict_json

NEWEST = 2**63 - 1  # as an id: before any there is
REASON = 70  # characters of one in the list; `ratchet round N` has the rest


def run(environment: Environment, track: str | None, *, most: int, as_json: bool) -> None:
    """Print them. Raises ConfigurationError for a track that is none, DatabaseUnavailableError."""
    with connection.opened(environment, "ratchet rounds") as database, database.transaction() as tx:
        if track is not None:
            tracks.checked(track, tracks.known(tx))
        rows = tx.all("page_rounds", after=NEWEST, track=track, state=None, limit=most)
    found = [described(row) for row in rows]
    print(strict_json({"rounds": found}) if as_json else "\n".join(lines(found)))


def described(row: Any) -> Json:
    """A row of `page_rounds` for a script."""
    return {
        "track": row.track,
        "number": row.number,
        "state": row.state,
        "attempts": row.attempts,
        "opened_at": row.opened_at,
        "closed_at": row.closed_at,
        "steps": row.steps,
        "tokens": row.tokens,
        "objective": row.objective,
        "metric": row.metric,
        "improvement": row.improvement,
        "against": row.against,
        "adapter": row.adapter,
        "reason": row.reason,
    }


def lines(rounds: Sequence[Json]) -> Iterator[str]:
    if not rounds:
        yield "no round yet: `ratchet train` says what the first one waits for"
        return
    wide = max(5, *(len(inert(row["track"])) for row in rounds))
    head = f"{'round':>6}  {'state':<9}{'began':<18}{'took':>8}{'tokens':>8}{'gain':>9}  why"
    yield f"{'track':<{wide}}{head}"
    for row in rounds:
        yield (
            f"{inert(row['track']):<{wide}}{row['number']:>6}  {row['state']:<9}"
            f"{moment(row['opened_at']):<18}"
            f"{took(row['opened_at'], row['closed_at']):>8}{short(row['tokens']):>8}"
            f"{gain(row['improvement'], row['metric']):>9}  {clipped(row['reason'])}"
        ).rstrip()
    yield ""
    yield "gain: fewer bits per byte of held-out code than the champion or base model before"
    if any(row["metric"] == RATE for row in rounds):
        yield "      of a team (pts): points of pass rate more, on held-out tasks"


def clipped(text: str | None) -> str:
    """The beginning of a reason, in one line."""
    line = inert(" ".join((text or "").split()))
    return line if len(line) <= REASON else f"{line[: REASON - 1]}…"
