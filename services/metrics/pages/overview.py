"""What it is doing now, how far it is, what it serves and what it decided last."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Blueprint, render_template

from services.core.models import Json, Service, ServiceState
from services.metrics.alerting import alerts
from services.metrics.api.reader import Reader
from services.metrics.cached import Reading
from services.metrics.chart import line_chart
from services.metrics.document import is_figure
from services.metrics.health import Health
from services.metrics.links import adapter_page, round_page
from services.metrics.observer import Observer
from services.metrics.pages import practice
from services.metrics.pages.happenings import DECISIONS, happenings

SHOWN = 8  # decisions
DOING = {
    ServiceState.STARTING: "Starting",
    ServiceState.TRAINING: "Training",
    ServiceState.EVALUATING: "Measuring in",
    ServiceState.PUBLISHING: "Publishing",
    ServiceState.STALLED: "Stuck in",
    ServiceState.RECOVERING: "Taking up again",
}


@dataclass(frozen=True)
class Track:
    """A track's champion, what it gained, and how far the next round is."""

    name: str
    champion: Json | None
    gain: (
        float | None
    )  # share of the base model's bits per byte that the champion saves, or of tasks it gains
    team: bool  # agents that practise tasks, not a model of this code
    new: int | None  # contents, or of a team tasks; None: no trainer has said
    needed: int | None  # so many of them start a round; None: no trainer has said
    rounds: Json
    learned: int
    pause: Json | None  # at, by, reason; None: it is not paused
    message: str | None  # what its trainer said last


def add(pages: Blueprint, observer: Observer, _reader: Reader) -> None:
    @pages.get("/")
    def overview() -> str:
        return render_template("overview.html", **view(observer.snapshot(), observer.health()))


def view(reading: Reading[dict[str, Any]], health: Health) -> dict[str, Any]:
    """The template's variables."""
    value = reading.value
    shown: dict[str, Any] = {"reading": reading, "value": value, "alerts": alerts(value, health)}
    if value is not None:
        shown["running"] = _running(value)
        shown["tracks"] = [_track(row, value) for row in value["tracks"]]
        shown["charts"] = _charts(value["curve"])
        shown["happenings"] = happenings(value["happenings"], DECISIONS)[:SHOWN]
    return shown


def _running(value: Json) -> Json | None:
    """The open round in words, with the moment at which its training should be over."""
    row = value["running_round"]
    if row is None:
        return None
    eta, team = row["eta_s"], practice.is_practice(row)
    doing = DOING.get(row["state"], "Waiting for a trainer to take up")
    return {
        **row,
        "team": team,
        **practice.standing(value, row["track"], row["number"]),
        "doing": "Practising in" if team and row["state"] == ServiceState.TRAINING else doing,
        "page": round_page(row["track"], row["number"]),
        "done_at": datetime.now(UTC) + timedelta(seconds=eta) if is_figure(eta) and 0 < eta < 1e7 else None,
    }


def _track(row: Json, value: Json) -> Track:
    said: Json = {}
    for service in value["services"]:
        if service["service"] == Service.TRAINER and service["detail"].get("track") == row["name"]:
            said = service["detail"]
            break
    champion, needed, team = row["champion"], said.get("needed"), practice.is_practice(row)
    return Track(
        name=row["name"],
        champion=champion and {**champion, "page": adapter_page(row["name"], champion["directory"])},
        gain=_gain(champion),
        team=team,
        new=said.get("new_contents") if team else row["new_contents"],
        needed=needed if isinstance(needed, int) and needed > 0 else None,
        rounds=row["rounds"],
        learned=row["trained_contents"],
        pause=row["pause"],
        message=said.get("message"),
    )


def _gain(champion: Json | None) -> float | None:
    """1 - candidate / base, of the round that made it; of a team, how much more of the tasks it solves."""
    rates = (champion or {}).get("pass_rates") or {}
    if is_figure(rates.get("base")) and is_figure(rates.get("candidate")):
        return float(rates["candidate"] - rates["base"])
    bits = (champion or {}).get("bits_per_byte") or {}
    base, candidate = bits.get("base"), bits.get("candidate")
    return 1 - candidate / base if is_figure(base) and is_figure(candidate) and base > 0 else None


def _charts(curve: Json | None) -> list[Any]:
    if curve is None:
        return []
    wanted = (
        ("Training loss", "nats a token", "train", "loss"),
        ("Validation bits per byte", "bits a byte", "eval", "bits_per_byte"),
    )
    if any(is_figure(row.get("reward")) for row in curve["train"]):
        wanted = (
            ("Reward", "of an episode", "train", "reward"),
            ("Validation tasks solved", "share", "eval", "solved"),
        )
    found = []
    for title, unit, kind, key in wanted:
        rows = [(row["step"], row.get(key)) for row in curve[kind]]
        chart = line_chart(title, unit, [(step, value) for step, value in rows if is_figure(value)])
        if chart is not None:
            found.append(chart)
    return found
