"""What a setting can be beside a number, a word or a path: lists, addresses, tokens."""

import base64
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from services.core.models import EVENT_GROUPS

SHORTEST_TOKEN = 24  # characters, of the dashboard
SHORTEST_SECRET = 8  # characters; a log without every `api` or `hook` in it would be hard to read


def split_list(value: str) -> tuple[str, ...]:
    """A list in one setting: its items between commas."""
    return tuple(filter(None, map(str.strip, value.split(","))))


def secret_parts(urls: Iterable[str]) -> list[str]:
    """Of webhook URLs, each whole, and what may be a password in it: a chat's is in the path."""
    parts = []
    for url in urls:
        split = urlsplit(url)
        values = [value for _, value in parse_qsl(split.query)]
        secret = (split.password, unquote(split.password or ""), split.query, *values, split.path.strip("/"))
        parts += [url, *(part for part in secret if part and len(part) >= SHORTEST_SECRET)]
    return parts


def _split(value: object) -> object:
    return split_list(value) if isinstance(value, str) else value


def _event_groups(value: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in value if name not in EVENT_GROUPS]:
        raise ValueError(f"{', '.join(unknown)}: expected some of {', '.join(EVENT_GROUPS)}")
    return value


def _addresses(value: SecretStr) -> SecretStr:
    for number, url in enumerate(split_list(value.get_secret_value()), 1):
        if not _is_address(url):
            raise ValueError(f"address {number} of them is not https://HOST/PATH, nor http://HOST/PATH")
    return value


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    printable = url.isascii() and url.isprintable() and " " not in url
    return printable and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def _hard_to_guess(value: SecretStr) -> SecretStr:
    token = value.get_secret_value().strip()
    if not (len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()):
        raise ValueError(
            f"must have {SHORTEST_TOKEN} or more ASCII characters (`openssl rand -hex 24` makes one)"
        )
    return SecretStr(token)


def _signing(value: SecretStr) -> SecretStr:
    prefix, _, encoded = value.get_secret_value().strip().partition("_")
    try:
        size = len(base64.b64decode(encoded, validate=True))
    except ValueError:
        size = 0
    if prefix != "whsec" or not 24 <= size <= 64:
        raise ValueError(
            "must be whsec_ and 24 to 64 random bytes in base64"
            ' (echo "whsec_$(head -c 32 /dev/urandom | base64)" makes one)'
        )
    return value


Listed = Annotated[tuple[str, ...], BeforeValidator(_split)]  # between commas
EventGroups = Annotated[Listed, AfterValidator(_event_groups)]
Addresses = Annotated[SecretStr, AfterValidator(_addresses)]  # a path or a query may be a password
Token = Annotated[SecretStr, AfterValidator(_hard_to_guess)]  # travels in a header: no space around it counts
SigningSecret = Annotated[SecretStr, AfterValidator(_signing)]  # as Standard Webhooks has it: whsec_…
