"""One text for all who scrape at the same moment."""

from unittest.mock import patch

import pytest

from services.metrics import exposition
from services.metrics.cached import Reading
from services.metrics.exposition import Exposition
from services.metrics.health import Health, VitalSigns, judge
from services.metrics.requests_served import RequestsServed

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
STALE: Reading[dict[str, object]] = Reading(None, None, "away")


@pytest.fixture
def health() -> Health:
    return judge(VitalSigns(migrated=False), error="away", uptime_seconds=1)


def test_a_format_is_encoded_once_and_given_to_all(health: Health) -> None:
    """Each apart; again when it is no longer fresh, and when what it was read from has become stale."""
    served = Exposition(RequestsServed())
    with patch.object(exposition, "expose", wraps=exposition.expose) as encoded:
        texts = {served(STALE, health, accept) for accept in 3 * [OPENMETRICS, None]}
        assert (len(texts), encoded.call_count) == (2, 2)
        with patch.object(exposition, "FRESH", 0.0):
            served(STALE, health, None)
        assert encoded.call_count == 3


def test_a_new_snapshot_is_encoded_before_anybody_asks(health: Health) -> None:
    requests = RequestsServed()
    served = Exposition(requests)
    served(STALE, health, None)
    requests.note("page", 200, 0.001)
    assert b'handler="page"' not in served(STALE, health, None)[0]
    served.anew(STALE, health, None)
    assert b'handler="page"' in served(STALE, health, None)[0]


def test_a_version_that_is_none_is_answered_with_the_usual_text(health: Health) -> None:
    _, content_type = exposition.expose(STALE, health, "application/openmetrics-text;version=x")
    assert content_type.startswith("text/plain")
