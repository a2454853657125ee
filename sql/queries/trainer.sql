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

-- next_number --
-- The number that the track's next round will have
SELECT 1 + coalesce(max(number), 0) AS number FROM rounds WHERE track = %(track)s;

-- set_aside --
-- Hold a cluster out of every round of the track from now on
INSERT INTO held_out_clusters (track, cluster_id, role, round_id)
VALUES (%(track)s, %(cluster_id)s, %(role)s, %(round_id)s);

-- snapshot --
-- What the round trains on and is judged by, in order
SELECT rc.role, rc.judged, c.id AS content_id, c.sha256, c.language, c.text, c.score,
       coalesce(rc.source, '') AS source, coalesce(rc.path, '') AS path,
       coalesce(m.merged_into, c.cluster_id) AS cluster_id,
       (SELECT json_agg(json_build_array(u.kind, u.name, u.start_byte, u.end_byte, u.start_line, u.end_line,
                                         u.comment_byte) ORDER BY u.ordinal)
        FROM units u WHERE u.content_id = c.id) AS units
FROM round_contents rc JOIN contents c ON c.id = rc.content_id
LEFT JOIN cluster_merges m ON m.cluster_id = c.cluster_id
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
WHERE rc.round_id = %(round_id)s AND rc.role = 'held_out' AND c.text <> ''  -- forgotten ones are blank
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
-- Every adapter of the track, oldest first, whether it was rejected, and what forgetting says of it
SELECT a.id, a.directory,
       EXISTS (SELECT FROM promotions p WHERE p.adapter_id = a.id AND p.kind = 'rejected') AS rejected,
       (SELECT policy FROM taints WHERE adapter_id = a.id) AS taint
FROM adapters a WHERE a.track = %(track)s ORDER BY a.id;

-- settle_trained --
-- Let what counts as learned follow the champion
SELECT settle_trained(%(track)s);

-- round_outcome --
-- What became of a round
SELECT state, verdict ->> 'reason' AS reason FROM rounds WHERE id = %(round_id)s;

-- closed_for --
-- Seconds since a round was closed; null while it is open, without end where what it trains on was taken back
SELECT CASE WHEN closed_at IS NOT NULL AND withdrawn_by IS NOT NULL THEN 'Infinity'
            ELSE extract(epoch FROM now() - closed_at)::float8 END
FROM rounds WHERE id = %(round_id)s;

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

-- Receipts: where what a round trained on lay, and how often it did

-- record_round_sources --
-- The sources of a new round's files, as they are now
INSERT INTO round_sources (round_id, source_id, name, kind, commit_id, licence)
SELECT %(round_id)s, id, name, kind, commit_id, licence
FROM sources WHERE id IN (SELECT source_id FROM round_files WHERE round_id = %(round_id)s);

-- record_round_files --
-- Every file that holds a content of a new round now
INSERT INTO round_files (round_id, content_id, source_id, path, commit_id)
SELECT rc.round_id, rc.content_id, f.source_id, f.path, f.commit_id
FROM round_contents rc JOIN files f ON f.content_id = rc.content_id AND f.retired_at IS NULL
WHERE rc.round_id = %(round_id)s;

-- receipt_counts --
-- How many contents of a round have which role
SELECT role, count(*) AS contents FROM round_contents WHERE round_id = %(round_id)s GROUP BY role;

-- receipt_sources --
-- The sources of a round's contents, as they were when it was opened
SELECT source_id, name, kind, commit_id, licence FROM round_sources
WHERE round_id = %(round_id)s ORDER BY name COLLATE "C";

-- receipt_contents --
-- A page of a round's contents in one role, in order, with the files that held them when it was opened
SELECT rc.content_id, rc.position, rc.judged, encode(c.sha256, 'hex') AS sha256, c.language, c.bytes, c.lines,
       c.score, c.licence, f.files
FROM round_contents rc
JOIN contents c ON c.id = rc.content_id
CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(rf.source_id, rf.path, rf.commit_id)) AS files
    FROM round_files rf
    WHERE rf.round_id = rc.round_id AND rf.content_id = rc.content_id) f
WHERE rc.round_id = %(round_id)s AND rc.role = %(role)s AND rc.position > %(after)s
ORDER BY rc.position
LIMIT %(most)s;

-- forget_exposures --
-- What an earlier attempt counted, before it is counted anew
DELETE FROM exposures WHERE round_id = %(round_id)s;

-- Forgetting: services/trainer/forgetting; by the database's owner

-- may_forget --
-- Who this is, and whether it has the owner's rights on what forgetting changes
SELECT current_user AS role,
       bool_and(has_table_privilege(name, 'UPDATE') AND has_table_privilege(name, 'DELETE')) AS allowed
FROM unnest(ARRAY['contents', 'units', 'files', 'claims', 'anchors', 'rounds', 'suite_scores', 'forgettings'])
     AS name;

-- forget_source --
-- The source of this name
SELECT id FROM sources WHERE name = %(source)s;

-- forget_nearest_sources --
-- Names of sources, for one that was misspelt
SELECT name FROM sources ORDER BY name COLLATE "C" LIMIT 10000;

-- forget_paths --
-- Paths of a source, for one that was misspelt
SELECT path FROM files WHERE source_id = %(source_id)s ORDER BY path LIMIT 20000;

-- forget_is_path --
-- Whether a source has, or had, a file of this path, and whether it has any below it
SELECT EXISTS (SELECT FROM files WHERE source_id = %(source_id)s AND path = %(path)s)
       OR EXISTS (SELECT FROM round_files WHERE source_id = %(source_id)s AND path = %(path)s) AS is_file,
       EXISTS (SELECT FROM files WHERE source_id = %(source_id)s AND starts_with(path, %(path)s || '/'))
       OR EXISTS (SELECT FROM round_files WHERE source_id = %(source_id)s AND starts_with(path, %(path)s || '/'))
       AS is_folder;

-- forget_files --
-- Files of a source, folder or path: how many, and how many are there now
SELECT count(*) AS files, count(*) FILTER (WHERE retired_at IS NULL) AS present
FROM files f
WHERE f.source_id = %(source_id)s
  AND (%(path)s IN ('', f.path) OR (right(%(path)s, 1) = '/' AND starts_with(f.path, %(path)s)));

-- forget_contents --
-- What a source, folder or path holds, held, or was trained on with: each text once, and whether others hold it
WITH place AS (
    SELECT f.id, f.content_id, f.lines_of, f.cluster_id
    FROM files f
    WHERE f.source_id = %(source_id)s
      AND (%(path)s IN ('', f.path) OR (right(%(path)s, 1) = '/' AND starts_with(f.path, %(path)s)))
), placed AS (  -- rounds know who held a text when they began, also one that no file holds any more
    SELECT DISTINCT content_id
    FROM round_files
    WHERE source_id = %(source_id)s
      AND (%(path)s IN ('', path) OR (right(%(path)s, 1) = '/' AND starts_with(path, %(path)s)))
), known AS (
    SELECT content_id AS id FROM place WHERE content_id IS NOT NULL
    UNION SELECT lines_of FROM place WHERE lines_of IS NOT NULL
    UNION SELECT content_id FROM placed
), clusters AS (
    SELECT coalesce(m.merged_into, p.cluster_id) AS id
    FROM place p LEFT JOIN cluster_merges m ON m.cluster_id = p.cluster_id
    UNION SELECT c.cluster_id FROM known k JOIN contents c ON c.id = k.id
), earlier AS (  -- versions that no file holds: of these paths, unless a round found them elsewhere
    SELECT c.id
    FROM contents c JOIN clusters ON clusters.id = c.cluster_id
    WHERE NOT c.live
      AND NOT EXISTS (SELECT FROM files f WHERE f.content_id = c.id AND f.id NOT IN (SELECT id FROM place))
      AND NOT EXISTS (SELECT FROM round_contents rc
                      WHERE rc.content_id = c.id AND rc.content_id NOT IN (SELECT content_id FROM placed))
), found AS (
    SELECT id FROM known UNION SELECT id FROM earlier
)
SELECT c.id AS content_id, c.cluster_id, c.bytes,
       NOT EXISTS (SELECT FROM place p JOIN files f ON f.id = p.id
                   WHERE f.content_id = c.id AND f.retired_at IS NULL) AS is_earlier,
       EXISTS (SELECT FROM files f
               WHERE f.content_id = c.id AND f.retired_at IS NULL AND f.id NOT IN (SELECT id FROM place))
       AS is_shared,
       c.id NOT IN (SELECT id FROM known)
       AND EXISTS (SELECT FROM contents o JOIN files f ON f.duplicate_of = o.id
                   WHERE o.cluster_id = c.cluster_id AND f.retired_at IS NULL
                     AND f.id NOT IN (SELECT id FROM place)) AS is_unclear
FROM found JOIN contents c ON c.id = found.id
WHERE NOT EXISTS (SELECT FROM forgotten_contents fc JOIN forgettings f ON f.id = fc.forgetting_id
                  WHERE fc.content_id = c.id AND fc.barred AND f.remembered_at IS NULL)
ORDER BY c.id;

-- forget_elsewhere --
-- Files outside that hold one of these texts, or were refused as nearly the same as one
SELECT s.name AS source, f.path, f.duplicate_of IS NOT NULL AS is_near
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.retired_at IS NULL
  AND (f.content_id = ANY (%(content_ids)s::bigint[]) OR f.duplicate_of = ANY (%(content_ids)s::bigint[]))
  AND NOT (s.name = %(source)s
           AND (%(path)s IN ('', f.path) OR (right(%(path)s, 1) = '/' AND starts_with(f.path, %(path)s))))
ORDER BY s.name COLLATE "C", f.path
LIMIT %(most)s;

-- forget_adapters --
-- Adapters that learned from these texts in their own round, or continue from one that did
WITH RECURSIVE direct AS (
    SELECT a.id, count(DISTINCT rc.content_id) AS contents
    FROM round_contents rc JOIN adapters a ON a.round_id = rc.round_id
    WHERE rc.content_id = ANY (%(content_ids)s::bigint[]) AND rc.role IN ('train', 'replay')
    GROUP BY a.id
), touched AS (
    SELECT id FROM direct
    UNION
    SELECT a.id
    FROM touched t JOIN rounds r ON r.parent_adapter_id = t.id JOIN adapters a ON a.round_id = r.id
)
SELECT a.id, a.track, a.directory, a.round_id, coalesce(d.contents, 0)::integer AS contents,
       EXISTS (SELECT FROM champions c WHERE c.adapter_id = a.id) AS is_champion
FROM touched t JOIN adapters a ON a.id = t.id LEFT JOIN direct d ON d.id = a.id
ORDER BY a.track, a.id;

-- forget_rounds --
-- Rounds that have one of these texts in their snapshot, in whatever role
SELECT r.id, r.track, r.number, r.state
FROM rounds r
WHERE EXISTS (SELECT FROM round_contents rc
              WHERE rc.round_id = r.id AND rc.content_id = ANY (%(content_ids)s::bigint[]))
ORDER BY r.track, r.number;

-- forget_begin --
-- A forgetting, from here on the tombstone of its path
INSERT INTO forgettings (source, path, everywhere, policy, actor, reason, found)
VALUES (%(source)s, %(path)s, %(everywhere)s, %(policy)s, %(actor)s, %(reason)s, %(found)s)
RETURNING id;

-- forget_bar_contents --
-- The texts of a forgetting, from here on refused wherever they turn up, but for those that are only erased
INSERT INTO forgotten_contents (forgetting_id, content_id, barred)
SELECT %(forgetting)s, content_id, content_id <> ALL (%(unclear)s::bigint[])
FROM unnest(%(content_ids)s::bigint[]) AS content_id;

-- forget_release --
-- No round selects them any more
UPDATE contents SET live = false WHERE id = ANY (%(content_ids)s::bigint[]) AND live;

-- forget_bar_files --
-- The files in its scope hold nothing; what was refused for its kind stays refused for that
UPDATE files f
SET content_id = NULL, reason = 'forgotten', detail = 'by forgetting ' || %(forgetting)s::bigint,
    duplicate_of = NULL, line_times = NULL, lines_of = NULL, lines_at = NULL
WHERE f.source_id = %(source_id)s
  AND (%(path)s IN ('', f.path) OR (right(%(path)s, 1) = '/' AND starts_with(f.path, %(path)s)))
  AND (f.reason IS NULL OR NOT f.reason = ANY (%(by_the_walk)s::text[]));

-- forget_bar_holders --
-- Nor do files elsewhere that held one of its texts, there now or not
UPDATE files
SET content_id = NULL, reason = 'forgotten', detail = 'by forgetting ' || %(forgetting)s::bigint,
    line_times = NULL, lines_of = NULL, lines_at = NULL
WHERE content_id = ANY (%(content_ids)s::bigint[]);

-- forget_lines --
-- Times of lines of these texts say nothing any more
UPDATE files SET line_times = NULL, lines_of = NULL, lines_at = NULL
WHERE lines_of = ANY (%(content_ids)s::bigint[]);

-- forget_anchors --
-- They judge no round any more
DELETE FROM anchors WHERE content_id = ANY (%(content_ids)s::bigint[]);

-- forget_claims --
-- What waits to be stored of a source may hold its texts; it is walked again
DELETE FROM claims
WHERE id IN (SELECT id FROM claims WHERE source_id = %(source_id)s FOR UPDATE SKIP LOCKED);

-- forget_mark --
-- Adapters of a track that know what was taken back
INSERT INTO tainted_adapters (forgetting_id, adapter_id, contents)
SELECT %(forgetting)s, adapter_id, contents
FROM unnest(%(adapter_ids)s::bigint[], %(contents)s::integer[]) AS marked (adapter_id, contents)
ON CONFLICT DO NOTHING;

-- forget_withdraw --
-- Their rounds count as if they had not been: what else they trained on is new again
UPDATE rounds r SET withdrawn_by = %(forgetting)s
FROM adapters a
WHERE a.round_id = r.id AND a.id = ANY (%(adapter_ids)s::bigint[]) AND r.withdrawn_by IS NULL;

-- forget_close --
-- An open round of a track that has one of these texts, or continues from one of these adapters, ends
UPDATE rounds r
SET state = 'refused', closed_at = now(), withdrawn_by = %(forgetting)s, verdict = %(verdict)s
WHERE r.track = %(track)s AND r.state = 'open'
  AND (r.parent_adapter_id = ANY (%(adapter_ids)s::bigint[])
       OR EXISTS (SELECT FROM round_contents rc
                  WHERE rc.round_id = r.id AND rc.content_id = ANY (%(content_ids)s::bigint[])))
RETURNING r.number;

-- forget_closed --
-- Rounds whose training a forgetting took back
SELECT track, number FROM rounds WHERE withdrawn_by = %(forgetting)s ORDER BY track, number;

-- forget_step --
-- How far a forgetting is
UPDATE forgettings SET state = %(state)s, finished_at = CASE WHEN %(state)s = 'done' THEN now() END
WHERE id = %(forgetting)s;

-- forget_figures --
-- What models gave up of a track's passages, beside what is known of other tracks
UPDATE forgettings SET extraction = extraction || jsonb_build_object(%(track)s::text, %(figures)s::jsonb)
WHERE id = %(forgetting)s;

-- forget_texts --
-- The texts go, their addresses and figures stay: rounds and receipts name them
UPDATE contents c SET text = '', live = false
FROM forgotten_contents fc
WHERE fc.content_id = c.id AND fc.forgetting_id = %(forgetting)s AND (fc.barred OR NOT c.live);

-- forget_units --
-- So do the names of their functions and classes
DELETE FROM units u
USING forgotten_contents fc JOIN contents c ON c.id = fc.content_id
WHERE u.content_id = c.id AND fc.forgetting_id = %(forgetting)s AND c.text = '';

-- forget_answers --
-- What was asked about them in suites, and what models that had learned from them wrote
UPDATE suite_scores s
SET detail = CASE WHEN s.detail ? 'kind' THEN jsonb_build_object('kind', s.detail -> 'kind') ELSE '{}' END
WHERE s.detail <> '{}'
  AND (EXISTS (SELECT FROM round_contents rc
               JOIN forgotten_contents fc ON fc.content_id = rc.content_id AND fc.forgetting_id = %(forgetting)s
               WHERE rc.round_id = s.round_id)
       OR (s.subject = 'champion'
           AND s.round_id IN (SELECT r.id FROM rounds r JOIN tainted_adapters t ON t.adapter_id = r.parent_adapter_id
                              WHERE t.forgetting_id = %(forgetting)s))
       OR s.round_id IN (SELECT a.round_id FROM adapters a JOIN tainted_adapters t ON t.adapter_id = a.id
                         WHERE t.forgetting_id = %(forgetting)s));

-- has_events --
-- Whether the ledger keeps events
SELECT to_regprocedure('record_event(text,text,jsonb)') IS NOT NULL;

-- tell_forgotten --
-- Tell whoever follows the events
SELECT record_event('source.forgotten', %(track)s, %(payload)s);

-- forget_sample --
-- Texts of a forgetting that an adapter trained on, or inherited, some drawn by their hash
SELECT c.sha256, c.text
FROM forgotten_contents fc JOIN contents c ON c.id = fc.content_id
WHERE fc.forgetting_id = %(forgetting)s AND c.text <> ''
  AND EXISTS (SELECT FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
              WHERE rc.content_id = c.id AND r.track = %(track)s AND rc.role IN ('train', 'replay')
                AND r.id IN (SELECT a.round_id FROM adapters a JOIN tainted_adapters t ON t.adapter_id = a.id
                             WHERE t.forgetting_id = %(forgetting)s))
ORDER BY c.sha256
LIMIT %(most)s;

-- forgettings --
-- Every forgetting, newest first, or one of them
SELECT f.id, f.source, f.path, f.everywhere, f.policy, f.state, f.actor, f.reason, f.found, f.extraction,
       f.begun_at, f.finished_at, f.remembered_at
FROM forgettings f
WHERE %(forgetting)s::bigint IS NULL OR f.id = %(forgetting)s
ORDER BY f.id DESC;

-- forgotten_ids --
-- The texts of a forgetting
SELECT content_id FROM forgotten_contents WHERE forgetting_id = %(forgetting)s ORDER BY content_id;

-- forgotten_adapters --
-- The adapters that a forgetting marked, and what all forgettings that stand say of them
SELECT a.track, a.directory, (SELECT policy FROM taints WHERE adapter_id = a.id) AS taint
FROM tainted_adapters t JOIN adapters a ON a.id = t.adapter_id
WHERE t.forgetting_id = %(forgetting)s
ORDER BY a.track, a.id;

-- remember --
-- Lift the tombstones of a forgetting; no row when they are lifted
UPDATE forgettings SET remembered_at = now() WHERE id = %(forgetting)s AND remembered_at IS NULL RETURNING id;

-- remember_files --
-- Files that were refused by it are read again
WITH again AS (
    UPDATE files SET rules = 0 WHERE reason = 'forgotten' AND detail = 'by forgetting ' || %(forgetting)s::bigint
    RETURNING source_id
)
UPDATE sources SET stamp = NULL WHERE id IN (SELECT source_id FROM again);

-- retrains --
-- Whether the track's champion was left for what it had learned, and no round has begun since
SELECT coalesce((SELECT p.actor = 'forget' AND p.kind IN ('rolled_back', 'unpinned')
                        AND NOT EXISTS (SELECT FROM rounds r
                                        WHERE r.track = p.track AND r.opened_at > p.promoted_at)
                 FROM promotions p WHERE p.track = %(track)s ORDER BY p.id DESC LIMIT 1), false);

-- rounds_since --
-- Rounds of a track that began after its champion was left for what it had learned
SELECT r.number, r.state, r.verdict ->> 'reason' AS reason
FROM rounds r
WHERE r.track = %(track)s
  AND r.opened_at > (SELECT max(promoted_at) FROM promotions WHERE track = %(track)s AND actor = 'forget')
ORDER BY r.number;

-- trainer_beat --
-- What the trainer of a track said last, and seconds since
SELECT state, detail, extract(epoch FROM now() - beat_at)::float8 AS age
FROM heartbeats WHERE service = 'trainer' AND detail ->> 'track' = %(track)s
ORDER BY beat_at DESC LIMIT 1;

-- record_parity --
-- What was measured of an adapter's parity; its row's id, or no row for an adapter that the ledger does not know
UPDATE adapters SET parity = %(parity)s WHERE track = %(track)s AND directory = %(directory)s RETURNING id;

-- round_held_out_texts --
-- Texts that the round of an adapter held out, in an order that says nothing about them
SELECT c.text
FROM adapters a
JOIN round_contents rc ON rc.round_id = a.round_id AND rc.role = 'held_out'
JOIN contents c ON c.id = rc.content_id
WHERE a.track = %(track)s AND a.directory = %(directory)s AND c.text <> ''  -- forgotten ones are blank
ORDER BY c.sha256 LIMIT %(most)s;

-- The share of a source in a round (recipe field source_share)

-- sources_of --
-- The sources that have a live file of each of these contents, and its size
SELECT f.content_id, c.bytes, array_agg(DISTINCT f.source_id) AS sources
FROM files f JOIN contents c ON c.id = f.content_id
WHERE f.content_id = ANY (%(content_ids)s::bigint[]) AND f.retired_at IS NULL
GROUP BY f.content_id, c.bytes;

-- latest_sources --
-- The sources that the track's latest rounds trained on, of those that still have a live file
SELECT s.id AS source_id
FROM (SELECT DISTINCT rc.source FROM round_contents rc
      WHERE rc.role = 'train' AND rc.round_id = ANY (ARRAY(SELECT id FROM rounds WHERE track = %(track)s
                                                           ORDER BY number DESC LIMIT %(rounds)s))) AS latest
JOIN sources s ON s.name = latest.source
WHERE EXISTS (SELECT FROM files f WHERE f.source_id = s.id AND f.retired_at IS NULL);

-- candidates_elsewhere --
-- The best candidates of some or all languages that lie in another source than these, without what was set aside
SELECT b.content_id, b.sha256, b.cluster_id, b.score, c.language
FROM backlog b JOIN contents c ON c.id = b.content_id
CROSS JOIN LATERAL (SELECT FROM files f  -- by index, one content after the other: never all files
                    WHERE f.content_id = b.content_id AND f.retired_at IS NULL
                      AND f.source_id <> ALL (%(full)s::bigint[]) LIMIT 1) AS elsewhere
WHERE b.track = %(track)s AND b.score >= %(threshold)s
  AND (c.language = ANY (%(languages)s::text[])) = %(among)s
  AND NOT EXISTS (SELECT FROM held_out_clusters h WHERE h.track = b.track AND h.cluster_id = b.cluster_id)
ORDER BY b.score DESC, b.content_id
LIMIT %(most)s;

-- For the page of a round

-- record_sample --
-- A sample as the model saw it; none where what it quotes is forgotten, or one of this number is there
INSERT INTO round_samples (round_id, number, contents, kind, tokens, learned, runs)
VALUES (%(round_id)s, %(number)s, %(contents)s::bigint[], %(kind)s, %(tokens)s, %(learned)s, %(runs)s)
ON CONFLICT DO NOTHING;

-- record_round_log --
-- Lines that a round logged, in order
INSERT INTO round_log (round_id, at, level, line)
SELECT %(round_id)s, at, level, line
FROM unnest(%(at)s::timestamptz[], %(levels)s::text[], %(lines)s::text[]) WITH ORDINALITY AS said (at, level, line, n)
ORDER BY n;

-- trim_round_log --
-- Of a round's log only the last lines stay
DELETE FROM round_log
WHERE round_id = %(round_id)s
  AND id <= (SELECT id FROM round_log WHERE round_id = %(round_id)s ORDER BY id DESC OFFSET %(most)s LIMIT 1);

-- lock_task_set --
-- Make the set known and hold its row until the transaction ends
INSERT INTO task_sets (name) VALUES (%(task_set)s) ON CONFLICT (name) DO UPDATE SET name = excluded.name;

-- task_set --
-- What its tasks were last read from
SELECT name, signature, source, read_at FROM task_sets WHERE name = %(task_set)s;

-- task_sets --
-- Every set, also those that hold nothing any more
SELECT name, signature, source, read_at FROM task_sets ORDER BY name;

-- task_set_was_read --
-- Note what its tasks were read from; NULL as signature has them read again
UPDATE task_sets SET signature = %(signature)s, source = %(source)s, read_at = clock_timestamp()
WHERE name = %(task_set)s;

-- known_tasks --
-- Every task that a set ever had, without its text
SELECT id, name, sha256, prompt_sha256, task_group, split, source, excluded, retired_at
FROM tasks WHERE task_set = %(task_set)s;

-- retire_tasks --
-- These are in their set no more
UPDATE tasks SET retired_at = clock_timestamp() WHERE id = ANY(%(task_ids)s);

-- place_tasks --
-- These are in their set as it is now: which split, which group, from where, and whether a round may have them
UPDATE tasks t
SET split = n.split, task_group = n.task_group, source = n.source, excluded = n.excluded, retired_at = NULL
FROM unnest(
    %(task_ids)s::bigint[], %(splits)s::text[], %(task_groups)s::text[], %(sources)s::text[], %(excluded)s::text[]
) AS n (id, split, task_group, source, excluded)
WHERE t.id = n.id;

-- standing_tasks --
-- The tasks of a set as it is now, with why some are left out, in the order of their names
SELECT id, name, sha256, task_group, split, style, payload, source, excluded, added_at
FROM tasks WHERE task_set = %(task_set)s AND retired_at IS NULL
ORDER BY split = 'test', split = 'validation', id;

-- usable_tasks --
-- What a round of the track may have of a set, with what its kin are: tasks that ask the same or are of the same seed
-- Kin are found by prompt and by group, over all sets. A task that is a group by itself has its name as group,
-- which says nothing of a task of that name elsewhere: of such two neither counts for the other.
-- Windows, not joins: of a table that was just filled the planner expects one row, and would go through all for each.
WITH past AS MATERIALIZED (
    SELECT rt.task_id, bool_or(rt.role = 'train') AS taught, bool_or(rt.role <> 'train') AS judged
    FROM round_tasks rt JOIN rounds r ON r.id = rt.round_id
    WHERE r.track = %(track)s
    GROUP BY rt.task_id
), known AS MATERIALIZED (
    SELECT t.id, t.task_set, t.sha256, t.prompt_sha256, t.task_group, t.split, t.retired_at, t.excluded,
           t.task_group <> t.name AS is_made, t.split <> 'train' AS tests,
           coalesce(p.taught, false) AS taught, coalesce(p.judged, false) AS judged
    FROM tasks t LEFT JOIN past p ON p.task_id = t.id
), kin AS (
    SELECT *,
           bool_or(tests) OVER prompt AS same_tests, bool_or(taught) OVER prompt AS same_taught,
           bool_or(judged) OVER prompt AS same_judged,
           bool_or(tests) OVER seed AS seed_tests, bool_or(taught) OVER seed AS seed_taught,
           bool_or(judged) OVER seed AS seed_judged,
           bool_or(tests AND is_made) OVER seed AS made_tests, bool_or(taught AND is_made) OVER seed AS made_taught,
           bool_or(judged AND is_made) OVER seed AS made_judged
    FROM known
    WINDOW prompt AS (PARTITION BY prompt_sha256), seed AS (PARTITION BY task_group)
)
SELECT id, sha256, task_group, split,
       same_tests OR made_tests OR (is_made AND seed_tests) AS is_test,
       same_judged OR made_judged OR (is_made AND seed_judged) AS has_judged,
       same_taught OR made_taught OR (is_made AND seed_taught) AS has_taught,
       taught AS is_trained
FROM kin
WHERE task_set = %(task_set)s AND retired_at IS NULL AND excluded IS NULL
ORDER BY sha256;

-- round_tasks --
-- The tasks of a round in order, by role
SELECT rt.role, rt.task_id, t.task_set, t.payload
FROM round_tasks rt JOIN tasks t ON t.id = rt.task_id
WHERE rt.round_id = %(round_id)s
ORDER BY rt.role, rt.position;

-- forget_task_exposures --
-- What an earlier attempt of the round has written down
DELETE FROM task_exposures WHERE round_id = %(round_id)s;

-- Solutions (services/trainer/solutions.py) and episodes for the page of a round

-- solutions_of_tasks --
-- The offered solutions of these tasks, and a row without one for each that has none; locks the tasks
SELECT t.id AS task_id, s.id AS solution_id, s.sha256, s.code
FROM (SELECT id FROM tasks WHERE id = ANY (%(task_ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE) AS t
LEFT JOIN solutions s ON s.task_id = t.id AND s.retired_at IS NULL
ORDER BY t.id, s.id;

-- retire_solutions --
-- Others of their tasks say more
UPDATE solutions SET retired_at = now() WHERE id = ANY (%(solution_ids)s::bigint[]);

-- record_solution --
-- A program that passed; one that was retired is offered again, one that was withdrawn is not
INSERT INTO solutions (task_id, round_id, prompt, code, sha256)
VALUES (%(task_id)s, %(round_id)s, %(prompt)s, %(code)s, %(sha256)s)
ON CONFLICT (task_id, sha256) DO UPDATE SET retired_at = NULL WHERE solutions.code <> '';

-- offered_solutions --
-- Solutions that are not in the track's champion nor in a failed round of it, one of each task first, then by a draw
-- that is another for every round; none of a task that judges anywhere, or that a forgotten round wrote
SELECT s.id AS solution_id, t.sha256 AS task, s.sha256
FROM (SELECT *, row_number() OVER (PARTITION BY task_id ORDER BY octet_length(code), id) AS of_task
      FROM solutions WHERE retired_at IS NULL) AS s
JOIN tasks t ON t.id = s.task_id AND t.split = 'train' AND t.retired_at IS NULL AND t.excluded IS NULL
WHERE t.prompt_sha256 <> ALL (%(barred)s::bytea[])
  AND NOT EXISTS (SELECT FROM tasks o WHERE o.prompt_sha256 = t.prompt_sha256 AND o.split <> 'train')
  AND NOT EXISTS (SELECT FROM rounds r WHERE r.id = s.round_id AND r.withdrawn_by IS NOT NULL)
  AND NOT EXISTS (SELECT FROM round_solutions rs JOIN rounds r ON r.id = rs.round_id
                  WHERE rs.solution_id = s.id AND r.track = %(track)s
                    AND (r.state = 'failed' OR r.id IN (SELECT lineage(%(track)s))))
ORDER BY s.of_task,
         sha256(s.sha256 || convert_to((SELECT count(*) FROM rounds WHERE track = %(track)s)::text, 'UTF8'))
LIMIT %(most)s;

-- round_solutions --
-- The solutions of a round's snapshot, in order
SELECT s.id, encode(t.sha256, 'hex') AS task, encode(s.sha256, 'hex') AS sha256, t.task_set, t.name, s.prompt, s.code
FROM round_solutions rs JOIN solutions s ON s.id = rs.solution_id JOIN tasks t ON t.id = s.task_id
WHERE rs.round_id = %(round_id)s
ORDER BY rs.position;

-- solutions_seen --
-- How often each was in a step
UPDATE round_solutions rs SET seen = n.seen
FROM unnest(%(solution_ids)s::bigint[], %(seen)s::bigint[]) AS n (solution_id, seen)
WHERE rs.round_id = %(round_id)s AND rs.solution_id = n.solution_id;

-- solutions_held --
-- A solution of this task set and round, of all where neither is named, that an open round trains on
SELECT r.track, r.number, s.id AS solution_id
FROM round_solutions rs JOIN rounds r ON r.id = rs.round_id AND r.state = 'open'
JOIN solutions s ON s.id = rs.solution_id JOIN tasks t ON t.id = s.task_id
WHERE (%(task_set)s::text IS NULL OR t.task_set = %(task_set)s)
  AND (%(round_id)s::bigint IS NULL OR s.round_id = %(round_id)s)
LIMIT 1;

-- withdraw_solutions --
-- Their texts go; what names them has their digests
UPDATE solutions s SET prompt = '', code = '', retired_at = coalesce(s.retired_at, now())
FROM tasks t
WHERE t.id = s.task_id AND s.code <> ''
  AND (%(task_set)s::text IS NULL OR t.task_set = %(task_set)s)
  AND (%(round_id)s::bigint IS NULL OR s.round_id = %(round_id)s);

-- drop_episodes --
-- Of a round's episodes the first and this iteration's stay, and this one's are written anew
DELETE FROM round_episodes
WHERE round_id = %(round_id)s
  AND (iteration >= %(iteration)s
       OR iteration > (SELECT min(iteration) FROM round_episodes WHERE round_id = %(round_id)s));

-- record_episode --
-- What the agents of an episode wrote, cut
INSERT INTO round_episodes (round_id, iteration, number, task_id, prompt, turns, reward, solved, result)
VALUES (%(round_id)s, %(iteration)s, %(number)s, %(task_id)s, %(prompt)s, %(turns)s, %(reward)s, %(solved)s,
        %(result)s);
