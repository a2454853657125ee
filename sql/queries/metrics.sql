-- metrics_read_only --
-- One consistent view of the database for the whole transaction, which may write nothing
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- metrics_patience --
-- How long each query of this transaction may take
SELECT set_config('statement_timeout', %(milliseconds)s::text, true);

-- metrics_beats --
-- Every service instance and its age in seconds by the database's own clock, newest first
SELECT service, instance, state, detail, started_at, beat_at,
       greatest(0, extract(epoch FROM clock_timestamp() - beat_at))::float8 AS age_seconds,
       greatest(0, extract(epoch FROM clock_timestamp() - started_at))::float8 AS up_seconds
FROM heartbeats
ORDER BY beat_at DESC, service, instance;

-- metrics_departures --
-- Who left in good order, and how many seconds ago
SELECT service, track, greatest(0, extract(epoch FROM clock_timestamp() - left_at))::float8 AS age_seconds
FROM departures;

-- metrics_paused --
-- Tracks in which no new round begins
SELECT name FROM tracks WHERE paused_at IS NOT NULL;

-- metrics_contents --
-- Contents that were ever stored, by language and score decade (100 is a decade of its own)
SELECT language, score / 10 AS decade, sum(stored)::bigint AS contents, sum(stored_bytes)::bigint AS bytes,
       sum(score * stored)::bigint AS score_sum,
       coalesce(sum(stored) FILTER (WHERE score >= %(quality_threshold)s), 0)::bigint AS above_threshold
FROM score_histogram
WHERE stored > 0
GROUP BY language, decade
ORDER BY language, decade;

-- metrics_counts --
-- Of each track: contents that no round had yet, and those it was trained on; goes through the entries of both
SELECT t.name AS track,
       (SELECT count(*) FROM backlog b
        WHERE b.track = t.name AND b.is_new AND b.score >= %(quality_threshold)s) AS new_contents,
       (SELECT count(*) FROM trained WHERE track = t.name) AS trained_contents
FROM tracks t;

-- metrics_files --
-- Files now in the ingest volume by the reason of their rejection; null for the accepted
SELECT nullif(reason, '') AS reason, sum(files)::bigint AS files
FROM file_counts
GROUP BY reason HAVING sum(files) > 0
ORDER BY files DESC, reason;

-- metrics_sources --
-- How many sources there are, and when one was last walked
SELECT count(*) AS sources, max(last_scanned_at) AS last_scanned_at FROM sources;

-- metrics_tracks --
-- Every track with its champion, lease, totals of its closed rounds; the one in use first
SELECT t.name, t.recipe, t.lease_holder, t.lease_expires_at,
       t.paused_at IS NOT NULL AS paused, t.paused_at, t.paused_by, t.pause_reason,
       coalesce(t.lease_expires_at > now(), false) AS lease_held,
       champion.directory AS champion_directory, champion.round AS champion_round,
       champion.promoted_at, champion.reason AS promotion_reason, champion.bits_per_byte AS champion_bits,
       champion.pass_rates AS champion_rates,
       totals.promoted, totals.refused, totals.failed, totals.last_closed_at,
       totals.samples, totals.tokens, totals.seconds,
       (SELECT max(content_id) FROM trained WHERE track = t.name) AS last_trained_id
FROM tracks t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'promoted') AS promoted,
           count(*) FILTER (WHERE state = 'refused') AS refused,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           max(closed_at) AS last_closed_at,
           coalesce(sum((training ->> 'samples')::numeric), 0)::bigint AS samples,
           coalesce(sum((training ->> 'tokens')::numeric), 0)::bigint AS tokens,
           coalesce(sum((training ->> 'seconds')::numeric), 0)::float8 AS seconds
    FROM rounds WHERE track = t.name AND state <> 'open') totals
LEFT JOIN LATERAL (
    SELECT a.directory, r.number AS round, c.promoted_at, c.reason, r.verdict -> 'bits_per_byte' AS bits_per_byte,
           r.verdict -> 'pass_rates' AS pass_rates
    FROM champions c JOIN adapters a ON a.id = c.adapter_id JOIN rounds r ON r.id = a.round_id
    WHERE c.track = t.name) champion ON true
ORDER BY t.lease_expires_at DESC NULLS LAST, t.created_at DESC, t.name;

-- metrics_rounds --
-- The newest rounds, with the adapter and the verdict
SELECT r.id, r.track, r.number, r.state, r.attempts, r.opened_at, r.closed_at, r.training, r.verdict,
       r.recipe ->> 'objective' AS objective, a.directory AS adapter, parent.directory AS parent
FROM rounds r
LEFT JOIN adapters a ON a.round_id = r.id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
ORDER BY r.state = 'open' DESC, r.id DESC
LIMIT %(limit)s;

-- metrics_compositions --
-- How many contents these rounds have in each role: written once, with the round
SELECT asked.id,
       count(*) FILTER (WHERE role = 'train') AS train,
       count(*) FILTER (WHERE role = 'validation') AS validation,
       count(*) FILTER (WHERE role = 'held_out') AS held_out
FROM unnest(%(round_ids)s::bigint[]) AS asked (id) LEFT JOIN round_contents rc ON rc.round_id = asked.id
GROUP BY asked.id;

-- metrics_curve --
-- What a round logged: of each kind all, or where there is more than `points`, the rows at as many even steps, by
-- index, with the first and the last
SELECT p.kind, p.step, p.metrics, p.logged_at
FROM unnest(ARRAY['train', 'eval']) AS of (kind)
CROSS JOIN LATERAL (SELECT min(step) AS first, max(step) AS last FROM progress
                    WHERE round_id = %(round_id)s AND kind = of.kind) ends
CROSS JOIN LATERAL (SELECT count(*) > %(points)s AS too_many
                    FROM (SELECT FROM progress WHERE round_id = %(round_id)s AND kind = of.kind
                          ORDER BY step LIMIT %(points)s + 1) begun) size
CROSS JOIN LATERAL (
    (SELECT step FROM progress WHERE NOT too_many AND round_id = %(round_id)s AND kind = of.kind
     ORDER BY step LIMIT %(points)s)
    UNION ALL
    SELECT DISTINCT step FROM generate_series(0, %(points)s) AS at
    CROSS JOIN LATERAL (SELECT step FROM progress
                        WHERE too_many AND round_id = %(round_id)s AND kind = of.kind
                          AND step >= (first + (last - first)::bigint * at / %(points)s)::integer
                        ORDER BY step LIMIT 1) AS next) AS chosen
CROSS JOIN LATERAL (SELECT * FROM progress  -- one after the other
                    WHERE round_id = %(round_id)s AND kind = of.kind AND step = chosen.step OFFSET 0) AS p
ORDER BY p.kind, p.step;

-- metrics_happenings --
-- What was decided last, the newest first: moves of champions, refusals, failures, stalls; not what was only begun
SELECT id, kind, track, round_number, adapter, payload, at
FROM (SELECT * FROM events ORDER BY id DESC LIMIT 200) newest
WHERE kind <> 'round.started' AND kind NOT LIKE 'request.%%'
ORDER BY id DESC
LIMIT %(limit)s;

-- metrics_suites --
-- What base and candidate of these rounds scored in each suite, the oldest first
SELECT r.track, r.number AS round, r.state, s.suite, s.version, s.subject, s.figures
FROM suite_reports s JOIN rounds r ON r.id = s.round_id
WHERE s.round_id = ANY(%(round_ids)s) AND s.subject IN ('base', 'candidate')
ORDER BY r.id, s.suite, s.subject;

-- metrics_stalls --
-- Services that are ill, since when they were first found so
SELECT service, nullif(track, '') AS track, suspected_at FROM stalls ORDER BY suspected_at;

-- The API under /api/v1. Lists ask for one row more than they show, and go on from a key: docs/reference/api.md

-- api_patience --
-- How long each query of this transaction may take; read only
SELECT set_config('statement_timeout', %(milliseconds)s::text, true),
       set_config('transaction_read_only', 'on', true);

-- api_sources --
-- Sources by name
SELECT id, name, kind, commit_id, licence, problem, first_seen_at, last_scanned_at
FROM sources
WHERE id > %(after)s
ORDER BY id
LIMIT %(limit)s;

-- api_rejections --
-- Refused files now in the ingest volume, of one reason, of one source or of both if asked, in the order they came.
-- Of a source each reason's own list is begun, so that none is gone through for what is rare in it
SELECT f.id, s.name AS source, f.path, f.language, f.reason, f.detail, f.seen_at,
       encode(c.sha256, 'hex') AS duplicate_of
FROM (
    (SELECT id FROM files
     WHERE %(source)s::text IS NULL AND reason IS NOT NULL AND retired_at IS NULL AND id > %(after)s
       AND (%(reason)s::text IS NULL OR reason = %(reason)s)
     ORDER BY id LIMIT %(limit)s)
    UNION ALL
    (SELECT listed.id FROM (
        SELECT DISTINCT source_id, reason FROM file_counts
        WHERE source_id = (SELECT id FROM sources WHERE name = %(source)s::text) AND reason <> '' AND files > 0
          AND (%(reason)s::text IS NULL OR reason = %(reason)s)) AS counted
     CROSS JOIN LATERAL (
        SELECT id FROM files
        WHERE source_id = counted.source_id AND reason = counted.reason AND retired_at IS NULL AND id > %(after)s
        ORDER BY id LIMIT %(limit)s) listed)
    ORDER BY id LIMIT %(limit)s
) page
JOIN files f ON f.id = page.id
JOIN sources s ON s.id = f.source_id
LEFT JOIN contents c ON c.id = f.duplicate_of
ORDER BY f.id;

-- api_contents --
-- Contents, the best first, of one language or above a score if asked
SELECT id, encode(sha256, 'hex') AS sha256, language, score, bytes, lines, licence, live, created_at
FROM contents
WHERE score BETWEEN %(min_score)s AND %(max_score)s
  AND (score < %(after_score)s OR (score = %(after_score)s AND id > %(after_id)s))
  AND (%(language)s::text IS NULL OR language = %(language)s)
ORDER BY score DESC, id
LIMIT %(limit)s;

-- api_content --
-- One content by its hash
SELECT id, encode(sha256, 'hex') AS sha256, language, score, bytes, lines, licence, live, created_at,
       score_reasons, scorer_version, redactions
FROM contents WHERE sha256 = decode(%(sha256)s, 'hex');

-- api_places --
-- Where a content is or was
SELECT s.name AS source, f.path, f.retired_at
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.content_id = %(content_id)s AND f.retired_at IS NULL
ORDER BY s.name, f.path
LIMIT 100;

-- api_units --
-- The named spans of a content
SELECT kind, name, start_line, end_line FROM units WHERE content_id = %(content_id)s ORDER BY ordinal LIMIT 1000;

-- api_uses --
-- The rounds that had a content
SELECT r.track, r.number AS round, rc.role
FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
WHERE rc.content_id = %(content_id)s
ORDER BY r.id DESC
LIMIT 100;

-- api_rounds --
-- Rounds, the newest first, of one track or state if asked
SELECT r.id, r.track, r.number, r.state, r.attempts, r.opened_at, r.closed_at,
       parent.directory AS parent, a.directory AS adapter,
       r.verdict ->> 'reason' AS reason, r.verdict -> 'improvement' AS improvement, r.recipe ->> 'objective' AS objective
FROM rounds r
LEFT JOIN adapters a ON a.round_id = r.id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
WHERE r.id < %(after)s
  AND (%(track)s::text IS NULL OR r.track = %(track)s)
  AND (%(state)s::text IS NULL OR r.state = %(state)s)
ORDER BY r.id DESC
LIMIT %(limit)s;

-- api_round --
-- One round with its recipe, figures and verdict
SELECT r.id, r.track, r.number, r.state, r.attempts, r.opened_at, r.closed_at,
       parent.directory AS parent, a.directory AS adapter,
       r.verdict ->> 'reason' AS reason, r.verdict -> 'improvement' AS improvement, r.recipe ->> 'objective' AS objective,
       r.training, r.verdict, r.held_out, r.recipe
FROM rounds r
LEFT JOIN adapters a ON a.round_id = r.id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
WHERE r.track = %(track)s AND r.number = %(number)s;

-- api_composition --
-- How many contents a round has in which role
SELECT role, count(*) AS contents FROM round_contents WHERE round_id = %(round_id)s GROUP BY role;

-- api_round_tasks --
-- How many tasks a round has in which role, of each task set
SELECT rt.role, t.task_set, count(*) AS tasks
FROM round_tasks rt JOIN tasks t ON t.id = rt.task_id
WHERE rt.round_id = %(round_id)s
GROUP BY rt.role, t.task_set ORDER BY rt.role, t.task_set;

-- api_solutions --
-- How many programs of reinforcement rounds a round trains on
SELECT count(*) AS solutions FROM round_solutions WHERE round_id = %(round_id)s;

-- api_held_out --
-- What base, champion and candidate of a round made of the held-out files
SELECT subject, count(*) AS files, sum(bytes)::bigint AS bytes, sum(tokens)::bigint AS tokens,
       sum(nats) / ln(2) / sum(bytes) AS bits_per_byte
FROM evaluations WHERE round_id = %(round_id)s
GROUP BY subject ORDER BY subject;

-- api_suites --
-- What base, champion and candidate of a round scored in the suites
SELECT subject, suite, version, items, figures, seconds
FROM suite_reports WHERE round_id = %(round_id)s
ORDER BY suite, subject;

-- api_adapters --
-- Published adapters, the newest first, of one track if asked
SELECT a.id, a.track, a.directory, r.number AS round, parent.directory AS parent, a.published_at,
       coalesce(c.adapter_id = a.id, false) AS champion,
       EXISTS (SELECT FROM promotions p WHERE p.adapter_id = a.id AND p.kind = 'rejected') AS rejected,
       a.manifest -> 'roles' AS roles, r.verdict -> 'improvement' AS improvement
FROM adapters a
JOIN rounds r ON r.id = a.round_id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
LEFT JOIN champions c ON c.track = a.track
WHERE a.id < %(after)s AND (%(track)s::text IS NULL OR a.track = %(track)s)
ORDER BY a.id DESC
LIMIT %(limit)s;

-- api_promotions --
-- Moves of champions, the newest first, of one track if asked
SELECT p.id, p.track, p.kind, a.directory AS adapter, p.actor, p.reason, p.promoted_at
FROM promotions p LEFT JOIN adapters a ON a.id = p.adapter_id
WHERE p.id < %(after)s AND (%(track)s::text IS NULL OR p.track = %(track)s)
ORDER BY p.id DESC
LIMIT %(limit)s;

-- api_events --
-- Events in the order of their commits, of one kind or track if asked
SELECT id, kind, track, round_number, adapter, payload, at
FROM events
WHERE id > %(after)s
  AND (%(kind)s::text IS NULL OR kind = %(kind)s)
  AND (%(track)s::text IS NULL OR track = %(track)s)
ORDER BY id
LIMIT %(limit)s;

-- What an operator watches: services/metrics/operations.py

-- operations_database --
-- The size of the database, and the migration it is at
SELECT pg_database_size(current_database()) AS bytes, (SELECT max(version) FROM schema_migrations) AS migration;

-- operations_waiting --
-- Files that were found and are to be read
SELECT coalesce(sum(files), 0)::bigint AS files FROM claims;

-- operations_newest_content --
-- When the newest text was stored
SELECT created_at FROM contents ORDER BY id DESC LIMIT 1;

-- operations_backlog --
-- Since when the oldest of a track's new contents waits, among its 10,000 best at most
SELECT t.name AS track, c.created_at AS oldest
FROM tracks t
CROSS JOIN LATERAL (
    SELECT min(content_id) AS content_id
    FROM (SELECT content_id FROM backlog b
          WHERE b.track = t.name AND b.is_new AND b.score >= %(quality_threshold)s
          ORDER BY b.score DESC LIMIT 10000) best) first
JOIN contents c ON c.id = first.content_id;

-- operations_tracks --
-- Of each track: whether it is paused, its last closed, trained and judged round, its champion's parity
SELECT t.name AS track, t.paused_at IS NOT NULL AS paused,
       closed.number AS round, closed.seconds, trained.training, judged.verdict, champion.parity
FROM tracks t
LEFT JOIN LATERAL (
    SELECT r.number, extract(epoch FROM r.closed_at - r.opened_at)::float8 AS seconds
    FROM rounds r WHERE r.track = t.name AND r.state <> 'open'
    ORDER BY r.number DESC LIMIT 1) closed ON true
LEFT JOIN LATERAL (
    SELECT jsonb_build_object('train_loss', r.training -> 'train_loss', 'eval_loss', r.training -> 'eval_loss') AS training
    FROM rounds r WHERE r.track = t.name AND r.state <> 'open' AND jsonb_typeof(r.training) = 'object'
    ORDER BY r.number DESC LIMIT 1) trained ON true
LEFT JOIN LATERAL (
    SELECT jsonb_build_object(
               'bits_per_byte', r.verdict -> 'bits_per_byte', 'pass_rates', r.verdict -> 'pass_rates',
               'improvement', r.verdict -> 'improvement',
               'planted', CASE WHEN jsonb_typeof(r.verdict -> 'planted') = 'object'
                               THEN (r.verdict -> 'planted') - 'secrets' END) AS verdict
    FROM rounds r WHERE r.track = t.name AND r.state <> 'open' AND jsonb_typeof(r.verdict -> 'bits_per_byte') = 'object'
    ORDER BY r.number DESC LIMIT 1) judged ON true
LEFT JOIN LATERAL (
    SELECT a.parity FROM champions c JOIN adapters a ON a.id = c.adapter_id WHERE c.track = t.name) champion ON true
ORDER BY t.name;

-- operations_practice --
-- Of each track in which a team practises: its newest round that has logged anything, with the last of what it logged
SELECT t.name AS track, r.number AS round, r.state = 'open' AS running, train.metrics, eval.metrics AS evaluated
FROM tracks t
CROSS JOIN LATERAL (
    SELECT id, number, state FROM rounds r
    WHERE r.track = t.name AND EXISTS (SELECT FROM progress WHERE round_id = r.id)
    ORDER BY number DESC LIMIT 1) r
LEFT JOIN LATERAL (
    SELECT metrics FROM progress WHERE round_id = r.id AND kind = 'train' ORDER BY step DESC LIMIT 1) train ON true
LEFT JOIN LATERAL (
    SELECT metrics FROM progress WHERE round_id = r.id AND kind = 'eval' ORDER BY step DESC LIMIT 1) eval ON true
WHERE t.recipe ->> 'objective' = 'reinforcement'
ORDER BY t.name;

-- operations_moves --
-- Moves of champions by kind, and when the last was made
SELECT track, kind, count(*) AS moves, max(promoted_at) AS last_at
FROM promotions GROUP BY track, kind ORDER BY track, kind;

-- operations_events --
-- Events by kind
SELECT kind, count(*) AS events FROM events GROUP BY kind ORDER BY kind;

-- operations_deliveries --
-- What became of the messages to each endpoint
SELECT e.name AS endpoint, e.disabled_at IS NOT NULL AS disabled,
       count(*) FILTER (WHERE d.state = 'delivered') AS delivered,
       count(*) FILTER (WHERE d.state = 'given_up') AS given_up,
       count(*) FILTER (WHERE d.state = 'due') AS due
FROM webhook_endpoints e LEFT JOIN deliveries d ON d.endpoint = e.name
GROUP BY e.name ORDER BY e.name;

-- operations_requests --
-- What people asked of trainers, by what became of it
SELECT kind, state, count(*) AS requests FROM requests GROUP BY kind, state ORDER BY kind, state;

-- operations_forgotten --
-- What was taken back: how often, what is barred now, and the adapters that still know of it
SELECT (SELECT count(*) FROM forgettings) AS forgettings,
       (SELECT count(*) FROM forgettings WHERE state <> 'done') AS unfinished,
       (SELECT count(DISTINCT source) FROM forgettings WHERE path = '' AND remembered_at IS NULL) AS sources,
       (SELECT count(DISTINCT content_id) FROM forgotten_contents) AS contents,
       (SELECT count(*) FROM taints) AS adapters;

-- operations_stalls --
-- Services that were told to be ill and are still
SELECT service, track FROM stalls WHERE told_at IS NOT NULL ORDER BY service, track;

-- The pages of rounds and adapters. Each list is as long as it says, whatever the tables hold.

-- page_tracks --
-- Every track, the one in use first, with its champion and how many rounds it has had
SELECT t.name, champion.directory AS champion, c.kind IS NOT NULL AS had_champion, c.promoted_at,
       (SELECT number FROM rounds WHERE track = t.name ORDER BY number DESC LIMIT 1) AS last_round
FROM tracks t
LEFT JOIN champions c ON c.track = t.name
LEFT JOIN adapters champion ON champion.id = c.adapter_id
ORDER BY t.lease_expires_at DESC NULLS LAST, t.created_at DESC, t.name
LIMIT %(limit)s;

-- page_timeline --
-- The newest rounds of each of these tracks, oldest first
SELECT r.track, r.number, r.state, r.opened_at, r.closed_at, r.withdrawn_by
FROM unnest(%(tracks)s::text[]) AS of (track)
CROSS JOIN LATERAL (SELECT * FROM rounds WHERE track = of.track ORDER BY number DESC LIMIT %(limit)s) AS r
ORDER BY r.track, r.number;

-- page_rounds --
-- A page of the table of rounds, the newest first, of one track or state if asked
SELECT r.id, r.track, r.number, r.state, r.attempts, r.opened_at, r.closed_at, r.withdrawn_by,
       r.verdict ->> 'reason' AS reason, r.verdict -> 'improvement' AS improvement,
       r.verdict ->> 'against' AS against, r.verdict -> 'bits_per_byte' AS bits,
       r.verdict ->> 'metric' AS metric, r.verdict -> 'pass_rates' AS rates, r.recipe ->> 'objective' AS objective,
       r.training -> 'steps' AS steps, r.training -> 'tokens' AS tokens, a.directory AS adapter
FROM rounds r
LEFT JOIN adapters a ON a.round_id = r.id
WHERE r.id < %(after)s
  AND (%(track)s::text IS NULL OR r.track = %(track)s)
  AND (%(state)s::text IS NULL OR r.state = %(state)s)
ORDER BY r.id DESC
LIMIT %(limit)s;

-- page_round --
-- One round with all that its page says, and its neighbours in the track
SELECT r.id, r.track, r.number, r.state, r.attempts, r.opened_at, r.closed_at, r.withdrawn_by, r.snapshot_hash,
       r.training, r.verdict, r.held_out, r.recipe, parent.directory AS parent,
       a.directory AS adapter, a.canary, a.parity,
       before.number AS before, before.recipe AS recipe_before, behind.number AS behind
FROM rounds r
LEFT JOIN adapters a ON a.round_id = r.id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
LEFT JOIN LATERAL (SELECT number, recipe FROM rounds
                   WHERE track = r.track AND number < r.number ORDER BY number DESC LIMIT 1) AS before ON true
LEFT JOIN LATERAL (SELECT number FROM rounds
                   WHERE track = r.track AND number > r.number ORDER BY number LIMIT 1) AS behind ON true
WHERE r.track = %(track)s AND r.number = %(number)s;

-- page_beat --
-- What the trainer of a track said last
SELECT state, detail, greatest(0, extract(epoch FROM clock_timestamp() - beat_at))::float8 AS age_seconds
FROM heartbeats
WHERE service = 'trainer' AND detail ->> 'track' = %(track)s
ORDER BY detail ->> 'round' IS NULL, beat_at DESC
LIMIT 1;

-- page_composition --
-- Languages and sources of a round's contents by role: of `most` of a role at most, evenly drawn by position
SELECT r.role, r.last + 1 AS of_role, r.stride, c.language, rc.source, count(*) AS contents
FROM (SELECT name AS role, last, greatest(1, ceil((last + 1)::numeric / %(most)s))::integer AS stride
      FROM unnest(ARRAY['train', 'replay', 'held_out', 'validation']) AS name
      CROSS JOIN LATERAL (SELECT max(position) AS last FROM round_contents
                          WHERE round_id = %(round_id)s AND role = name) AS farthest
      WHERE last IS NOT NULL) AS r
CROSS JOIN LATERAL generate_series(0, r.last, r.stride) AS at
CROSS JOIN LATERAL (SELECT content_id, source FROM round_contents  -- by index, one after the other
                    WHERE round_id = %(round_id)s AND role = r.role AND position = at OFFSET 0) AS rc
JOIN contents c ON c.id = rc.content_id
GROUP BY r.role, r.last, r.stride, c.language, rc.source;

-- page_samples --
-- Samples of a round as the model saw them, with where their first content lay
SELECT s.number, s.kind, s.tokens, s.learned, s.runs, cardinality(s.contents) AS contents,
       rc.source, rc.path, encode(c.sha256, 'hex') AS sha256
FROM round_samples s
LEFT JOIN round_contents rc ON rc.round_id = s.round_id AND rc.content_id = s.contents[1]
LEFT JOIN contents c ON c.id = s.contents[1]
WHERE s.round_id = %(round_id)s
ORDER BY s.number;

-- page_practice --
-- How often a round's published weights had practised its tasks, and how many of these were ever solved
SELECT count(*) AS tasks, count(*) FILTER (WHERE episodes > 0) AS practised, count(*) FILTER (WHERE solved > 0) AS solved,
       sum(episodes)::bigint AS episodes, sum(tokens)::bigint AS tokens
FROM task_exposures WHERE round_id = %(round_id)s;

-- page_episodes --
-- Some episodes of a round as its agents wrote them, the latest iteration first
SELECT e.iteration, e.number, t.task_set, t.name, e.prompt, e.turns, e.reward, e.solved, e.result
FROM round_episodes e JOIN tasks t ON t.id = e.task_id
WHERE e.round_id = %(round_id)s
ORDER BY e.iteration DESC, e.number;

-- page_solutions --
-- Programs of reinforcement rounds in a round's snapshot, the first of them with their texts; of withdrawn ones none
SELECT rs.position + 1 AS number, count(*) OVER () AS solutions, rs.seen, t.task_set, t.name, s.prompt, s.code
FROM round_solutions rs JOIN solutions s ON s.id = rs.solution_id JOIN tasks t ON t.id = s.task_id
WHERE rs.round_id = %(round_id)s
ORDER BY rs.position
LIMIT %(limit)s;

-- page_log --
-- The last lines that a round logged, the last one first
SELECT at, level, line FROM round_log WHERE round_id = %(round_id)s ORDER BY id DESC LIMIT %(limit)s;

-- page_lineage --
-- Adapters of a track and what each continues from, the newest first
SELECT a.id, r.parent_adapter_id AS parent
FROM adapters a JOIN rounds r ON r.id = a.round_id
WHERE a.track = %(track)s
ORDER BY a.id DESC
LIMIT %(limit)s;

-- page_standing --
-- Moves of a track's champion, the newest first
SELECT kind, adapter_id FROM promotions WHERE track = %(track)s ORDER BY id DESC LIMIT %(limit)s;

-- page_moves --
-- Moves of a track's champion to, from or of one adapter, the newest first
SELECT id, kind, actor, reason, promoted_at FROM promotions
WHERE track = %(track)s AND adapter_id = %(adapter_id)s
ORDER BY id DESC
LIMIT %(limit)s;

-- page_adapters --
-- What is said of these adapters in a list
SELECT a.id, a.directory, a.published_at, r.number AS round, r.state, parent.directory AS parent,
       r.verdict -> 'improvement' AS improvement, r.verdict ->> 'against' AS against,
       r.verdict #> '{bits_per_byte,candidate}' AS bits, r.verdict ->> 'metric' AS metric,
       r.verdict #> '{pass_rates,candidate}' AS rate, a.manifest -> 'roles' AS roles, t.policy AS taint,
       a.parity IS NOT NULL AS has_parity, a.canary -> 'passed' AS canary
FROM adapters a
JOIN rounds r ON r.id = a.round_id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
LEFT JOIN taints t ON t.adapter_id = a.id
WHERE a.id = ANY (%(ids)s::bigint[])
ORDER BY a.id DESC;

-- page_adapter --
-- One adapter with its round, manifest and all that was found of it
SELECT a.id, a.track, a.directory, a.published_at, a.receipt, a.canary, a.parity, a.manifest,
       a.round_id, r.number AS round, r.state, r.verdict, r.training, r.recipe, r.held_out,
       parent.directory AS parent, parent.receipt AS parent_receipt, t.policy AS taint, t.forgetting_id
FROM adapters a
JOIN rounds r ON r.id = a.round_id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
LEFT JOIN taints t ON t.adapter_id = a.id
WHERE a.track = %(track)s AND a.directory = %(directory)s;

-- page_children --
-- Adapters that continue from one
SELECT a.directory FROM rounds r JOIN adapters a ON a.round_id = r.id
WHERE r.parent_adapter_id = %(adapter_id)s
ORDER BY a.id
LIMIT %(limit)s;

-- page_exposures --
-- How often a round's steps had what it was to train on
SELECT count(*) AS contents, count(*) FILTER (WHERE seen = 0) AS unseen, sum(seen)::bigint AS seen,
       sum(tokens)::bigint AS tokens
FROM exposures WHERE round_id = %(round_id)s;

-- page_round_sources --
-- The sources of a round's contents as they were then
SELECT name, kind, commit_id, licence FROM round_sources WHERE round_id = %(round_id)s
ORDER BY name LIMIT %(limit)s;

-- page_shared_held_out --
-- What two candidates made of the held-out contents that both were judged by
SELECT count(*) AS files, sum(a.bytes)::bigint AS bytes,
       sum(a.nats) / ln(2) / sum(a.bytes) AS a, sum(b.nats) / ln(2) / sum(b.bytes) AS b,
       count(*) FILTER (WHERE a.nats < b.nats) AS a_better, count(*) FILTER (WHERE b.nats < a.nats) AS b_better
FROM evaluations a JOIN evaluations b USING (content_id, subject, bytes)
WHERE a.round_id = %(a)s AND b.round_id = %(b)s AND a.subject = 'candidate';

-- page_shared_items --
-- Items of suites that two candidates were both measured on
SELECT suite, item, metric, a.name, a.value AS a, b.value AS b, a.weight
FROM suite_scores a JOIN suite_scores b USING (subject, suite, item, metric)
WHERE a.round_id = %(a)s AND b.round_id = %(b)s AND a.subject = 'candidate'
ORDER BY suite, metric, a.name, item
LIMIT %(limit)s;

-- page_answers --
-- What two candidates wrote for these items
SELECT round_id, suite, item, metric, written, answer, results
FROM suite_answers
WHERE round_id IN (%(a)s, %(b)s) AND subject = 'candidate' AND suite = ANY (%(suites)s::text[])
  AND item = ANY (%(items)s::text[]) AND (written IS NOT NULL OR results IS NOT NULL);

-- The pages of ingest. Lists ask for one row more than they show, and go on from a key

-- ingest_counts --
-- Files in the ingest volume now by what became of them ('' is kept) and by language, over all sources
SELECT reason, language, sum(files)::bigint AS files
FROM file_counts GROUP BY reason, language HAVING sum(files) > 0 ORDER BY reason, language;

-- ingest_scores --
-- How many live contents of a language have which score
SELECT language, score, contents FROM score_histogram WHERE contents > 0 ORDER BY language, score;

-- ingest_rates --
-- Files read and judged in each quarter of an hour of the last day, and of the last hour
SELECT date_bin('15 minutes', minute, timestamptz '2000-01-01') AS quarter,
       sum(kept)::bigint AS kept, sum(refused)::bigint AS refused,
       sum(kept + refused) FILTER (WHERE minute > now() - interval '1 hour')::bigint AS last_hour
FROM files_read
WHERE minute > now() - interval '1 day'
GROUP BY quarter ORDER BY quarter;

-- ingest_sources --
-- Sources by their names, with how many files each has now
SELECT s.id, s.name, s.kind, s.commit_id, s.licence, s.problem, s.first_seen_at, s.last_scanned_at,
       counts.kept, counts.refused
FROM sources s
CROSS JOIN LATERAL (
    SELECT coalesce(sum(files) FILTER (WHERE reason = ''), 0)::bigint AS kept,
           coalesce(sum(files) FILTER (WHERE reason <> ''), 0)::bigint AS refused
    FROM file_counts WHERE source_id = s.id) counts
WHERE s.name > %(after)s
ORDER BY s.name
LIMIT %(limit)s;

-- ingest_near_threshold --
-- Some contents on either side of a score, and a file that holds each: what moving the threshold by a little would
-- let in or leave out
SELECT encode(near.sha256, 'hex') AS sha256, near.language, near.score, near.lines, file.path
FROM (
    (SELECT * FROM (SELECT id, sha256, language, score, lines FROM contents
                    WHERE score >= %(threshold)s ORDER BY score, id DESC LIMIT %(limit)s) AS above)
    UNION ALL
    (SELECT * FROM (SELECT id, sha256, language, score, lines FROM contents
                    WHERE score < %(threshold)s ORDER BY score DESC, id LIMIT %(limit)s) AS below)
) near
LEFT JOIN LATERAL (SELECT path FROM files WHERE content_id = near.id AND retired_at IS NULL LIMIT 1) file ON true
ORDER BY near.score DESC, near.id;

-- ingest_source --
-- One source by its name
SELECT id, name, kind, commit_id, licence, problem, first_seen_at, last_scanned_at
FROM sources WHERE name = %(name)s;

-- ingest_source_counts --
-- Files of a source that are there now by what became of them ('' is kept) and by language
SELECT reason, language, files FROM file_counts WHERE source_id = %(source_id)s AND files > 0
ORDER BY files DESC, reason, language;

-- ingest_looks --
-- The newest looks at a source that found something new
SELECT ended_at, seconds, commit_id, kept, refused, unchanged, retired, renamed
FROM looks WHERE source_id = %(source_id)s ORDER BY id DESC LIMIT %(limit)s;

-- ingest_files --
-- Paths of a source in their order, with what each holds
SELECT f.path, f.language, f.reason, f.detail, f.retired_at, encode(c.sha256, 'hex') AS sha256, c.score, c.lines,
       encode(kept.sha256, 'hex') AS duplicate_of
FROM files f LEFT JOIN contents c ON c.id = f.content_id LEFT JOIN contents kept ON kept.id = f.duplicate_of
WHERE f.source_id = %(source_id)s AND f.path > %(after)s
ORDER BY f.path
LIMIT %(limit)s;

-- content_page --
-- One content by its hash, with what its page shows of it besides its text
SELECT c.id, encode(c.sha256, 'hex') AS sha256, c.language, c.score, c.bytes, c.lines, c.licence, c.live,
       c.created_at, c.score_reasons, c.scorer_version, c.redactions, c.cluster_id,
       (SELECT max(f.finished_at) FROM forgotten_contents fc JOIN forgettings f ON f.id = fc.forgetting_id
        WHERE fc.content_id = c.id AND f.remembered_at IS NULL) AS forgotten_at,
       EXISTS (SELECT FROM forgotten_contents fc JOIN forgettings f ON f.id = fc.forgetting_id
               WHERE fc.content_id = c.id AND f.remembered_at IS NULL) AS is_forgotten,
       below.contents AS below, same.contents AS same, total.contents AS total
FROM contents c
CROSS JOIN LATERAL (SELECT coalesce(sum(contents), 0)::bigint AS contents FROM score_histogram h
                    WHERE h.language = c.language AND h.score < c.score) below
CROSS JOIN LATERAL (SELECT coalesce(sum(contents), 0)::bigint AS contents FROM score_histogram h
                    WHERE h.language = c.language AND h.score = c.score) same
CROSS JOIN LATERAL (SELECT coalesce(sum(contents), 0)::bigint AS contents FROM score_histogram h
                    WHERE h.language = c.language) total
WHERE c.sha256 = decode(%(sha256)s, 'hex');

-- content_text --
-- The text of one content; null where it was taken back
SELECT shown_text(%(content_id)s);

-- content_units --
-- The named spans of a content, and where the comment before each begins
SELECT kind, name, start_line, end_line, start_byte, comment_byte
FROM units WHERE content_id = %(content_id)s ORDER BY ordinal LIMIT %(limit)s;

-- content_places --
-- Files that hold a content now
SELECT s.name AS source, f.path, f.changed_at, f.commit_id, f.renamed_from
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.content_id = %(content_id)s AND f.retired_at IS NULL
LIMIT %(limit)s;

-- content_duplicates --
-- Files that were refused since they are nearly the same as it
SELECT s.name AS source, f.path
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.duplicate_of = %(content_id)s AND f.retired_at IS NULL
LIMIT %(limit)s;

-- content_cluster --
-- Other contents that no split parts it from
SELECT encode(sha256, 'hex') AS sha256, language, score, lines, live, created_at
FROM contents WHERE cluster_id = %(cluster_id)s AND id <> %(content_id)s
LIMIT %(limit)s;

-- content_set_aside --
-- Tracks that have set its cluster aside, under any name it had
SELECT h.track, h.role, r.number AS round
FROM held_out_clusters h JOIN rounds r ON r.id = h.round_id
WHERE h.cluster_id IN (SELECT %(cluster_id)s::bigint
                       UNION SELECT cluster_id FROM cluster_merges WHERE merged_into = %(cluster_id)s::bigint)
  AND h.track IN (SELECT name FROM tracks)
ORDER BY h.track;

-- content_uses --
-- The rounds that had a content, the newest first: in what role, how often it was seen, what became of the round
SELECT r.track, r.number AS round, r.state, r.opened_at, rc.role, e.seen, e.tokens,
       a.directory AS adapter, r.withdrawn_by IS NOT NULL AS withdrawn
FROM round_contents rc
JOIN rounds r ON r.id = rc.round_id
LEFT JOIN exposures e ON e.round_id = rc.round_id AND e.content_id = rc.content_id
LEFT JOIN adapters a ON a.round_id = r.id
WHERE rc.content_id = %(content_id)s
ORDER BY r.id DESC
LIMIT %(limit)s;

-- ingest_source_names --
-- Names of sources to choose from
SELECT name FROM sources ORDER BY name LIMIT %(limit)s;
