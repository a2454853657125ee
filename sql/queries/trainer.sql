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

-- candidates_not_set_aside --
-- The same without what an earlier round set aside: for when the best are nothing else
SELECT content_id, sha256, cluster_id, score
FROM backlog b
WHERE track = %(track)s AND score >= %(threshold)s
  AND NOT EXISTS (SELECT FROM held_out_clusters h WHERE h.track = b.track AND h.cluster_id = b.cluster_id)
ORDER BY score DESC, content_id
LIMIT %(most)s;

-- candidates_in_languages --
-- The same in these languages alone, or in all but these, with what was set aside or without
SELECT b.content_id, b.sha256, b.cluster_id, b.score, c.language
FROM backlog b JOIN contents c ON c.id = b.content_id
WHERE b.track = %(track)s AND b.score >= %(threshold)s
  AND (c.language = ANY (%(languages)s::text[])) = %(among)s
  AND (%(set_aside)s
       OR NOT EXISTS (SELECT FROM held_out_clusters h WHERE h.track = b.track AND h.cluster_id = b.cluster_id))
ORDER BY b.score DESC, b.content_id
LIMIT %(most)s;

-- set_aside_contents --
-- Live contents of the clusters that the track has set aside for this role: the newest, or drawn by hash
SELECT c.id AS content_id, c.sha256, c.cluster_id, c.score
FROM contents c
JOIN tracks t ON t.name = %(track)s AND fits_recipe(t.recipe, c.language, c.characters)
CROSS JOIN LATERAL (SELECT max(changed_at) AS changed_at FROM files
                    WHERE content_id = c.id AND retired_at IS NULL) f
WHERE c.live AND c.score >= %(threshold)s
  AND c.cluster_id IN (SELECT coalesce(m.merged_into, h.cluster_id)
                       FROM held_out_clusters h LEFT JOIN cluster_merges m ON m.cluster_id = h.cluster_id
                       WHERE h.track = %(track)s AND h.role = %(role)s)
ORDER BY CASE WHEN %(newest)s THEN f.changed_at END DESC NULLS LAST, c.sha256
LIMIT %(most)s;

-- anchors --
-- The held-out contents that every round of the track is judged by, while anything of their cluster is live
SELECT c.id AS content_id, c.sha256, c.cluster_id, c.score
FROM anchors a JOIN contents c ON c.id = a.content_id
WHERE a.track = %(track)s
  AND EXISTS (SELECT FROM contents o WHERE o.cluster_id = c.cluster_id AND o.live)
ORDER BY c.sha256;

-- keep_anchors --
-- Judge every round of the track by these from now on
INSERT INTO anchors (track, content_id, round_id)
SELECT %(track)s, content_id, %(round_id)s FROM unnest(%(content_ids)s::bigint[]) AS content_id
ON CONFLICT DO NOTHING;

-- trained_through --
-- The latest time up to which a round of the track trained, seconds since 1970
SELECT max((held_out ->> 'through')::bigint) FROM rounds WHERE track = %(track)s;

-- changes --
-- The last known change of each of these contents, in any of its live files; no clock is ahead of ours
SELECT content_id, extract(epoch FROM least(max(changed_at), now()))::bigint AS changed_at,
       coalesce(bool_or(lines_of = content_id), false) AS has_line_times
FROM files
WHERE content_id = ANY (%(content_ids)s::bigint[]) AND retired_at IS NULL AND changed_at IS NOT NULL
GROUP BY content_id;

-- texts --
-- The texts of these contents
SELECT id AS content_id, text FROM contents WHERE id = ANY (%(content_ids)s::bigint[]);

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
SELECT id, number, recipe, parent_adapter_id, snapshot_hash, held_out, attempts
FROM rounds WHERE track = %(track)s AND state = 'open';

-- start_attempt --
-- Count a child process that takes up the round
UPDATE rounds SET attempts = attempts + 1 WHERE id = %(round_id)s RETURNING attempts;

-- uncount_attempt --
-- An attempt that was interrupted in good order is none
UPDATE rounds SET attempts = greatest(attempts - 1, 0) WHERE id = %(round_id)s AND state = 'open';

-- insert_round --
-- Open the track's next round
INSERT INTO rounds (track, number, recipe, parent_adapter_id, snapshot_hash, held_out, attempts)
SELECT %(track)s, 1 + coalesce(max(number), 0), %(recipe)s, %(parent)s, %(snapshot_hash)s, %(held_out)s, 1
FROM rounds WHERE track = %(track)s
RETURNING id, number;

-- set_aside --
-- Hold a cluster out of every round of the track from now on
INSERT INTO held_out_clusters (track, cluster_id, role, round_id)
VALUES (%(track)s, %(cluster_id)s, %(role)s, %(round_id)s);

-- snapshot --
-- What the round trains on and is judged by, in order
SELECT rc.role, rc.judged, c.id AS content_id, c.sha256, c.language, c.text, c.score,
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
-- The track's best adapter so far; no row where the base model stands
SELECT a.id, a.directory, a.manifest, a.canary
FROM champions c JOIN adapters a ON a.id = c.adapter_id
WHERE c.track = %(track)s;

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
INSERT INTO evaluations (round_id, subject, content_id, nats, tokens, bytes, correct)
VALUES (%(round_id)s, %(subject)s, %(content_id)s, %(nats)s, %(tokens)s, %(bytes)s, %(correct)s)
ON CONFLICT (round_id, subject, content_id) DO UPDATE
SET nats = excluded.nats, tokens = excluded.tokens, bytes = excluded.bytes, correct = excluded.correct;

-- close_round --
-- Finish an open round with its verdict; no row when it is closed already
UPDATE rounds
SET state = %(state)s, closed_at = now(), training = %(training)s, verdict = %(verdict)s
WHERE id = %(round_id)s AND state = 'open'
RETURNING id;

-- insert_adapter --
-- Register what was published
INSERT INTO adapters (track, round_id, directory, manifest)
VALUES (%(track)s, %(round_id)s, %(directory)s, %(manifest)s)
RETURNING id;


-- verdict_rounds --
-- The finished rounds of a track up to one, for what they took and how they held out
SELECT id, number, training, held_out FROM rounds
WHERE track = %(track)s AND number <= %(number)s AND state <> 'open' ORDER BY number;

-- verdict_held_out --
-- What a round was judged by, as its snapshot has it, with the clusters as they are now
SELECT rc.judged, c.id AS content_id, c.sha256, c.language, c.text, c.score,
       coalesce(rc.source, '') AS source, coalesce(rc.path, '') AS path,
       coalesce(m.merged_into, c.cluster_id) AS cluster_id,
       (SELECT json_agg(json_build_array(u.kind, u.name, u.start_byte, u.end_byte, u.start_line, u.end_line,
                                         u.comment_byte) ORDER BY u.ordinal)
        FROM units u WHERE u.content_id = c.id) AS units
FROM round_contents rc JOIN contents c ON c.id = rc.content_id
LEFT JOIN cluster_merges m ON m.cluster_id = c.cluster_id
WHERE rc.round_id = %(round_id)s AND rc.role = 'held_out'
ORDER BY rc.position;

-- verdict_corpus --
-- The contents that these sources hold now, each once a source, until so many bytes are reached
SELECT source, path, text, cluster_id
FROM (SELECT *, sum(bytes) OVER (ORDER BY source COLLATE "C", content_id) - bytes AS before
      FROM (SELECT DISTINCT ON (s.id, c.id) s.name AS source, f.path, c.text, c.bytes, c.id AS content_id,
                   coalesce(m.merged_into, c.cluster_id) AS cluster_id
            FROM sources s
            JOIN files f ON f.source_id = s.id AND f.retired_at IS NULL
            JOIN contents c ON c.id = f.content_id
            LEFT JOIN cluster_merges m ON m.cluster_id = c.cluster_id
            WHERE s.name = ANY (%(sources)s::text[])
            ORDER BY s.id, c.id, f.path) AS held) AS counted
WHERE before < %(most_bytes)s
ORDER BY source COLLATE "C", content_id;

-- Lines and units: when they were written, and where else they stand

-- line_times --
-- When the lines of contents were written, out of the live file that was changed last of those that know; null if none
SELECT DISTINCT ON (content_id)
       content_id, CASE WHEN lines_of = content_id THEN line_times END AS line_times, changed_at
FROM files
WHERE content_id = ANY (%(content_ids)s::bigint[]) AND retired_at IS NULL
ORDER BY content_id, (lines_of = content_id) DESC NULLS LAST, changed_at DESC NULLS LAST, id;

-- leaked_units --
-- Units of these contents whose code stands in a content that a round of the track has trained on, or is to train on
WITH own AS MATERIALIZED (
    SELECT content_id, start_byte, end_byte, fingerprint
    FROM units
    WHERE content_id = ANY (%(judged)s::bigint[]) AND fingerprint IS NOT NULL
), leaked AS MATERIALIZED (  -- each number is looked for once: some stand in thousands of contents
    SELECT fingerprint
    FROM (SELECT DISTINCT fingerprint FROM own) AS numbers
    WHERE EXISTS (
        SELECT FROM units t
        WHERE t.fingerprint = numbers.fingerprint
          AND (t.content_id = ANY (%(training)s::bigint[])
               OR EXISTS (SELECT FROM round_contents
                          WHERE content_id = t.content_id AND role IN ('train', 'replay')
                            AND round_id = ANY (ARRAY(SELECT id FROM rounds WHERE track = %(track)s)))))
)
SELECT j.content_id, j.start_byte, j.end_byte
FROM own j JOIN leaked USING (fingerprint)
ORDER BY j.content_id, j.start_byte, j.end_byte;

-- hold_track --
-- The track's row, locked until the transaction ends, whoever holds its lease
SELECT token FROM tracks WHERE name = %(track)s FOR UPDATE;

-- track_names --
-- Every track there is
SELECT name FROM tracks ORDER BY name;

-- record_move --
-- A move of the champion, or a word about it
INSERT INTO promotions (track, kind, adapter_id, token, actor, reason)
VALUES (%(track)s, %(kind)s, %(adapter_id)s, %(token)s, %(actor)s, %(reason)s);

-- moves --
-- Every move of the track's champion, oldest first
SELECT kind, adapter_id, actor, reason FROM promotions WHERE track = %(track)s ORDER BY id;

-- published_adapters --
-- Every adapter of the track, oldest first, and whether it was rejected
SELECT a.id, a.directory,
       EXISTS (SELECT FROM promotions p WHERE p.adapter_id = a.id AND p.kind = 'rejected') AS rejected
FROM adapters a WHERE a.track = %(track)s ORDER BY a.id;

-- settle_trained --
-- Let what counts as learned follow the champion
SELECT settle_trained(%(track)s);

-- round_outcome --
-- What became of a round
SELECT state, verdict ->> 'reason' AS reason FROM rounds WHERE id = %(round_id)s;

-- closed_for --
-- Seconds since a round was closed; null while it is open
SELECT extract(epoch FROM now() - closed_at)::float8 FROM rounds WHERE id = %(round_id)s;

-- gate_history --
-- Of each measured verdict of the track, in order, whether its candidate is in the champion
SELECT id IN (SELECT lineage(%(track)s)) AS promoted
FROM rounds
WHERE track = %(track)s AND state IN ('promoted', 'refused') AND verdict ->> 'low' IS NOT NULL
ORDER BY number;

-- record_canary --
-- What the canary found of an adapter
UPDATE adapters SET canary = %(canary)s WHERE id = %(adapter_id)s;

-- forget_suite --
-- What a model scored on a suite in a round, before it is recorded anew; its scores go with it
DELETE FROM suite_reports WHERE round_id = %(round_id)s AND subject = %(subject)s AND suite = %(suite)s;

-- record_suite --
-- What a model's scores on a suite come to; the scores themselves are copied
INSERT INTO suite_reports (round_id, subject, suite, version, items, figures, seconds, from_cache)
VALUES (%(round_id)s, %(subject)s, %(suite)s, %(version)s, %(items)s, %(figures)s, %(seconds)s, %(from_cache)s);

-- suite_reports --
-- What the models of a round scored on every suite
SELECT subject, suite, version, items, figures, seconds, from_cache
FROM suite_reports WHERE round_id = %(round_id)s
ORDER BY suite, subject;

-- suite_scores --
-- What one model of a round scored on one suite, item by item
SELECT item, name, item_group, metric, value, weight, detail
FROM suite_scores WHERE round_id = %(round_id)s AND subject = %(subject)s AND suite = %(suite)s
ORDER BY name, item, metric;
