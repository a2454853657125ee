"""A database of the first version, with code and a round in it, brought to the schema of today."""

from contextlib import closing
from unittest import mock

from services.core import db, sql
from services.core.target import Target

FIRST = """
INSERT INTO sources (name) VALUES ('old');
INSERT INTO contents (sha256, cluster_id, language, text, bytes, lines, score, score_reasons, scorer_version)
SELECT sha256(n::text::bytea), n, 'python', repeat('x', 700), 700, 20, 80, '{}', 1
FROM generate_series(1, 50) n;
INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id)
SELECT 1, format('a/%s-é.py', id), 700, 1, id FROM contents;
INSERT INTO files (source_id, path, size_bytes, mtime_ns, reason)
VALUES (1, 'node_modules', 0, 0, 'vendored');
UPDATE files SET retired_at = now() WHERE content_id > 45;
INSERT INTO tracks (name, recipe) VALUES ('demo', '{"min_chars": 1, "max_chars": 5000}');
INSERT INTO rounds (track, number, state, recipe, snapshot_hash, closed_at)
VALUES ('demo', 1, 'promoted', '{}', 'x', now());
INSERT INTO round_contents SELECT 1, id, 'train', id FROM contents WHERE id <= 10;
INSERT INTO trained SELECT 'demo', id, 1 FROM contents WHERE id <= 10;
"""


def test_a_database_of_the_first_version_keeps_what_it_holds(empty_target: Target) -> None:
    """What is live, what was trained on and what is still to be trained on are known afterwards."""
    everything = sql.migrations()
    with mock.patch.object(sql, "migrations", return_value=everything[:2]):
        db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(FIRST)
    db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection.cursor() as cursor:

        def value(query: str) -> object:
            cursor.execute(query)
            return cursor.fetchone()[0]

        assert value("SELECT count(*) FROM contents WHERE live AND characters = 700") == 45
        assert value("SELECT count(*) FROM backlog WHERE is_new") == 35
        assert value("SELECT count(*) FROM trained_clusters") == 10
        assert value("SELECT contents FROM score_histogram WHERE language = 'python'") == 45
        assert value("SELECT nextval('cluster_ids')") == 51
        # What was learned before there was replay can be replayed.
        cursor.execute(
            "INSERT INTO rounds (track, number, recipe, snapshot_hash) VALUES ('demo', 2, '{}', 'y')"
        )
        cursor.execute("INSERT INTO round_contents VALUES (2, 1, 'replay', 0, 'old', 'a/1-é.py')")
        assert value("SELECT count(*) FROM backlog WHERE is_new") == 35
