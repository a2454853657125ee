-- last_beat_of_host --
-- The last heartbeat that a service sent from one host, for that container's healthcheck
SELECT state, detail ->> 'message' AS message, extract(epoch FROM now() - beat_at)::float8 AS age_s
FROM heartbeats
WHERE service = %(service)s AND split_part(instance, ':', 1) = %(host)s
ORDER BY beat_at DESC
LIMIT 1;
