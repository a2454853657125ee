-- find_source --
-- The id of a source by name
SELECT id FROM sources WHERE name = %(name)s;

-- add_source --
-- Enter a source that was never seen before; its id
INSERT INTO sources (name) VALUES (%(name)s)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING id;

-- live_sources --
-- Names of the sources that have files which are not retired
SELECT s.name
FROM sources s
WHERE EXISTS (SELECT FROM files f WHERE f.source_id = s.id AND f.retired_at IS NULL)
ORDER BY s.name;

-- known_files --
-- What is known of every path of a source, to tell what changed since
SELECT f.id, f.path, f.size_bytes, f.mtime_ns, f.reason, f.retired_at IS NOT NULL AS retired, c.scorer_version
FROM files f
LEFT JOIN contents c ON c.id = f.content_id
WHERE f.source_id = %(source_id)s;

-- create_incoming_contents --
-- The batch's new texts, per connection and emptied at commit
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_contents (
    sha256 bytea, language text, text text, bytes integer, lines integer,
    score smallint, score_reasons jsonb, scorer_version integer
) ON COMMIT DELETE ROWS;

-- create_incoming_files --
-- The batch's paths, per connection and emptied at commit
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_files (
    path text, size_bytes bigint, mtime_ns bigint, sha256 bytea, reason text, detail text
) ON COMMIT DELETE ROWS;

-- stored_contents --
-- Which of these texts are stored and scored by this scorer already
SELECT sha256
FROM contents
WHERE sha256 = ANY(%(addresses)s) AND scorer_version >= %(scorer_version)s;

-- insert_contents --
-- Store the batch's texts in the order of their addresses; one that replaces another takes over its cluster
WITH inherited AS (
    SELECT f.sha256, min(was.cluster_id) AS cluster_id
    FROM incoming_files f
    JOIN files was ON was.source_id = %(source_id)s AND was.path = f.path
    GROUP BY f.sha256
)
INSERT INTO contents (sha256, cluster_id, language, text, bytes, lines, score, score_reasons, scorer_version)
SELECT i.sha256, coalesce(inherited.cluster_id, 0), i.language, i.text, i.bytes, i.lines, i.score,
       i.score_reasons, i.scorer_version
FROM incoming_contents i
LEFT JOIN inherited USING (sha256)
ORDER BY i.sha256
ON CONFLICT (sha256) DO UPDATE
SET score = excluded.score, score_reasons = excluded.score_reasons, scorer_version = excluded.scorer_version
WHERE contents.scorer_version < excluded.scorer_version;

-- begin_clusters --
-- A text that replaces none begins a cluster of its own; 0 marks it, and no other transaction ever sees the mark
UPDATE contents SET cluster_id = id WHERE cluster_id = 0;

-- upsert_files --
-- Record what became of the batch's paths
INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id, cluster_id, reason, detail)
SELECT DISTINCT ON (f.path) %(source_id)s, f.path, f.size_bytes, f.mtime_ns, c.id, c.cluster_id, f.reason, f.detail
FROM incoming_files f
LEFT JOIN contents c ON c.sha256 = f.sha256
ORDER BY f.path
ON CONFLICT (source_id, path) DO UPDATE
SET size_bytes = excluded.size_bytes, mtime_ns = excluded.mtime_ns, content_id = excluded.content_id,
    cluster_id = coalesce(excluded.cluster_id, files.cluster_id), reason = excluded.reason, detail = excluded.detail, seen_at = now(), retired_at = NULL;

-- restore_files --
-- Paths that are back as they were
UPDATE files SET retired_at = NULL WHERE id = ANY(%(ids)s) AND retired_at IS NOT NULL;

-- retire_files --
-- Paths that are no longer in the ingest volume
UPDATE files SET retired_at = now() WHERE id = ANY(%(ids)s) AND retired_at IS NULL;

-- retire_source --
-- Every path of a source that is no longer in the ingest volume
UPDATE files SET retired_at = now() WHERE source_id = %(source_id)s AND retired_at IS NULL;

-- finish_scan --
-- A source was walked to its end
UPDATE sources SET last_scanned_at = now() WHERE id = %(source_id)s;
