"""A database with files of an earlier version has them counted."""

from contextlib import closing
from unittest import mock

from services.core import db, sql
from services.core.target import Target

COUNTS = 18  # the migration that brings them
PAST = """
INSERT INTO sources (name) VALUES ('a'), ('b');
INSERT INTO contents (sha256, cluster_id, language, text, bytes, characters, lines, score, score_reasons,
                      scorer_version)
VALUES (sha256('x'), 1, 'python', 'x', 1, 1, 1, 80, '{}', 1);
INSERT INTO files (source_id, path, size_bytes, mtime_ns, language, content_id, reason, seen_at, retired_at)
VALUES
    (1, 'a.py', 1, 1, 'python', 1, NULL, '2020-01-01', NULL),
    (1, 'b.py', 1, 1, 'python', 1, NULL, now(), NULL),
    (1, 'gone.py', 1, 1, 'python', 1, NULL, '2020-01-01', now()),
    (2, 'c.bin', 1, 1, NULL, NULL, 'binary', now(), NULL);
"""


def test_what_is_there_is_counted_and_what_was_read_lately(empty_target: Target) -> None:
    """By source, reason and language, without what is gone; of the past, the last two days."""
    everything = sql.migrations()
    with mock.patch.object(sql, "migrations", return_value=everything[: COUNTS - 1]):
        db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(PAST)
    db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM file_counts ORDER BY source_id")
        assert [tuple(row) for row in cursor.fetchall()] == [(1, "", "python", 2), (2, "binary", "", 1)]
        cursor.execute("SELECT sum(kept)::int AS kept, sum(refused)::int AS refused FROM files_read")
        assert tuple(cursor.fetchone()) == (1, 1)
