"""Who reads /metrics: a Prometheus scraper, or a person with curl and a browser?"""

from enum import StrEnum
from functools import lru_cache

from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header


class Format(StrEnum):
    JSON = "json"
    PROMETHEUS = "prometheus"


SCRAPER = ("text/plain", "application/openmetrics-text", "application/vnd.google.protobuf")
READER = ("application/json", "text/html", "application/xhtml+xml")


@lru_cache(maxsize=64)
def choose(accept: str | None) -> Format:
    """The format that an Accept header asks for.

    Prometheus text only for a header that names one of its types, and neither JSON nor HTML with as
    much weight; JSON for all else: no header, a bare */*, browsers. Wildcards name nothing: werkzeug's
    best_match lets the */* of a scraper win JSON.
    """
    accepted = parse_accept_header(accept, MIMEAccept)
    scraper = _weight(accepted, SCRAPER)
    return Format.PROMETHEUS if scraper > _weight(accepted, READER) else Format.JSON


def _weight(accepted: MIMEAccept, names: tuple[str, ...]) -> float:
    """The greatest q of the types named; 0 when none is."""
    named = (float(q) for value, q in accepted if value.split(";")[0].strip().lower() in names)
    return max(named, default=0.0)
