"""Every family of metrics there is, in the order in which /metrics tells them."""

from services.metrics.families import health, ingest, operations, rounds, service, tracks
from services.metrics.families.family import Section

SECTIONS: tuple[Section, ...] = (
    health.SECTION,
    service.SECTION,
    ingest.SECTION,
    tracks.SECTION,
    rounds.SECTION,
    operations.SECTION,
)
