"""A trainer that is gone cannot say so: the processor that lives does."""

from contextlib import closing

from services.core import db
from services.core.target import Target
from tests.integration.processor.conftest import until

DEAD = """
INSERT INTO heartbeats (service, instance, state, detail, beat_at)
VALUES ('trainer', 'gpu-1:7', 'training', '{"track": "demo", "message": "step 84"}', now() - interval '50 s')
"""
SUSPECTED = """
INSERT INTO stalls (service, track, suspected_at) VALUES ('trainer', 'demo', now() - interval '21 s')
"""


def test_a_running_processor_tells_that_the_trainer_has_fallen_silent(
    target: Target, ingest, processor, rows
) -> None:
    """The event waits for whoever sends it, as `ratchet webhook run` does."""
    with closing(db.connect(target)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(DEAD + ";" + SUSPECTED)
    process = processor()
    told = (
        "SELECT track, payload ->> 'service', payload ->> 'message' FROM events"
        " WHERE kind = 'service.stalled'"
    )
    until(lambda: rows(told) == [("demo", "trainer", "step 84")])
    process.terminate()
    assert process.wait(60) == 0
