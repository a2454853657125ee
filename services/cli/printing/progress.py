"""How things stand, in a few lines: from the snapshot that `services.metrics.collector` takes."""

from collections.abc import Sequence

from services.cli.printing.figures import clock
from services.cli.printing.inert import inert
from services.core.models import HEARTBEAT_STALE, Json, Service, ServiceState
from services.metrics.document import is_figure
from services.metrics.pages import practice

Row = tuple[str, str]  # what it is about, how it stands
WORDS = {
    ServiceState.STARTING: "starting",
    ServiceState.TRAINING: "training",
    ServiceState.EVALUATING: "measuring",
    ServiceState.PUBLISHING: "publishing the adapter",
    ServiceState.STANDBY: "standing by: another trainer has the track",
    ServiceState.STALLED: "stalled",
    ServiceState.RECOVERING: "recovering from a crash",
    ServiceState.ERROR: "cannot work",
}
BAR = 20  # characters


def rows(snapshot: Json) -> list[Row]:
    """Ingest, training, gate."""
    beats = snapshot["services"]
    said = {
        "ingest": ingest(snapshot["ingest"], newest(beats, Service.PROCESSOR)),
        "training": training(beat := newest(beats, Service.TRAINER), practising(snapshot, beat)),
        "gate": gate(snapshot["rounds"]),
    }
    return [(label, inert(text)) for label, text in said.items()]


def newest(beats: Sequence[Json], service: Service) -> Json | None:
    """The last heartbeat of a service, None when it has been silent for long."""
    own = (beat for beat in beats if beat["service"] == service and beat["age_seconds"] <= HEARTBEAT_STALE)
    return min(own, key=lambda beat: float(beat["age_seconds"]), default=None)


def ingest(totals: Json, beat: Json | None) -> str:
    parts = [
        f"{totals['files_accepted']:,} files stored, {totals['files_rejected']:,} rejected",
        f"{totals['contents_above_threshold']:,} contents score {totals['quality_threshold']} or more",
    ]
    if beat is None:
        parts.append("the processor is not heard of yet")
    elif beat["state"] == ServiceState.SCANNING:
        detail = beat["detail"]
        parts.append(f"reading {detail.get('source') or '…'} at {detail.get('files_per_s') or 0:.0f} files/s")
    elif beat["detail"].get("message"):
        parts.append(str(beat["detail"]["message"]))
    return " · ".join(parts)


def practising(snapshot: Json, beat: Json | None) -> Json | None:
    """What the round that this heartbeat is of logged last; None unless a team practises in it."""
    detail = {} if beat is None else beat["detail"]
    for row in (snapshot.get("operations") or {}).get("practice", ()):
        if (row["track"], row["round"]) == (detail.get("track"), detail.get("round")):
            return {
                "reward": (row["metrics"] or {}).get("reward"),
                "passed": (row["evaluated"] or {}).get("solved"),
            }
    tracks = snapshot.get("tracks") or ()
    is_team = any(row["name"] == detail.get("track") and practice.is_practice(row) for row in tracks)
    return {} if is_team and detail.get("round") is not None else None


def training(beat: Json | None, team: Json | None = None) -> str:
    """team: the last reward and pass rate, where a team practises."""
    if beat is None:
        return "the trainer is not heard of yet"
    state, detail = beat["state"], beat["detail"]
    word, message = str(WORDS.get(state, state)), detail.get("message")
    if team is not None and state == ServiceState.TRAINING:
        word = "practising"
    ill = state in (ServiceState.STALLED, ServiceState.RECOVERING, ServiceState.ERROR)
    parts = [word, message] if ill else [message or word]
    if detail.get("round") is not None:
        parts.insert(0, f"round {detail['round']}")
    elif state == ServiceState.IDLE:
        new, needed = detail.get("new_contents") or 0, detail.get("needed") or 0
        waiting = f"waiting: {new:,} new files, {needed:,} needed"
        parts = [message or waiting]
    if state in (ServiceState.TRAINING, ServiceState.EVALUATING):
        parts += _figures(detail) if team is None else _practice(detail, team)
    return " · ".join(part for part in parts if part)


def _figures(detail: Json) -> list[str]:
    figures = []
    step, total = detail.get("step"), detail.get("total_steps")
    if step is not None and total:
        filled = min(BAR, BAR * int(step) // int(total))
        figures.append(f"{'━' * filled}{'╌' * (BAR - filled)} step {step}/{total}")
    for name, form in (("loss", "loss {:.3f}"), ("tokens_per_s", "{:,.0f} tokens/s")):
        if detail.get(name) is not None:
            figures.append(form.format(detail[name]))
    if detail.get("eta_s"):
        figures.append(f"{clock(detail['eta_s'])} left")
    return figures


def _practice(detail: Json, team: Json) -> list[str]:
    """Iteration 12/100 · reward 0.41 · 43 % of the validation tasks solved · 2:05 left."""
    figures = [text.replace(" step ", " iteration ") for text in _figures({**detail, "loss": None})]
    said = []
    if is_figure(team.get("reward")):
        said.append(f"reward {team['reward']:.2f}")
    if is_figure(team.get("passed")):
        said.append(f"{100 * team['passed']:.0f} % of the validation tasks solved")
    return [*figures[:1], *said, *figures[1:]]


def gate(rounds: Sequence[Json]) -> str:
    closed = next((row for row in rounds if row["closed_at"]), None)
    if closed is None:
        return "nothing judged yet"
    verdict = closed["verdict"] or {}
    return f"round {closed['number']} {closed['state']}: {verdict.get('reason') or 'no reason given'}"
