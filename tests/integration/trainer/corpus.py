"""What the processor does to contents, as plain SQL, and what the trainer must then find."""

import itertools
from typing import Any

from services.core.db import Database
from services.trainer.recipes.recipe import Recipe

numbers = itertools.count()

# The definition in its slowest and plainest form, over files and texts themselves.
ELIGIBLE = """
    c.score >= %(threshold)s AND length(c.text) BETWEEN %(min_chars)s AND %(max_chars)s
    AND (%(languages)s::text[] IS NULL OR c.language = ANY (%(languages)s::text[]))
    AND EXISTS (SELECT 1 FROM files f WHERE f.content_id = c.id AND f.retired_at IS NULL)
"""
NEW = f"""
    SELECT count(*) FROM contents c WHERE {ELIGIBLE}
      AND NOT EXISTS (
          SELECT 1 FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
          WHERE rc.content_id = c.id AND r.track = %(track)s)
"""
CANDIDATES = f"""
    SELECT c.id, c.sha256, c.cluster_id, c.score FROM contents c WHERE {ELIGIBLE}
      AND NOT EXISTS (SELECT 1 FROM trained t WHERE t.track = %(track)s AND t.content_id = c.id)
      AND NOT EXISTS (
          SELECT 1 FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
          WHERE rc.content_id = c.id AND rc.role = 'train' AND r.track = %(track)s AND r.state = 'failed')
    ORDER BY c.score DESC, c.id
"""
ADD = """
    WITH source AS (
        INSERT INTO sources (name) VALUES ('repo') ON CONFLICT (name) DO UPDATE SET name = excluded.name
        RETURNING id
    ), new AS (
        INSERT INTO contents (sha256, cluster_id, language, text, bytes, characters, lines, score,
                              score_reasons, scorer_version, live)
        SELECT sha256(text::bytea), nextval('cluster_ids'), %(language)s, text, length(text), length(text), 1,
               %(score)s, '{}', 1, %(live)s
        FROM (SELECT rpad(number::text || ' ', %(characters)s, 'x') AS text
              FROM generate_series(%(first)s, %(last)s) AS number) texts
        RETURNING id
    )
    INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id, retired_at)
    SELECT source.id, 'file-' || new.id, 1, 0, new.id, CASE WHEN NOT %(live)s THEN now() END
    FROM source, new
"""


def run(tx: Any, statement: str, **parameters: Any) -> Any:
    """The statement's rows, none if it returns none."""
    tx._cursor.execute(statement, parameters or None)
    return tx._cursor.fetchall() if tx._cursor.description else []


def add(
    tx: Any, count: int, language: str = "python", score: int = 90, characters: int = 100, live: bool = True
) -> None:
    first = next(numbers) * 1_000_000
    run(tx, ADD, first=first, last=first + count - 1, language=language, score=score,
        characters=characters, live=live)  # fmt: skip


def set_live(tx: Any, content_ids: list[int], live: bool) -> None:
    """Retire the files that hold these contents, or find them again."""
    run(
        tx, "UPDATE files SET retired_at = CASE WHEN NOT %(live)s THEN now() END"
        " WHERE content_id = ANY (%(ids)s)", ids=content_ids, live=live,
    )  # fmt: skip
    run(tx, "UPDATE contents SET live = %(live)s WHERE id = ANY (%(ids)s)", ids=content_ids, live=live)


def merge_clusters(tx: Any, one: int, other: int) -> None:
    """Two clusters turned out to be one; every name that either had leads to the lower one at once."""
    survivor, gone = sorted((one, other))
    run(
        tx, "UPDATE cluster_merges SET merged_into = %(survivor)s WHERE merged_into = %(gone)s",
        survivor=survivor, gone=gone,
    )  # fmt: skip
    run(tx, "INSERT INTO cluster_merges VALUES (%(gone)s, %(survivor)s)", survivor=survivor, gone=gone)
    run(
        tx, "UPDATE contents SET cluster_id = %(survivor)s WHERE cluster_id = %(gone)s",
        survivor=survivor, gone=gone,
    )  # fmt: skip


def expected(tx: Any, recipe: Recipe, threshold: int) -> tuple[int, list[tuple[Any, ...]]]:
    """How many new contents and which candidates a track has, by definition."""
    asked = {
        "track": recipe.name,
        "threshold": threshold,
        "languages": None if recipe.languages is None else list(recipe.languages),
        "min_chars": recipe.min_chars,
        "max_chars": recipe.max_chars,
    }
    return run(tx, NEW, **asked)[0][0], [tuple(row) for row in run(tx, CANDIDATES, **asked)]


def found(
    tx: Any, recipe: Recipe, threshold: int, most: int = 1_000_000
) -> tuple[int, list[tuple[Any, ...]]]:
    """The same, by the trainer's queries."""
    asked = {"track": recipe.name, "threshold": threshold, "most": most}
    return tx.value("count_new_contents", **asked), [tuple(row) for row in tx.all("candidates", **asked)]


def differences(database: Database) -> list[Any]:
    """Rows that the backlog has and its definition has not, or the reverse; of every track."""
    with database.transaction() as tx:
        return list(
            run(
                tx,
                "(TABLE backlog EXCEPT TABLE backlog_definition)"
                " UNION ALL (TABLE backlog_definition EXCEPT TABLE backlog)",
            )
        )
