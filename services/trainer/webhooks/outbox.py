"""The outbox: what each endpoint has not got yet. An event's transaction fills it (0012_events.sql)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.db import Database
from services.trainer.events import Event
from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.transport import Answer

LEASE = (
    60.0  # seconds a claimed delivery is its sender's alone: above transport's LATEST and DEADLINE together
)


@dataclass(frozen=True)
class Delivery:
    """An event that this sender is to send to one endpoint now."""

    event: Event
    attempts: int  # with this one


class Outbox:
    """Methods raise DatabaseUnavailableError when PostgreSQL is away. Each is one short transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, endpoints: Iterable[Endpoint], kinds: Sequence[str]) -> None:
        """Have events of these kinds put down for these endpoints: those of the next seven days."""
        with self._database.transaction() as tx:
            for endpoint in endpoints:
                tx.execute("keep_endpoint", name=endpoint.name, kinds=list(kinds))

    def notice_stalls(self) -> None:
        with self._database.transaction() as tx:
            tx.execute("notice_stalls")

    def claim(self, endpoint: Endpoint) -> Delivery | None:
        """One that is due and that nobody else is sending; None when there is none."""
        with self._database.transaction() as tx:
            row = tx.one("claim_delivery", endpoint=endpoint.name, lease=LEASE)
        return None if row is None else Delivery(Event.of(row), row.attempts)

    def record(self, endpoint: Endpoint, delivery: Delivery, answer: Answer, wait: float | None) -> None:
        """What came of it; after a failure it is due again in `wait` seconds, None: never."""
        of: dict[str, Any] = {
            "event_id": delivery.event.event_id,
            "endpoint": endpoint.name,
            "status": answer.status,
        }
        failed = {**of, "error": answer.error, "attempts": delivery.attempts}
        with self._database.transaction() as tx:
            if answer.is_taken:
                tx.execute("delivered", **of)
            elif answer.is_gone or wait is None:
                tx.execute("give_up_delivery", **failed)
            else:
                tx.execute("not_delivered", **failed, wait=wait)
            if answer.is_gone:
                reason = "it answered 410 Gone"
                tx.execute("disable_endpoint", name=endpoint.name, reason=reason)
                tx.execute("drop_deliveries", name=endpoint.name, reason=reason)

    def enable(self, endpoint: Endpoint) -> bool:
        """Send to an endpoint again that was disabled; whether it was."""
        with self._database.transaction() as tx:
            return tx.execute("enable_endpoint", name=endpoint.name) > 0

    def states(self, endpoints: Iterable[Endpoint]) -> list[Any]:
        """A row for each that a sender has ever had: name, disabled_because, delivered, due, given_up, …"""
        with self._database.transaction() as tx:
            return tx.all("endpoint_states", names=[endpoint.name for endpoint in endpoints])
