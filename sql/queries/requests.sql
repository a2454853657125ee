-- ask --
-- A new request, or the same one asked before with this key; null: the key stands for another request
SELECT ask(%(kind)s, %(track)s, %(payload)s, %(actor)s, %(key)s);

-- request --
-- One request, and until when a trainer may take it up
SELECT id, kind, track, payload, actor, asked_at, state, message, done_at, asked_at + interval '1 hour' AS expires_at
FROM requests WHERE id = %(request)s;

-- requests_before --
-- Requests, the newest first, of one track or state if asked
SELECT id, kind, track, payload, actor, asked_at, state, message, done_at, asked_at + interval '1 hour' AS expires_at
FROM requests
WHERE id < %(before)s
  AND (%(track)s::text IS NULL OR track = %(track)s)
  AND (%(state)s::text IS NULL OR state = %(state)s)
ORDER BY id DESC
LIMIT %(limit)s;

-- waiting_requests --
-- What waits for the trainer of a track, the oldest first, and whether it has waited too long
SELECT id, kind, payload, actor, asked_at < clock_timestamp() - interval '1 hour' AS expired
FROM requests WHERE track = %(track)s AND state = 'waiting'
ORDER BY id;

-- expire_requests --
-- Refuse what nobody took up in time
SELECT expire_requests();

-- answer_request --
-- The one answer; no row when there is one already
UPDATE requests SET state = %(state)s, message = %(message)s, done_at = clock_timestamp()
WHERE id = %(request)s AND state = 'waiting'
RETURNING id;

-- pause_of_track --
-- Since when the track is paused, by whom and why; no row when it is not
SELECT paused_at AS since, paused_by AS actor, pause_reason AS reason
FROM tracks WHERE name = %(track)s AND paused_at IS NOT NULL;

-- pause_track --
-- No new round of the track from now on; no row when it is paused already
UPDATE tracks SET paused_at = now(), paused_by = %(actor)s, pause_reason = %(reason)s
WHERE name = %(track)s AND paused_at IS NULL
RETURNING name;

-- resume_track --
-- Rounds of the track may begin again; no row when it was not paused
UPDATE tracks SET paused_at = NULL, paused_by = NULL, pause_reason = NULL
WHERE name = %(track)s AND paused_at IS NOT NULL
RETURNING name;

-- has_track --
-- Whether there is such a track, and some that there are
SELECT EXISTS (SELECT FROM tracks WHERE name = %(track)s) AS is_there,
       ARRAY(SELECT name FROM tracks ORDER BY name LIMIT 20) AS names;
