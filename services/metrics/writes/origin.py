"""Whether a request that changes something comes from this site's own pages. Pure."""

from typing import Protocol
from urllib.parse import urlsplit

SAME_SITE_ONLY = "same-origin"


class Headers(Protocol):
    def get(self, key: str, /) -> str | None: ...


def foreign(headers: Headers, host: str) -> str | None:
    """Why the request is another site's; None when nothing says so.

    Browsers say Sec-Fetch-Site (https://www.w3.org/TR/fetch-metadata/), older ones Origin alone; other
    programs neither. `host` is the address asked for, with its port.
    """
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    if site is not None and site != SAME_SITE_ONLY:
        return f"Sec-Fetch-Site: {site}"
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return f"Origin: {origin}"
    return None


def is_browsers(headers: Headers) -> bool:
    """Whether one of the two is there: a form is sent by a browser, and every browser says one."""
    return headers.get("Sec-Fetch-Site") is not None or headers.get("Origin") is not None


def place(path: str | None) -> str:
    """A path on this site to go back to; the front page for what leads elsewhere."""
    if path is None or not path.startswith("/") or path.startswith("//"):
        return "/"
    return path if path.isprintable() and "\\" not in path else "/"
