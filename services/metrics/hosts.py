"""Which names this service answers to. Pure but for the machine's own name.

Another site's page can have its own name resolve to this address, and then read what it likes (DNS
rebinding): its requests name that site as their Host. An address in figures cannot be made to mean another,
so any may be asked for.
"""

import ipaddress
import socket
from collections.abc import Collection

from flask import Flask, Response, request

from services.metrics.document import strict_json

ALWAYS = ("localhost", "metrics")  # the second: the service's name in Compose and Kubernetes
ANY = "*"
OPEN = ("health", "metrics")  # first segments of what probes and scrapers ask, by whatever leads them here
UNKNOWN = "{!r} is no name of this service: if it should be one, add it to METRICS_TRUSTED_HOSTS"


def check_hosts(app: Flask, names: Collection[str], listens_on: str) -> None:
    """Answer 400 to requests for a page or the API by a name that is none of ours."""
    trusted = {name.lower() for name in (*ALWAYS, *names, listens_on, socket.gethostname())}

    @app.before_request
    def unknown() -> Response | None:
        if is_open(request.path) or is_trusted(request.host, trusted):
            return None
        told = {"error": "Bad Request", "message": UNKNOWN.format(request.host[:100])}  # and nothing else
        return Response(strict_json(told) + "\n", 400, content_type="application/json")


def is_trusted(host: str, names: Collection[str]) -> bool:
    """Whether a Host header has an address in figures, or one of `names`; `.example.org` is all below it."""
    before, _, port = host.rpartition(":")
    name = (before if port.isdecimal() else host).lower().rstrip(".")
    if ANY in names or name in names or name.endswith(".localhost"):
        return True
    if any(each.startswith(".") and name.endswith(each) for each in names):
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def is_open(path: str) -> bool:
    return path.split("/")[1:2] in ([first] for first in OPEN)
