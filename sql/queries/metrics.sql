-- metrics_read_only --
-- One consistent view of the database for the whole transaction, which may write nothing
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- metrics_patience --
-- How long each query of this transaction may take
SELECT set_config('statement_timeout', %(milliseconds)s::text, true);

-- metrics_beats --
-- Every service instance and its age in seconds by the database's own clock, newest first
SELECT service, instance, state, detail, started_at, beat_at,
       greatest(0, extract(epoch FROM clock_timestamp() - beat_at))::float8 AS age_seconds
FROM heartbeats
ORDER BY beat_at DESC, service, instance;

-- metrics_contents --
-- Contents by language and score decade (100 is a decade of its own): one pass over the table
SELECT language, score / 10 AS decade, count(*) AS contents, sum(bytes)::bigint AS bytes,
       sum(score)::bigint AS score_sum,
       count(*) FILTER (WHERE score >= %(quality_threshold)s) AS above_threshold
FROM contents
GROUP BY language, decade
ORDER BY language, decade;

-- metrics_files --
-- Files now in the ingest volume by the reason of their rejection; null for the accepted
SELECT reason, count(*) AS files
FROM files
WHERE retired_at IS NULL
GROUP BY reason
ORDER BY files DESC, reason;

-- metrics_sources --
-- How many sources there are, and when one was last walked
SELECT count(*) AS sources, max(last_scanned_at) AS last_scanned_at FROM sources;

-- metrics_tracks --
-- Every track with its champion, lease, totals of its closed rounds; the one in use first
SELECT t.name, t.recipe, t.lease_holder, t.lease_expires_at,
       coalesce(t.lease_expires_at > now(), false) AS lease_held,
       champion.directory AS champion_directory, champion.round AS champion_round,
       champion.promoted_at, champion.reason AS promotion_reason,
       totals.promoted, totals.refused, totals.failed, totals.last_closed_at,
       totals.samples, totals.tokens, totals.seconds,
       (SELECT count(*) FROM backlog b
        WHERE b.track = t.name AND b.is_new AND b.score >= %(quality_threshold)s) AS new_contents,
       (SELECT count(*) FROM trained WHERE track = t.name) AS trained_contents,
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
    SELECT a.directory, r.number AS round, c.promoted_at, c.reason
    FROM champions c JOIN adapters a ON a.id = c.adapter_id JOIN rounds r ON r.id = a.round_id
    WHERE c.track = t.name) champion ON true
ORDER BY t.lease_expires_at DESC NULLS LAST, t.created_at DESC, t.name;

-- metrics_rounds --
-- The newest rounds, with the size of each snapshot, the adapter and the verdict
SELECT r.id, r.track, r.number, r.state, r.attempts, r.opened_at, r.closed_at, r.training, r.verdict,
       a.directory AS adapter, parent.directory AS parent,
       snapshot.train, snapshot.validation, snapshot.held_out
FROM rounds r
LEFT JOIN adapters a ON a.round_id = r.id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE role = 'train') AS train,
           count(*) FILTER (WHERE role = 'validation') AS validation,
           count(*) FILTER (WHERE role = 'held_out') AS held_out
    FROM round_contents WHERE round_id = r.id) snapshot
ORDER BY r.state = 'open' DESC, r.id DESC
LIMIT %(limit)s;

-- metrics_curve --
-- What a round logged, thinned evenly to about `points` rows of each kind; the last is always there
SELECT kind, step, metrics, logged_at
FROM (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY step) AS n,
             count(*) OVER (PARTITION BY kind) AS total
      FROM progress WHERE round_id = %(round_id)s) numbered
WHERE mod(n - 1, greatest(1, ceil(total::numeric / %(points)s)::bigint)) = 0 OR n = total
ORDER BY kind, step;

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
-- Refused files now in the ingest volume, of one reason or source if asked, in the order they came
SELECT f.id, s.name AS source, f.path, f.language, f.reason, f.detail, f.seen_at
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.reason IS NOT NULL AND f.retired_at IS NULL AND f.id > %(after)s
  AND (%(reason)s::text IS NULL OR f.reason = %(reason)s)
  AND (%(source)s::text IS NULL OR f.source_id = (SELECT id FROM sources WHERE name = %(source)s))
ORDER BY f.id
LIMIT %(limit)s;

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
       r.verdict ->> 'reason' AS reason, r.verdict -> 'improvement' AS improvement
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
       r.verdict ->> 'reason' AS reason, r.verdict -> 'improvement' AS improvement,
       r.training, r.verdict, r.held_out, r.recipe
FROM rounds r
LEFT JOIN adapters a ON a.round_id = r.id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
WHERE r.track = %(track)s AND r.number = %(number)s;

-- api_composition --
-- How many contents a round has in which role
SELECT role, count(*) AS contents FROM round_contents WHERE round_id = %(round_id)s GROUP BY role;

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
       r.verdict -> 'improvement' AS improvement
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
