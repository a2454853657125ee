"""A database with rounds and moves of an earlier version has their events afterwards."""

from contextlib import closing
from unittest import mock

from services.core import db, sql
from services.core.target import Target

EVENTS = 12  # the migration that brings them
PAST = """
INSERT INTO tracks (name, recipe) VALUES ('demo', '{"min_chars": 1, "max_chars": 5000}');
INSERT INTO contents (sha256, cluster_id, language, text, bytes, characters, lines, score, score_reasons,
                      scorer_version)
SELECT sha256(n::text::bytea), n, 'python', repeat('x', 700), 700, 700, 20, 80, '{}', 1
FROM generate_series(1, 9) n;
INSERT INTO rounds (track, number, state, recipe, snapshot_hash, opened_at, closed_at, verdict) VALUES
    ('demo', 1, 'promoted', '{}', 'a', '2026-01-01 10:00Z', '2026-01-01 11:00Z',
     '{"reason": "better", "improvement": 0.0312}'),
    ('demo', 2, 'refused', '{}', 'b', '2026-01-02 10:00Z', '2026-01-02 11:00Z', '{"reason": "no better"}'),
    ('demo', 3, 'failed', '{}', 'c', '2026-01-03 10:00Z', '2026-01-03 11:00Z',
     '{"reason": "crashed at https://u:s3cr3t@h/?token=abc"}'),
    ('demo', 4, 'open', '{}', 'd', '2026-01-05 10:00Z', NULL, NULL);
INSERT INTO round_contents (round_id, content_id, role, position) SELECT 1, id, 'train', id FROM contents;
INSERT INTO adapters (track, round_id, directory, manifest) VALUES ('demo', 1, 'round-0001', '{}');
UPDATE rounds SET parent_adapter_id = 1 WHERE number > 1;
INSERT INTO promotions (track, kind, adapter_id, token, actor, reason, promoted_at) VALUES
    ('demo', 'promoted', 1, 1, 'gate', 'better', '2026-01-01 11:00Z'),
    ('demo', 'rolled_back', NULL, NULL, 'sam', 'slower', '2026-01-04 12:00Z');
"""


def test_an_upgraded_database_has_its_history(empty_target: Target) -> None:
    """In order of time, with what each round and move said; and it goes on from there."""
    everything = sql.migrations()
    with mock.patch.object(sql, "migrations", return_value=everything[: EVENTS - 1]):
        db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(PAST)
    db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_char(at, 'DD HH24'), kind, adapter, payload FROM events ORDER BY id")
        told = [tuple(row) for row in cursor.fetchall()]
        unmeasured = {"gain_percent": None, "against": None, "attempts": 0}
        assert told == [
            ("01 10", "round.started", None, {"contents": 9, "continues_from": None}),
            ("01 11", "round.promoted", "round-0001",
             {"actor": "gate", "reason": "better", "before": None, "gain_percent": 3.12}),
            ("02 10", "round.started", None, {"contents": 0, "continues_from": "round-0001"}),
            ("02 11", "round.refused", None,
             {"reason": "no better", **unmeasured}),
            ("03 10", "round.started", None, {"contents": 0, "continues_from": "round-0001"}),
            ("03 11", "round.failed", None,
             {"reason": "crashed at https://u:***@h/?***", **unmeasured}),
            ("04 12", "adapter.rolled_back", None,
             {"actor": "sam", "reason": "slower", "before": "round-0001"}),
            ("05 10", "round.started", None, {"contents": 0, "continues_from": "round-0001"}),
        ]  # fmt: skip
        cursor.execute("UPDATE rounds SET state = 'failed', closed_at = now() WHERE number = 4")
        connection.commit()
        cursor.execute("SELECT id, kind FROM events ORDER BY id DESC LIMIT 1")
        assert tuple(cursor.fetchone()) == (len(told) + 1, "round.failed")
