"""The routes below /api/v1 that tell what is now: the whole state, and what a person should look at."""

from flask import Blueprint, Response
from spectree import SpecTree

from services.metrics.alerting import alerts as alarms
from services.metrics.api import models
from services.metrics.api.spec import answers
from services.metrics.document import as_text
from services.metrics.observer import Observer


def add_state(api: Blueprint, spec: SpecTree, observer: Observer) -> None:
    @api.get("/state")
    @spec.validate(resp=answers(models.State), tags=["state"], skip_validation=True)
    def state() -> Response:
        """The whole state at one instant: what /metrics?format=json answers."""
        return Response(as_text(observer.snapshot(), observer.health()), content_type="application/json")

    @api.get("/alerts")
    @spec.validate(resp=answers(models.Alerts), tags=["state"])
    def alerts() -> models.Alerts:
        """What a person should look at, the worst first; none: nothing needs anybody."""
        reading = observer.snapshot()
        found = alarms(reading.value, observer.health())
        return models.Alerts.model_validate({"items": found, "stale": reading.is_stale})
