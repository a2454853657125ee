"""A database with rounds of an earlier version knows where their contents lay, as far as it did before."""

from contextlib import closing
from unittest import mock

from services.core import db, sql
from services.core.target import Target

RECEIPTS = 10  # the migration that brings them
PAST = """
INSERT INTO sources (name, kind, commit_id, licence) VALUES
    ('a', 'git', 'aaaa', 'MIT'), ('b', 'directory', NULL, NULL);
INSERT INTO contents (sha256, cluster_id, language, text, bytes, characters, lines, score, score_reasons,
                      scorer_version)
SELECT sha256(n::text::bytea), n, 'python', repeat('x', 700), 700, 700, 20, 80, '{}', 1
FROM generate_series(1, 4) n;
INSERT INTO tracks (name, recipe) VALUES ('demo', '{"min_chars": 1, "max_chars": 5000}');
INSERT INTO rounds (track, number, state, recipe, snapshot_hash, closed_at)
VALUES ('demo', 1, 'promoted', '{}', 'x', now()), ('demo', 2, 'promoted', '{}', 'y', now());
INSERT INTO round_contents (round_id, content_id, role, position, source, path) VALUES
    (1, 1, 'train', 0, NULL, NULL), (2, 2, 'train', 0, 'a', 'x.py'), (2, 3, 'train', 1, 'b', 'y.py'),
    (2, 4, 'train', 2, 'gone', 'z.py');
INSERT INTO adapters (track, round_id, directory, manifest) VALUES ('demo', 1, 'round-0001', '{"files": {}}');
"""


def test_what_was_known_of_places_is_kept(empty_target: Target) -> None:
    """No commit, since the source may have been read again; nothing of a round that wrote no place down."""
    everything = sql.migrations()
    with mock.patch.object(sql, "migrations", return_value=everything[: RECEIPTS - 1]):
        db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(PAST)
    db.migrate(empty_target)
    with closing(db.connect(empty_target)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT f.round_id, f.content_id, s.name, f.path, s.commit_id, s.licence"
            " FROM round_files f JOIN round_sources s USING (round_id, source_id) ORDER BY f.content_id"
        )
        assert [tuple(row) for row in cursor.fetchall()] == [
            (2, 2, "a", "x.py", None, "MIT"), (2, 3, "b", "y.py", None, None)
        ]  # fmt: skip
        cursor.execute("SELECT receipt FROM adapters")
        assert [tuple(row) for row in cursor.fetchall()] == [(None,)]
        cursor.execute(
            """UPDATE adapters SET manifest = '{"files": {"receipt.jsonl": "ab"}}' RETURNING receipt"""
        )
        assert cursor.fetchone() == ("ab",)
