-- ensure_track --
-- Make the track known, with the recipe as resolved now
INSERT INTO tracks (name, recipe) VALUES (%(track)s, %(recipe)s)
ON CONFLICT (name) DO UPDATE SET recipe = excluded.recipe;

-- take_lease --
-- Take the track when it is free or its lease has run out; a new fencing token, or no row
UPDATE tracks
SET token = token + 1, lease_holder = %(holder)s,
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
    SELECT 1 FROM contents c
    WHERE c.score >= %(threshold)s
      AND c.bytes <= %(max_bytes)s AND length(c.text) BETWEEN %(min_chars)s AND %(max_chars)s
      AND (%(languages)s::text[] IS NULL OR c.language = ANY (%(languages)s::text[]))
      AND EXISTS (SELECT 1 FROM files f WHERE f.content_id = c.id AND f.retired_at IS NULL)
      AND NOT EXISTS (
          SELECT 1 FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
          WHERE rc.content_id = c.id AND r.track = %(track)s)
    LIMIT %(most)s
) AS new_contents;

-- candidates --
-- Contents the champion has not learned from and no failed round has had, best first
SELECT c.id AS content_id, c.sha256, c.cluster_id, c.score
FROM contents c
WHERE c.score >= %(threshold)s
  AND c.bytes <= %(max_bytes)s AND length(c.text) BETWEEN %(min_chars)s AND %(max_chars)s
  AND (%(languages)s::text[] IS NULL OR c.language = ANY (%(languages)s::text[]))
  AND EXISTS (SELECT 1 FROM files f WHERE f.content_id = c.id AND f.retired_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM trained t WHERE t.track = %(track)s AND t.content_id = c.id)
  AND NOT EXISTS (
      SELECT 1 FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
      WHERE rc.content_id = c.id AND rc.role = 'train' AND r.track = %(track)s AND r.state = 'failed')
ORDER BY c.score DESC, c.id
LIMIT %(most)s;

-- held_out_clusters --
-- The clusters earlier rounds of the track set aside
SELECT cluster_id, role FROM held_out_clusters WHERE track = %(track)s;

-- trained_clusters --
-- The clusters any round of the track has trained on, whatever became of it
SELECT DISTINCT c.cluster_id
FROM round_contents rc
JOIN rounds r ON r.id = rc.round_id
JOIN contents c ON c.id = rc.content_id
WHERE r.track = %(track)s AND rc.role = 'train';

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
SELECT rc.role, c.id AS content_id, c.sha256, c.language, c.text
FROM round_contents rc JOIN contents c ON c.id = rc.content_id
WHERE rc.round_id = %(round_id)s
ORDER BY rc.role, rc.position;

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
