"""A believable past for whatever looks at one: ten days of sources, seven rounds, their adapters and events.

`python -m tests.metrics_history` serves it. Always the same; its times are told from the moment it ends.
"""

from tests.metrics_history.filling import beat, fill
from tests.metrics_history.hostile import (
    BIDI_NAME,
    CONTROL_NAME,
    HOSTILE,
    MARKUP_NAME,
    NEWLINE_NAME,
    QUOTED_NAME,
    TEMPLATE_NAME,
)
from tests.metrics_history.ingest import SOURCES
from tests.metrics_history.practice import TEAM
from tests.metrics_history.training import RUNNING_STEP, TRACK

HOSTILE_SOURCE = SOURCES[2].name

__all__ = [
    "BIDI_NAME",
    "CONTROL_NAME",
    "HOSTILE",
    "HOSTILE_SOURCE",
    "MARKUP_NAME",
    "NEWLINE_NAME",
    "QUOTED_NAME",
    "RUNNING_STEP",
    "SOURCES",
    "TEAM",
    "TEMPLATE_NAME",
    "TRACK",
    "beat",
    "fill",
]
