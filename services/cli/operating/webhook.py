"""`ratchet webhook test|list|run`: try the addresses, see how they fare, send from a process of its own."""

import datetime
import json
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from services.cli.asking import connection
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core import log
from services.core.errors import ConfigurationError, DatabaseUnavailableError, MigrationError
from services.core.models import Json
from services.core.process import StopSignal
from services.core.settings import REDACTED, Settings
from services.trainer.events import Event
from services.trainer.webhooks import endpoints as addresses
from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.message import message
from services.trainer.webhooks.outbox import Outbox
from services.trainer.webhooks.sender import Sender
from services.trainer.webhooks.transport import Answer, post

SHOWN = 200  # characters of an answer's body
HOUR = 3600.0  # seconds


def test(environment: Environment, *, as_json: bool) -> bool:
    """Send an event `webhook.test` to every address and print what it answers; whether all took it.

    One that takes it is sent to again if it was disabled. Raises ConfigurationError when there is none.
    """
    settings = environment.settings
    now = datetime.datetime.now(datetime.UTC)
    said = {"message": "a test of this webhook by `ratchet webhook test`"}
    event = Event(0, str(uuid.uuid4()), "webhook.test", None, None, None, said, now)
    tried = [(endpoint, post(endpoint, message(event, settings, now))) for endpoint in _named(settings)]
    enabled = _enabled(environment, [endpoint for endpoint, answer in tried if answer.is_taken])
    answers = [_told(endpoint, answer, settings, enabled) for endpoint, answer in tried]
    print(json.dumps(answers) if as_json else "\n".join(map(_line, answers)))
    return all(answer.is_taken for _, answer in tried)


def show(environment: Environment, *, as_json: bool) -> None:
    """Print of every address what it got and what waits for it."""
    endpoints = _named(environment.settings)
    with connection.opened(environment, "ratchet webhook") as database:
        states = {row.name: row._asdict() for row in Outbox(database).states(endpoints)}
    known = [states.get(endpoint.name, {"name": endpoint.name}) for endpoint in endpoints]
    print(json.dumps(known) if as_json else "\n".join(map(_state, known)))


def run(environment: Environment, *, as_json: bool = False) -> None:
    """Send what is due until SIGTERM: so it is told, too, that the trainer, which else sends, has died."""
    settings = environment.settings
    log.setup("webhooks", settings.log_level, settings.secrets(), settings.log_format)
    stop = StopSignal()
    names = [endpoint.name for endpoint in _named(settings)]
    sender = Sender(environment.at(connection.target(environment)))
    sender.start()
    print(
        json.dumps({"endpoints": names}) if as_json else f"sending to {', '.join(names)} until Ctrl-C",
        flush=True,
    )
    while not stop:
        stop.wait(HOUR)
    sender.stop()


def _named(settings: Settings) -> tuple[Endpoint, ...]:
    endpoints = addresses.from_settings(settings)
    if not endpoints:
        raise ConfigurationError("WEBHOOK_URLS names no address (docs/how-to/webhooks.md)")
    return endpoints


def _enabled(environment: Environment, taken: Iterable[Endpoint]) -> set[str]:
    """Names of those that were disabled until now. Without a database none is known."""
    away = (ConfigurationError, DatabaseUnavailableError, MigrationError)
    with suppress(*away), connection.opened(environment, "ratchet webhook") as database:
        outbox = Outbox(database)
        return {endpoint.name for endpoint in taken if outbox.enable(endpoint)}
    return set()


def _told(endpoint: Endpoint, answer: Answer, settings: Settings, enabled: set[str]) -> Json:
    text = answer.text
    for secret in settings.secrets():  # a receiver may quote what it was sent
        text = text.replace(secret, REDACTED)
    return {
        "endpoint": endpoint.name,
        "taken": answer.is_taken,
        "status": answer.status,
        "error": answer.error,
        "seconds": round(answer.seconds, 3),
        "answer": text[:SHOWN],
        "enabled_again": endpoint.name in enabled,
    }


def _line(answer: Json) -> str:
    what = f"taken, HTTP {answer['status']}" if answer["taken"] else f"not taken: {answer['error']}"
    line = f"{answer['endpoint']}: {what}, after {answer['seconds']:.2f} s"
    if answer["enabled_again"]:
        line += "; it was disabled, and gets events again"
    return f"{line}\n  {inert(' '.join(answer['answer'].split()))}" if answer["answer"].strip() else line


def _state(row: dict[str, Any]) -> str:
    if "due" not in row:
        return f"{row['name']}: no trainer has had it in its settings yet"
    line = f"{row['name']}: {row['delivered']} delivered, {row['due']} due, {row['given_up']} given up"
    if row["disabled_because"]:
        line += f"; disabled, {row['disabled_because']}: `ratchet webhook test` enables it if it answers"
    elif row["error"]:
        line += f"; last: {row['error']}"
    return line
