-- events_after --
-- Events after an id, oldest first: ids grow in the order of commits, so who goes on from the last one misses none
SELECT id, uid, kind, track, round_number, adapter, payload, at
FROM events
WHERE id > %(after)s
  AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[]))
  AND (%(track)s::text IS NULL OR track = %(track)s)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
ORDER BY id
LIMIT %(most)s;

-- newest_events --
-- The last events, newest first
SELECT id, uid, kind, track, round_number, adapter, payload, at
FROM events
WHERE (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[]))
  AND (%(track)s::text IS NULL OR track = %(track)s)
ORDER BY id DESC
LIMIT %(most)s;

-- last_event_id --
-- Where a reader of what comes from now on begins
SELECT coalesce(max(id), 0) FROM events;

-- notice_stalls --
-- Look at the heartbeats, and record what fell ill or is well again
SELECT notice_stalls();

-- keep_endpoint --
-- Say that a sender has this endpoint in its settings, and what it wants; one that is disabled stays so
INSERT INTO webhook_endpoints (name, kinds) VALUES (%(name)s, %(kinds)s)
ON CONFLICT (name) DO UPDATE SET kinds = excluded.kinds, seen_at = now();

-- claim_delivery --
-- A delivery that is due, for so many seconds this sender's alone; no row when none is
UPDATE deliveries d
SET attempts = d.attempts + 1, due_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM events e
WHERE e.id = d.event_id AND d.endpoint = %(endpoint)s
  AND d.event_id = (SELECT event_id FROM deliveries
                    WHERE endpoint = %(endpoint)s AND state = 'due' AND due_at <= clock_timestamp()
                    ORDER BY due_at, event_id
                    LIMIT 1
                    FOR UPDATE SKIP LOCKED)
RETURNING d.attempts, e.id, e.uid, e.kind, e.track, e.round_number, e.adapter, e.payload, e.at;

-- delivered --
-- The endpoint has taken it, whoever else may be trying too
UPDATE deliveries SET state = 'delivered', status = %(status)s, error = NULL, ended_at = now()
WHERE event_id = %(event_id)s AND endpoint = %(endpoint)s AND state = 'due';

-- not_delivered --
-- An attempt failed: due again later, unless another sender has taken it up since
UPDATE deliveries
SET status = %(status)s, error = %(error)s, due_at = clock_timestamp() + make_interval(secs => %(wait)s)
WHERE event_id = %(event_id)s AND endpoint = %(endpoint)s AND state = 'due' AND attempts = %(attempts)s;

-- give_up_delivery --
-- The last attempt failed
UPDATE deliveries SET state = 'given_up', status = %(status)s, error = %(error)s, ended_at = now()
WHERE event_id = %(event_id)s AND endpoint = %(endpoint)s AND state = 'due' AND attempts = %(attempts)s;

-- disable_endpoint --
-- The endpoint wants nothing more
UPDATE webhook_endpoints SET disabled_at = now(), disabled_because = %(reason)s
WHERE name = %(name)s AND disabled_at IS NULL;

-- drop_deliveries --
-- Give up all that an endpoint has not got yet
UPDATE deliveries SET state = 'given_up', error = coalesce(error, %(reason)s), ended_at = now()
WHERE endpoint = %(name)s AND state = 'due';

-- enable_endpoint --
-- The endpoint answers again
UPDATE webhook_endpoints SET disabled_at = NULL, disabled_because = NULL
WHERE name = %(name)s AND disabled_at IS NOT NULL;

-- endpoint_states --
-- Of these endpoints: what they got, what waits, what they said last
SELECT e.name, e.disabled_because, d.delivered, d.due, d.given_up, last.status, last.error
FROM webhook_endpoints e
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'delivered') AS delivered,
           count(*) FILTER (WHERE state = 'due') AS due,
           count(*) FILTER (WHERE state = 'given_up') AS given_up
    FROM deliveries WHERE endpoint = e.name) AS d
LEFT JOIN LATERAL (
    SELECT status, error FROM deliveries WHERE endpoint = e.name AND attempts > 0
    ORDER BY event_id DESC LIMIT 1) AS last ON true
WHERE e.name = ANY (%(names)s::text[])
ORDER BY e.name;
