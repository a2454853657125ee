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
