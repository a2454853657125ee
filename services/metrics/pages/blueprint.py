"""All pages in one Blueprint, with what each is framed by."""

from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, Flask

from services.metrics.alerting import alerts as alarms
from services.metrics.api.reader import Reader
from services.metrics.observer import Observer
from services.metrics.pages import adapters, alerts, content, ingest, overview, rounds
from services.metrics.pages.words import FILTERS

NAVIGATION = (
    ("/", "Overview"),
    ("/ingest", "Ingest"),
    ("/rounds", "Rounds"),
    ("/adapters", "Adapters"),
    ("/alerts", "Alerts"),
    ("/api", "API"),
)


def add_pages(app: Flask, observer: Observer, reader: Reader) -> None:
    pages = Blueprint("pages", __name__)
    for page in (overview, ingest, content, rounds, adapters, alerts):
        page.add(pages, observer, reader)
    app.jinja_env.filters.update(FILTERS)
    app.register_blueprint(pages)

    @app.context_processor
    def frame() -> dict[str, Any]:
        """What base.html shows on every page."""
        health = observer.health()
        return {
            "navigation": NAVIGATION,
            "health": health,
            "alarms": len(alarms(observer.snapshot().value, health)),
            "now": datetime.now(UTC),
        }
