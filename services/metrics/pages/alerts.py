"""What a person should look at, since when, and what to do about it."""

from flask import Blueprint, render_template

from services.metrics.alerting import alerts
from services.metrics.api.reader import Reader
from services.metrics.observer import Observer
from services.metrics.pages.happenings import TROUBLE, happenings

SHOWN = 8  # past troubles
WATCHED = (
    ("stalled", "a part that is silent, cannot work or does not answer"),
    ("failing", "rounds that crash, and crash again when they are taken up"),
    ("refusing", "rounds that the gate refuses three times in a row and more"),
    ("disk", "little room where adapters and checkpoints are written"),
    ("forgetting", "a suite in which what is served got worse"),
)


def add(pages: Blueprint, observer: Observer, _reader: Reader) -> None:
    @pages.get("/alerts", endpoint="alerts")
    def show() -> str:
        reading = observer.snapshot()
        past = happenings(reading.value["happenings"] if reading.value else [], TROUBLE)
        found = alerts(reading.value, observer.health())
        return render_template(
            "alerts.html", reading=reading, alerts=found, past=past[:SHOWN], watched=WATCHED
        )
