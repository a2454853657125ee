"""What is around Ratchet: ports, the sandbox, Docker, webhooks' addresses."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterable, Iterator

from services.cli.doctor.finding import Finding, error, ok, skipped, warning
from services.cli.environment import Environment
from services.cli.stack import sandbox
from services.cli.stack.preflight import check_port
from services.cli.stack.processes import SUPERVISOR, PidFiles
from services.core.errors import ConfigurationError
from services.trainer.webhooks import endpoints
from services.trainer.webhooks.endpoints import Endpoint

TOOL_SECONDS = 2.5  # patience with docker
CONNECT_SECONDS = 3.0  # with a webhook's address
OLDEST_COMPOSE = (1, 29)  # docker-compose.yml is written for it


def ports(environment: Environment) -> Iterator[Finding]:
    """Whether the dashboard and the model server could listen; those that run here use theirs rightly."""
    settings = environment.settings
    supervisor = PidFiles(environment.home).read(SUPERVISOR)
    if supervisor is not None and supervisor.process() is not None:
        yield ok("ports", f"Ratchet runs here (process {supervisor.pid}): `ratchet status` shows how it is")
        return
    wanted = {"METRICS_PORT": (settings.metrics_host, settings.metrics_port)}
    wanted["SERVE_PORT"] = (settings.serve_host, settings.serve_port)
    for name, (host, port) in wanted.items():
        try:
            check_port(host, port, name)
        except ConfigurationError as exc:
            said, _, cure = str(exc).partition("): ")
            tell = error if name == "METRICS_PORT" else warning  # `ratchet serve` may never be wanted
            yield tell("ports", f"{said})", cure)
        else:
            yield ok("ports", f"{name}={port} on {host} is free")


def cage(environment: Environment) -> Iterable[Finding]:
    """Whether generated programs can be run in isolation."""
    complaint = sandbox.complaint() if environment.settings.sandbox_socket is None else None
    place = sandbox.decide(environment, complaint)
    if place.isolated:
        return [ok("sandbox", place.says)]
    cure = "docs/how-to/sandbox.md says what each system needs; suites that run no programs work without"
    return [warning("sandbox", place.says.partition(". All that runs")[0], cure)]


def containers(_environment: Environment) -> Iterable[Finding]:
    """Docker and Compose, which only a server needs."""
    if shutil.which("docker") is None:
        return [skipped("docker", "not installed: only `docker-compose up` needs it")]
    engine = _said("docker", "version", "--format", "{{.Server.Version}}")
    compose = _said("docker", "compose", "version", "--short") or _said(
        "docker-compose", "version", "--short"
    )
    if compose is None:
        return [
            warning(
                "docker",
                "Docker is here without Compose",
                "for a server install the compose plugin; `ratchet up` does without",
            )
        ]
    if version(compose) < OLDEST_COMPOSE:
        return [warning("docker", f"Compose {compose} is too old", "for a server install 1.29 or newer")]
    if engine is None:
        said = f"Compose {compose} is here, Docker's daemon does not answer: only a server needs it"
        return [skipped("docker", said)]
    return [ok("docker", f"Docker {engine}, Compose {compose}")]


def version(text: str) -> tuple[int, ...]:
    """The first two numbers of v2.29.1 or 1.29.2."""
    return tuple(int(part) for part in text.lstrip("v").split(".")[:2] if part.isdigit())


def _said(*command: str) -> str | None:
    """A program's first line; None when it is not there, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(done.stdout.split()), None)


def addresses(environment: Environment) -> Iterator[Finding]:
    """Whether each webhook's address takes a connection; nothing is sent."""
    try:
        named = endpoints.from_settings(environment.settings)
    except ConfigurationError:  # the check of the settings says so
        return
    for endpoint in named:
        if (problem := unreachable(endpoint)) is None:
            yield ok("webhooks", f"{endpoint.name} takes connections: `ratchet webhook test` sends an event")
        else:
            cure = "is the address right, and may this machine reach it?"
            yield warning("webhooks", f"{endpoint.name} cannot be reached: {problem}", cure)


def unreachable(endpoint: Endpoint) -> str | None:
    """Why no connection, with TLS for https, comes about; None when one does."""
    try:
        with socket.create_connection((endpoint.host, endpoint.port), CONNECT_SECONDS) as plain:
            if endpoint.scheme == "https":
                with ssl.create_default_context().wrap_socket(plain, server_hostname=endpoint.host):
                    pass
    except OSError as exc:
        return exc.strerror or str(exc)
    return None
