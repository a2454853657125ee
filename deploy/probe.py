"""Healthchecks of the containers: `python -m deploy.probe metrics|processor|sandbox|serving|trainer`.

Exit status 0 means healthy. Otherwise 1, and the one line printed says why; the engine keeps it
(`docker inspect`). metrics and serving are asked over HTTP and any status but 200 is ill. processor and
trainer are judged by the last heartbeat of this very container: it must be fresh and not of an ill state.
sandbox is connected to and must greet as one that isolates programs, which it tried when it started.
"""

import json
import os
import socket
import sys
import urllib.error
import urllib.request

TIMEOUT = 5.0  # seconds
GREETING_MAX = 1000  # bytes
SANDBOX_SOCKET = "/run/sandbox/socket"  # as in docker-compose.yml


def http_complaint(port: str) -> str | None:
    """What is wrong with the metrics or serving service of this container, or None."""
    url = f"http://127.0.0.1:{port}/health/ready"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            return None if answer.status == 200 else f"{url} answers {answer.status}, expected 200"
    except urllib.error.HTTPError as exc:
        return f"{url} answers {exc.code}, expected 200: {exc.read(500).decode(errors='replace')}"
    except OSError as exc:
        return f"{url} does not answer: {exc}"


def beat_complaint(service: str) -> str | None:
    """What is wrong with the processor or trainer of this container, or None.

    Raises ConfigurationError for settings that cannot be.
    """
    # Imported here: the metrics check needs the standard library only, and starts the faster.
    from services.core import db, settings
    from services.core.errors import DatabaseUnavailableError

    database = db.Database(settings.from_environment().database(), application=f"{service} healthcheck")
    try:
        with database.transaction() as transaction:
            beat = transaction.one("last_beat_of_host", service=service, host=socket.gethostname())
    except DatabaseUnavailableError as exc:
        return str(exc)
    finally:
        database.close()
    return judged_beat(service, None if beat is None else beat._asdict())


def judged_beat(service: str, beat: dict[str, object] | None) -> str | None:
    """What a last heartbeat {state, message, age_s} says is wrong, or None."""
    from services.core.models import HEARTBEAT_STALE, ServiceState

    if beat is None:
        return f"{service} has not sent a heartbeat"
    age = float(str(beat["age_s"]))
    if age > HEARTBEAT_STALE:
        return f"{service} has been silent for {age:.0f} s, expected at most {HEARTBEAT_STALE:.0f} s"
    if ServiceState(str(beat["state"])).is_ill:
        return f"{service} is {beat['state']}: {beat['message'] or 'see its log'}"
    return None


def sandbox_complaint(path: str) -> str | None:
    """What is wrong with the sandbox that listens at this socket, or None. It greets however busy it is."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(path)
            with connection.makefile("rb") as lines:
                greeting = json.loads(lines.readline(GREETING_MAX))
    except (OSError, ValueError) as exc:
        return f"{path} does not greet: {exc}"
    isolation = greeting.get("isolation") if isinstance(greeting, dict) else None
    return None if isolation == "bubblewrap" else f"{path} has isolation {isolation!r}, expected 'bubblewrap'"


def main(arguments: list[str]) -> int:
    match arguments:
        case ["metrics"]:
            complaint = http_complaint(os.environ.get("METRICS_PORT") or "8090")
        case ["serving"]:
            complaint = http_complaint(os.environ.get("SERVE_PORT") or "8000")
        case ["sandbox"]:
            complaint = sandbox_complaint(SANDBOX_SOCKET)
        case ["processor" | "trainer" as service]:
            complaint = beat_complaint(service)
        case _:
            asked = f"deploy.probe {' '.join(arguments)}"
            complaint = f"{asked}: expected metrics, processor, sandbox, serving or trainer"
    if complaint:
        sys.stderr.write(f"{complaint}\n")
    return 1 if complaint else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
