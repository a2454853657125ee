"""Server-sent events on the wire: https://html.spec.whatwg.org/multipage/server-sent-events.html"""

from typing import Any

from services.core.models import Json
from services.metrics.document import strict_json

HEARTBEAT = b": still here\n\n"
OPENING = b"retry: 3000\n\n"  # milliseconds after which a browser that lost the stream asks again


def of_event(row: Any) -> bytes:
    """A row of `events`, with its id: a client that lost the stream names the last one it has seen."""
    told = {"id": row.id, "track": row.track, "round": row.round_number, "adapter": row.adapter, "at": row.at}
    return b"id: %d\n%s" % (row.id, of_topic(row.kind, {**told, **row.payload}))


def of_topic(name: str, data: Json) -> bytes:
    """One line of data: JSON holds no line break."""
    return f"event: {name}\ndata: {strict_json(data, indent=None)}\n\n".encode()
