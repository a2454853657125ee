-- without_hurry --
-- Let this transaction take its time: the backlog of a new track is a minute's work at ten million contents
SET LOCAL statement_timeout = 0;

-- ensure_track --
-- Make the track known
INSERT INTO tracks (name, recipe) VALUES (%(track)s, %(recipe)s) ON CONFLICT (name) DO NOTHING;

-- take_lease --
-- Take the track when it is free or its lease has run out, with the recipe as resolved now; a new fencing token, or no row
UPDATE tracks
SET token = token + 1, lease_holder = %(holder)s, recipe = %(recipe)s,
    lease_expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE name = %(track)s AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())
RETURNING token;

-- renew_lease --
-- Keep the track for longer; no row when another trainer has taken it meanwhile
UPDATE tracks SET lease_expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE name = %(track)s AND token = %(token)s AND lease_holder IS NOT NULL
RETURNING token;

-- release_lease --
-- Give the track back at once
UPDATE tracks SET lease_holder = NULL, lease_expires_at = NULL
WHERE name = %(track)s AND token = %(token)s;

-- hold_token --
-- The track's row, locked until the transaction ends, if this token is still the newest
SELECT token FROM tracks WHERE name = %(track)s AND token = %(token)s FOR UPDATE;

-- count_new_contents --
-- How many contents above the threshold no round of the track has had, counted up to a limit
SELECT count(*) FROM (
    SELECT FROM backlog
    WHERE track = %(track)s AND is_new AND score >= %(threshold)s
    ORDER BY score DESC  -- the index's order: without it the planner may hope for the table's first pages
    LIMIT %(most)s
) AS new_contents;

-- candidates --
-- Contents the champion has not learned from and no failed round has had, best first
SELECT content_id, sha256, cluster_id, score
FROM backlog
WHERE track = %(track)s AND score >= %(threshold)s
ORDER BY score DESC, content_id
LIMIT %(most)s;

-- candidates_in_languages --
-- The same in these languages alone, or in all but these
SELECT b.content_id, b.sha256, b.cluster_id, b.score, c.language
FROM backlog b JOIN contents c ON c.id = b.content_id
WHERE b.track = %(track)s AND b.score >= %(threshold)s
  AND (c.language = ANY (%(languages)s::text[])) = %(among)s
ORDER BY b.score DESC, b.content_id
LIMIT %(most)s;

-- replayable --
-- Live contents that fit the recipe and that the champion has learned from, drawn anew for every round
SELECT c.id AS content_id, c.sha256, c.cluster_id, c.score
FROM trained l
JOIN tracks t ON t.name = l.track
JOIN contents c ON c.id = l.content_id AND c.live AND fits_recipe(t.recipe, c.language, c.characters)
WHERE l.track = %(track)s
ORDER BY sha256(c.sha256 || convert_to((SELECT count(*) FROM rounds WHERE track = %(track)s)::text, 'UTF8'))
LIMIT %(most)s;

-- places --
-- Where each of these contents was found: the first of its files by name
SELECT DISTINCT ON (f.content_id) f.content_id, s.name AS source, f.path
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.content_id = ANY (%(content_ids)s::bigint[]) AND f.retired_at IS NULL
ORDER BY f.content_id, s.name, f.path;

-- cluster_roles --
-- Every role a round of the track has given these clusters, under any name of what they have merged into by now
WITH asked AS (
    SELECT id AS cluster_id, coalesce(m.merged_into, id) AS survivor
    FROM unnest(%(clusters)s::bigint[]) AS id LEFT JOIN cluster_merges m ON m.cluster_id = id
), names AS (
    SELECT survivor AS name, survivor FROM asked
    UNION
    SELECT cluster_id, merged_into FROM cluster_merges
    WHERE merged_into = ANY (ARRAY(SELECT survivor FROM asked))
), past AS (
    SELECT cluster_id AS name, 'train' AS role
    FROM trained_clusters WHERE track = %(track)s AND cluster_id = ANY (ARRAY(SELECT name FROM names))
    UNION ALL
    SELECT cluster_id, role
    FROM held_out_clusters WHERE track = %(track)s AND cluster_id = ANY (ARRAY(SELECT name FROM names))
)
SELECT DISTINCT cluster_id, role FROM past JOIN names USING (name) JOIN asked USING (survivor);

-- open_round --
-- The round of the track that is not finished
SELECT id, number, recipe, parent_adapter_id, snapshot_hash, attempts
FROM rounds WHERE track = %(track)s AND state = 'open';

-- start_attempt --
-- Count a child process that takes up the round
UPDATE rounds SET attempts = attempts + 1 WHERE id = %(round_id)s RETURNING attempts;

-- uncount_attempt --
-- An attempt that was interrupted in good order is none
UPDATE rounds SET attempts = greatest(attempts - 1, 0) WHERE id = %(round_id)s AND state = 'open';

-- insert_round --
-- Open the track's next round
INSERT INTO rounds (track, number, recipe, parent_adapter_id, snapshot_hash, attempts)
SELECT %(track)s, 1 + coalesce(max(number), 0), %(recipe)s, %(parent)s, %(snapshot_hash)s, 1
FROM rounds WHERE track = %(track)s
RETURNING id, number;

-- set_aside --
-- Hold a cluster out of every round of the track from now on
INSERT INTO held_out_clusters (track, cluster_id, role, round_id)
VALUES (%(track)s, %(cluster_id)s, %(role)s, %(round_id)s);

-- snapshot --
-- What the round trains on and is judged by, in order
SELECT rc.role, c.id AS content_id, c.sha256, c.language, c.text, c.score,
       coalesce(rc.source, '') AS source, coalesce(rc.path, '') AS path,
       (SELECT json_agg(json_build_array(u.kind, u.name, u.start_byte, u.end_byte, u.start_line, u.end_line,
                                         u.comment_byte) ORDER BY u.ordinal)
        FROM units u WHERE u.content_id = c.id) AS units
FROM round_contents rc JOIN contents c ON c.id = rc.content_id
WHERE rc.round_id = %(round_id)s
ORDER BY rc.role, rc.position;

-- best_of_backlog --
-- What a round of the track would begin with, with all that samples are made of
SELECT c.id AS content_id, c.sha256, c.language, c.text, c.score, s.name AS source, f.path,
       (SELECT json_agg(json_build_array(u.kind, u.name, u.start_byte, u.end_byte, u.start_line, u.end_line,
                                         u.comment_byte) ORDER BY u.ordinal)
        FROM units u WHERE u.content_id = c.id) AS units
FROM (SELECT content_id, score FROM backlog WHERE track = %(track)s
      ORDER BY score DESC, content_id LIMIT %(most)s) b
JOIN contents c ON c.id = b.content_id
CROSS JOIN LATERAL (SELECT source_id, path FROM files
                    WHERE content_id = c.id AND retired_at IS NULL ORDER BY source_id, path LIMIT 1) f
JOIN sources s ON s.id = f.source_id
ORDER BY b.score DESC, b.content_id;

-- best_contents --
-- The same of what fits a recipe that has no track yet, or whose backlog is empty
SELECT c.id AS content_id, c.sha256, c.language, c.text, c.score, s.name AS source, f.path,
       (SELECT json_agg(json_build_array(u.kind, u.name, u.start_byte, u.end_byte, u.start_line, u.end_line,
                                         u.comment_byte) ORDER BY u.ordinal)
        FROM units u WHERE u.content_id = c.id) AS units
FROM (SELECT * FROM contents
      WHERE live AND fits_recipe(%(recipe)s, language, characters)
      ORDER BY score DESC, id LIMIT %(most)s) c
CROSS JOIN LATERAL (SELECT source_id, path FROM files
                    WHERE content_id = c.id AND retired_at IS NULL ORDER BY source_id, path LIMIT 1) f
JOIN sources s ON s.id = f.source_id
ORDER BY c.score DESC, c.id;

-- champion --
-- The track's newest promotion
SELECT a.id, a.directory, a.manifest
FROM promotions p JOIN adapters a ON a.id = p.adapter_id
WHERE p.track = %(track)s ORDER BY p.id DESC LIMIT 1;

-- adapter --
-- One adapter of the track
SELECT id, directory, manifest FROM adapters WHERE id = %(adapter_id)s;

-- adapter_directories --
-- Every adapter of the track that the ledger knows
SELECT directory FROM adapters WHERE track = %(track)s;

-- record_progress --
-- What a round logged at a step; a resumed round writes a step again
INSERT INTO progress (round_id, step, kind, metrics) VALUES (%(round_id)s, %(step)s, %(kind)s, %(metrics)s)
ON CONFLICT (round_id, kind, step) DO UPDATE SET metrics = excluded.metrics, logged_at = now();

-- record_evaluation --
-- The loss of one held-out content under one model
INSERT INTO evaluations (round_id, subject, content_id, nats, tokens, bytes)
VALUES (%(round_id)s, %(subject)s, %(content_id)s, %(nats)s, %(tokens)s, %(bytes)s)
ON CONFLICT (round_id, subject, content_id) DO UPDATE
SET nats = excluded.nats, tokens = excluded.tokens, bytes = excluded.bytes;

-- close_round --
-- Finish an open round with its verdict; no row when it is closed already
UPDATE rounds
SET state = %(state)s, closed_at = now(), training = %(training)s, verdict = %(verdict)s
WHERE id = %(round_id)s AND state = 'open'
RETURNING id;

-- mark_trained --
-- What the new champion has learned from
INSERT INTO trained (track, content_id, round_id)
SELECT %(track)s, content_id, round_id FROM round_contents
WHERE round_id = %(round_id)s AND role = 'train';

-- insert_adapter --
-- Register what was published
INSERT INTO adapters (track, round_id, directory, manifest)
VALUES (%(track)s, %(round_id)s, %(directory)s, %(manifest)s)
RETURNING id;

-- promote --
-- Move the champion
INSERT INTO promotions (track, adapter_id, token, reason)
VALUES (%(track)s, %(adapter_id)s, %(token)s, %(reason)s);
