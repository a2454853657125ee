"""`ratchet train` without `--now`: what the next round of a track waits for."""

from collections.abc import Iterator

from services.cli.asking import connection, tracks
from services.cli.environment import Environment
from services.cli.printing.figures import moment
from services.cli.printing.inert import inert
from services.cli.printing.progress import newest
from services.cli.printing.progress import training as beat_words
from services.core.models import Json, Service
from services.metrics.document import strict_json

COUNTED = 100_000  # new contents at most: nobody needs to know more exactly


def run(environment: Environment, track: str | None, *, as_json: bool) -> None:
    """Print it. Raises ConfigurationError for a track that is none, DatabaseUnavailableError."""
    settings = environment.settings
    with connection.opened(environment, "ratchet train") as database, database.transaction() as tx:
        name = tracks.one(environment, tx, track)
        row = tx.one("cli_waiting", track=name, threshold=settings.quality_threshold, most=COUNTED)
        beats = [beat._asdict() for beat in tx.all("metrics_beats")]
    beat = newest([each for each in beats if each["detail"].get("track") == name], Service.TRAINER)
    said: Json = {} if beat is None else beat["detail"]
    told = {
        **row._asdict(),
        "needed": said.get("needed") or settings.min_new_files,
        "quality_threshold": settings.quality_threshold,
        "trainer": None if beat is None else {"state": beat["state"], "detail": beat["detail"]},
    }
    if row.task_set is not None:  # the trainer counts tasks, the database contents
        told.update(new=said.get("new_contents"), needed=said.get("needed") or 1)
    print(strict_json(told) if as_json else "\n".join(lines(told)))


def lines(told: Json) -> Iterator[str]:
    track = inert(told["track"])
    more = " or more" if told["new"] == COUNTED else ""
    if told["task_set"] is not None:
        new = "no trainer has counted the" if told["new"] is None else f"{told['new']:,}"
        yield (
            f"{track}: {new} tasks of {inert(told['task_set'])} that it has not practised; a round starts by"
            f" itself at {told['needed']:,}"
        )
    else:
        yield (
            f"{track}: {told['new']:,}{more} new contents score {told['quality_threshold']} or more;"
            f" a round starts by itself at {told['needed']:,}"
        )
    if told["paused_at"] is not None:
        why = f" ({inert(told['pause_reason'])})" if told["pause_reason"] else ""
        yield (
            f"it is paused since {moment(told['paused_at'])} UTC by {inert(told['paused_by'])}{why}:"
            " `ratchet resume` ends it"
        )
    if told["trainer"] is None:
        yield "no trainer of it is heard of: `ratchet up` starts one"
    elif told["open_round"] is not None:
        yield f"the trainer is at work: {inert(beat_words(told['trainer']))}"
    elif told["task_set"] is not None and told["paused_at"] is None:
        yield "`ratchet train --now` starts one with all tasks that there are"
    elif told["new"] and told["paused_at"] is None:
        yield "`ratchet train --now` starts one with what there is"
