"""The addresses in WEBHOOK_URLS. Whatever may be a password in one shows in no name, log or error."""

import base64
import hashlib
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from services.core.errors import ConfigurationError
from services.core.setting_values import split_list
from services.core.settings import Settings


@dataclass(frozen=True)
class Endpoint:
    """One address; they come from the operator's settings alone, so private ones are as good as any."""

    name: str  # as hooks.example.com#1f3a90cc
    scheme: str  # http or https
    host: str
    port: int
    target: str = field(repr=False)  # path and query
    authorization: str | None = field(default=None, repr=False)  # of a URL with user and password

    @classmethod
    def of(cls, url: str) -> "Endpoint":
        """The name stays when a password or a query is changed: what waits for it still goes there."""
        parts = urlsplit(url)
        host, path = str(parts.hostname), parts.path or "/"
        port = parts.port or (443 if parts.scheme == "https" else 80)
        digest = hashlib.sha256(f"{parts.scheme}://{host}:{port}{path}".encode()).hexdigest()
        authorization = None
        if parts.username:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(login.encode()).decode()
        return cls(
            name=f"{host}#{digest[:8]}",
            scheme=parts.scheme,
            host=host,
            port=port,
            target=f"{path}?{parts.query}" if parts.query else path,
            authorization=authorization,
        )


def from_settings(settings: Settings) -> tuple[Endpoint, ...]:
    """Those that the settings name.

    Raises ConfigurationError when one is named twice, or messages could not be signed.
    """
    if settings.webhook_urls is None:
        return ()
    endpoints = tuple(map(Endpoint.of, split_list(settings.webhook_urls.get_secret_value())))
    names = [endpoint.name for endpoint in endpoints]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigurationError(
            f"WEBHOOK_URLS names {', '.join(sorted(twice))} more than once: two addresses must differ in"
            " host, port or path"
        )
    if endpoints and settings.webhook_format == "standard" and settings.webhook_secret is None:
        raise ConfigurationError(
            "WEBHOOK_URLS is set and WEBHOOK_SECRET is not: messages are signed, so that a receiver can tell"
            ' them from forged ones (echo "whsec_$(head -c 32 /dev/urandom | base64)" makes a secret)'
        )
    return endpoints
