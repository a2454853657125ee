-- find_source --
-- What is known of a source
SELECT id, kind, commit_id, licence, stamp, history_id, lines_id, problem FROM sources WHERE name = %(name)s;

-- add_source --
-- Enter a source that was never seen before; its id
INSERT INTO sources (name, kind) VALUES (%(name)s, %(kind)s)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind
RETURNING id;

-- describe_source --
-- What the source is at the beginning of a scan
UPDATE sources SET kind = %(kind)s, licence = %(licence)s, problem = %(problem)s
WHERE id = %(source_id)s
  AND (kind, licence, problem) IS DISTINCT FROM (%(kind)s, %(licence)s, %(problem)s);

-- live_sources --
-- Names of the sources that have files which are not retired
SELECT s.name
FROM sources s
WHERE EXISTS (SELECT FROM files f WHERE f.source_id = s.id AND f.retired_at IS NULL)
ORDER BY s.name;

-- known_files --
-- What is known of a source's paths, in their order, a page at a time
SELECT id, path, size_bytes, mtime_ns, reason, retired_at IS NOT NULL AS retired, rules
FROM files
WHERE source_id = %(source_id)s AND path > %(after)s
ORDER BY path
LIMIT %(most)s;

-- put_claim --
-- Leave a chunk of files to whoever takes it first
INSERT INTO claims (source_id, entries, files) VALUES (%(source_id)s, %(entries)s, %(files)s);

-- take_claim --
-- The oldest chunk that nobody works on, or this one, locked
SELECT c.id, c.source_id, c.entries, s.name AS source, s.licence
FROM claims c JOIN sources s ON s.id = c.source_id
WHERE %(id)s::bigint IS NULL OR c.id = %(id)s
ORDER BY c.id
LIMIT 1
FOR UPDATE OF c SKIP LOCKED;

-- finish_claim --
-- A chunk is done
DELETE FROM claims WHERE id = %(id)s;

-- claims_left --
-- How many chunks of a source are not done
SELECT count(*) FROM claims WHERE source_id = %(source_id)s;

-- withdraw_claims --
-- Take back the chunks of an earlier walk that nobody works on
DELETE FROM claims
WHERE id IN (SELECT id FROM claims WHERE source_id = %(source_id)s FOR UPDATE SKIP LOCKED);

-- lock_store --
-- One processor at a time decides what is kept, until its transaction ends
SELECT pg_advisory_xact_lock(hashtextextended('ratchet store', 0));

-- held_before --
-- What these paths of a source held, and the clusters they descend from
SELECT f.path, f.content_id, coalesce(m.merged_into, f.cluster_id) AS cluster_id
FROM files f
LEFT JOIN cluster_merges m ON m.cluster_id = f.cluster_id
WHERE f.source_id = %(source_id)s AND f.path = ANY(%(paths)s);

-- stored_contents --
-- Which of these texts are stored
SELECT id, sha256, cluster_id, scorer_version, units_version, text = '' AS blank
FROM contents WHERE sha256 = ANY(%(addresses)s);

-- groups_of_keys --
-- The groups of near duplicates that have these band keys
SELECT b.key, g.root FROM bands b JOIN groups g ON g.id = b.group_id WHERE b.key = ANY(%(keys)s::bigint[]);

-- kept_of_groups --
-- The kept member of each group
SELECT g.id AS group_id, c.id AS content_id, c.sha256, c.score, c.live, c.cluster_id
FROM groups g JOIN contents c ON c.id = g.content_id
WHERE g.id = ANY(%(groups)s::bigint[]);

-- new_content_ids --
-- So many ids for texts to be stored
SELECT nextval(pg_get_serial_sequence('contents', 'id')) FROM generate_series(1, %(count)s);

-- new_group_ids --
-- So many ids for groups
SELECT nextval('group_ids') FROM generate_series(1, %(count)s);

-- new_cluster_ids --
-- So many ids for clusters
SELECT nextval('cluster_ids') FROM generate_series(1, %(count)s);

-- rescore --
-- A stored text under a newer scorer
UPDATE contents SET score = %(score)s, score_reasons = %(reasons)s, scorer_version = %(version)s
WHERE id = %(id)s AND scorer_version < %(version)s;

-- merge_groups --
-- A group was found to be part of another: it, and those it took in before, belong there
UPDATE groups SET root = %(into)s WHERE root = %(absorbed)s;

-- set_kept --
-- Another member of the group is the kept one
UPDATE groups SET content_id = %(content_id)s WHERE id = %(group_id)s;

-- merge_clusters --
-- Two clusters belong together: one takes in the other's texts
UPDATE contents SET cluster_id = %(into)s WHERE cluster_id = %(absorbed)s;

-- redirect_merges --
-- What the absorbed cluster took in before belongs to the one that takes it in
UPDATE cluster_merges SET merged_into = %(into)s WHERE merged_into = %(absorbed)s;

-- record_merge --
-- Remember where a cluster went
INSERT INTO cluster_merges (cluster_id, merged_into) VALUES (%(absorbed)s, %(into)s)
ON CONFLICT (cluster_id) DO UPDATE SET merged_into = excluded.merged_into;

-- revive_contents --
-- Texts that a file holds again
UPDATE contents SET live = true WHERE id = ANY(%(ids)s::bigint[]) AND NOT live;

-- demote_content --
-- A better text that is nearly the same is kept in this one's stead
UPDATE contents SET live = false WHERE id = %(content_id)s;

-- refuse_demoted --
-- The files that held it are near duplicates of the better one
UPDATE files
SET content_id = NULL, reason = 'near_duplicate', detail = %(detail)s, duplicate_of = %(better)s
WHERE content_id = %(content_id)s AND retired_at IS NULL;

-- redirect_duplicates --
-- What was a near duplicate of it is one of the better text
UPDATE files SET duplicate_of = %(better)s WHERE duplicate_of = %(content_id)s;

-- create_incoming_files --
-- The chunk's paths, per connection and emptied at commit
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_files (
    path text, size_bytes bigint, mtime_ns bigint, language text, content_id bigint, cluster_id bigint,
    reason text, detail text, duplicate_of bigint
) ON COMMIT DELETE ROWS;

-- upsert_files --
-- Record what became of the chunk's paths; what is recorded already is left alone
INSERT INTO files AS was (source_id, path, size_bytes, mtime_ns, language, content_id, cluster_id, reason, detail,
                          duplicate_of, rules)
SELECT %(source_id)s, path, size_bytes, mtime_ns, language, content_id, cluster_id, reason, detail,
       duplicate_of, %(rules)s
FROM incoming_files
ON CONFLICT (source_id, path) DO UPDATE
SET size_bytes = excluded.size_bytes, mtime_ns = excluded.mtime_ns, language = excluded.language,
    content_id = excluded.content_id, cluster_id = coalesce(excluded.cluster_id, was.cluster_id),
    reason = excluded.reason, detail = excluded.detail, duplicate_of = excluded.duplicate_of,
    rules = excluded.rules, seen_at = now(), retired_at = NULL,
    first_seen_at = CASE WHEN was.retired_at IS NULL THEN was.first_seen_at ELSE now() END
WHERE (was.size_bytes, was.mtime_ns, was.language, was.content_id, was.reason, was.detail, was.duplicate_of,
       was.rules, was.retired_at)
      IS DISTINCT FROM
      (excluded.size_bytes, excluded.mtime_ns, excluded.language, excluded.content_id, excluded.reason,
       excluded.detail, excluded.duplicate_of, excluded.rules, NULL::timestamptz);

-- release_contents --
-- Of these texts, those that no file holds any more
UPDATE contents c SET live = false
WHERE c.id = ANY(%(ids)s::bigint[]) AND c.live
  AND NOT EXISTS (SELECT FROM files f WHERE f.content_id = c.id AND f.retired_at IS NULL)
RETURNING c.id;

-- judge_duplicates_again --
-- The kept text is gone: its near duplicates are to be read again, one of them will take its place
WITH again AS (
    UPDATE files SET rules = 0 WHERE duplicate_of = ANY(%(ids)s::bigint[]) AND retired_at IS NULL
    RETURNING source_id
)
UPDATE sources SET stamp = NULL WHERE id IN (SELECT source_id FROM again);

-- retire_files --
-- Paths that are no longer in the ingest volume; the texts they held
UPDATE files SET retired_at = now() WHERE id = ANY(%(ids)s) AND retired_at IS NULL RETURNING content_id;

-- retire_source --
-- Every path of a source that is no longer in the ingest volume; the texts they held
UPDATE files SET retired_at = now() WHERE source_id = %(source_id)s AND retired_at IS NULL RETURNING content_id;

-- forget_stamp --
-- A source that is gone is read from its beginning when it comes back
UPDATE sources SET stamp = NULL WHERE id = %(source_id)s;

-- follow_renames --
-- A path that came in this scan with the text of one that went in it: the same file under a new name
UPDATE files new
SET renamed_from = old.path, first_seen_at = old.first_seen_at, cluster_id = coalesce(new.cluster_id, old.cluster_id),
    line_times = old.line_times, lines_of = old.lines_of, lines_at = old.lines_at
FROM (
    SELECT DISTINCT ON (content_id) path, content_id, first_seen_at, cluster_id, line_times, lines_of, lines_at
    FROM files
    WHERE source_id = %(source_id)s AND id = ANY(%(retired)s) AND content_id IS NOT NULL
    ORDER BY content_id, path
) old
WHERE new.source_id = %(source_id)s AND new.content_id = old.content_id AND new.retired_at IS NULL
  AND new.first_seen_at >= %(since)s;

-- create_incoming_changes --
-- Times of change out of a repository's history
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_changes (path text, commit_id text, changed_at bigint)
ON COMMIT DELETE ROWS;

-- create_incoming_fingerprints --
-- Fingerprints of units that are stored
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_fingerprints (
    content_id bigint, start_byte integer, end_byte integer, fingerprint bigint
) ON COMMIT DELETE ROWS;

-- record_fingerprints --
-- Give stored units their fingerprints
UPDATE units u
SET fingerprint = i.fingerprint
FROM incoming_fingerprints i
WHERE u.content_id = i.content_id AND u.start_byte = i.start_byte AND u.end_byte = i.end_byte
  AND u.fingerprint IS DISTINCT FROM i.fingerprint;

-- record_units_version --
-- How the units of these contents are fingerprinted
UPDATE contents SET units_version = %(version)s WHERE id = ANY(%(ids)s::bigint[]);

-- record_changes --
-- When, and by which commit, each path was last changed
UPDATE files f
SET commit_id = i.commit_id, changed_at = to_timestamp(i.changed_at)
FROM incoming_changes i
WHERE f.source_id = %(source_id)s AND f.path = i.path AND f.commit_id IS DISTINCT FROM i.commit_id;

-- record_history --
-- The history was read up to this commit
UPDATE sources SET history_id = %(commit)s WHERE id = %(source_id)s;

-- untold_files --
-- Files of a source of which it is not known when the lines of what they hold were written
SELECT f.id, f.path, f.content_id, c.sha256, c.bytes, f.lines_of, f.line_times
FROM files f JOIN contents c ON c.id = f.content_id
WHERE f.source_id = %(source_id)s AND f.retired_at IS NULL
  AND (f.lines_of, f.lines_at) IS DISTINCT FROM (f.content_id, f.commit_id)
ORDER BY f.path
LIMIT %(most)s;

-- texts_of --
-- Texts, and what was taken out of them
SELECT id, text, redactions FROM contents WHERE id = ANY(%(ids)s::bigint[]);

-- create_incoming_lines --
-- Times of lines out of a repository's history
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_lines (file_id bigint, content_id bigint, line_times jsonb)
ON COMMIT DELETE ROWS;

-- record_lines --
-- When the lines of each text were written, where the file still holds it
UPDATE files f
SET line_times = i.line_times, lines_of = i.content_id, lines_at = f.commit_id
FROM incoming_lines i
WHERE f.id = i.file_id AND f.content_id = i.content_id;

-- record_lines_read --
-- The times of lines were read up to this commit, and not beyond what was reached
UPDATE sources
SET lines_id = %(commit)s, lines_since = greatest(lines_since, to_timestamp(%(reached)s::bigint))
WHERE id = %(source_id)s;

-- finish_scan --
-- A source was walked to its end
UPDATE sources SET last_scanned_at = now(), commit_id = %(commit)s, stamp = %(stamp)s WHERE id = %(source_id)s;

-- database_now --
-- The database's clock
SELECT clock_timestamp();

-- Forgetting: what must not come in again

-- tombstones --
-- What of a source was taken back: its paths, with a slash at the end for a folder, empty for all of it
SELECT path, id FROM forgettings WHERE source = %(source)s AND remembered_at IS NULL ORDER BY id;

-- forgotten_addresses --
-- Which of these texts were taken back
SELECT c.sha256, max(f.id) AS forgetting_id
FROM contents c
JOIN forgotten_contents fc ON fc.content_id = c.id AND fc.barred
JOIN forgettings f ON f.id = fc.forgetting_id AND f.remembered_at IS NULL
WHERE c.sha256 = ANY(%(addresses)s)
GROUP BY c.sha256;

-- restore_text --
-- A text that was forgotten and may be stored again; its units come with it
UPDATE contents SET text = %(text)s WHERE id = %(id)s AND text = '';

-- record_look --
-- What a look at a source found, for people
INSERT INTO looks (source_id, seconds, commit_id, kept, refused, unchanged, retired, renamed)
VALUES (%(source_id)s, %(seconds)s, %(commit)s, %(kept)s, %(refused)s, %(unchanged)s, %(retired)s, %(renamed)s);

-- drop_old_looks --
-- Only the newest looks at a source are kept
DELETE FROM looks
WHERE id IN (SELECT id FROM looks WHERE source_id = %(source_id)s ORDER BY id DESC OFFSET %(keep)s);
