"""Threads that send what is due, one an endpoint, and one that watches over the services' heartbeats.

They have connections of their own and are never waited for: a receiver that hangs holds up its own deliveries
alone, and neither a round nor the daemon's stop. Whatever fails in them is logged and tried again.
"""

import datetime
import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from services.core.db import Database
from services.core.errors import DatabaseUnavailableError
from services.core.models import EVENT_GROUPS, HEARTBEAT_INTERVAL
from services.core.process import failpoint
from services.core.settings import Settings
from services.trainer.webhooks import endpoints as addresses
from services.trainer.webhooks import schedule
from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.message import message
from services.trainer.webhooks.outbox import Outbox
from services.trainer.webhooks.transport import post

log = logging.getLogger(__name__)
POLL = 1.0  # seconds between two looks into the outbox when it is empty
KEEP_INTERVAL = 60.0  # seconds between two words that an endpoint is still in the settings
AFTER_TROUBLE = 5.0  # seconds, with the database for example
GOODBYE = 1.0  # seconds for all threads at stop; what they had in hand is sent again once its lease is over
CONNECTIONS = 3


class Sender:
    """`start` and `stop` return at once, or nearly; several senders on one database share the work."""

    def __init__(self, settings: Settings) -> None:
        """Raises ConfigurationError when the settings of webhooks do not fit together."""
        self.endpoints = addresses.from_settings(settings)
        self._settings = settings
        self._kinds = [kind for group in settings.webhook_events for kind in EVENT_GROUPS[group]]
        self._database = Database(
            settings.database(), application="ratchet webhooks", min_conn=0, max_conn=CONNECTIONS
        )
        self._outbox = Outbox(self._database)
        self._over = threading.Event()
        self._next_keep = 0.0  # monotonic seconds
        work = [self._watch, *(partial(self._deliver, endpoint) for endpoint in self.endpoints)]
        self._threads = [
            threading.Thread(target=self._repeat, args=(each,), name=f"webhooks-{number}", daemon=True)
            for number, each in enumerate(work)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        for endpoint in self.endpoints:
            log.info("events go to %s", endpoint.name)

    def stop(self) -> None:
        self._over.set()
        end = time.monotonic() + GOODBYE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._database.close()

    def _repeat(self, work: Callable[[], float]) -> None:
        """The work, again and again, as many seconds apart as it says; nothing it raises ends the thread."""
        said = None
        while not self._over.is_set():
            try:
                wait, trouble = work(), None
            except DatabaseUnavailableError as exc:
                wait, trouble = AFTER_TROUBLE, str(exc)
            except Exception as exc:  # whatever it is, later events are to be sent, and the daemon lives on
                wait, trouble = AFTER_TROUBLE, f"{type(exc).__name__}: {exc}".splitlines()[0]
            if trouble is not None and trouble != said:
                log.warning("webhooks: %s; trying again", trouble)
            said = trouble
            self._over.wait(wait)

    def _watch(self) -> float:
        """Say that the endpoints are still wanted, and look whether a service has fallen silent."""
        if self.endpoints and time.monotonic() >= self._next_keep:
            self._outbox.keep(self.endpoints, self._kinds)
            self._next_keep = time.monotonic() + KEEP_INTERVAL
        self._outbox.notice_stalls()
        return HEARTBEAT_INTERVAL

    def _deliver(self, endpoint: Endpoint) -> float:
        """Send what is due next, if anything; seconds until there may be more to do."""
        delivery = self._outbox.claim(endpoint)
        if delivery is None:
            return POLL
        now = datetime.datetime.now(datetime.UTC)
        answer = post(endpoint, message(delivery.event, self._settings, now))
        failpoint("webhook.after_send")
        wait = None if answer.is_taken else schedule.next_try(delivery.attempts, answer)
        self._outbox.record(endpoint, delivery, answer, wait)
        told = f"{delivery.event.kind} {delivery.event.event_id} to {endpoint.name}"
        if answer.is_taken:
            log.info("%s: taken in %.1f s", told, answer.seconds)
            return 0.0
        after = "giving up" if wait is None or answer.is_gone else f"again in {wait:.0f} s"
        log.warning("%s, attempt %d: %s; %s", told, delivery.attempts, answer.error, after)
        return schedule.pause(answer)
