-- beat --
-- Say that a service instance lives, and what it is doing
INSERT INTO heartbeats (service, instance, state, detail)
VALUES (%(service)s, %(instance)s, %(state)s, %(detail)s)
ON CONFLICT (service, instance) DO UPDATE
SET state = excluded.state, detail = excluded.detail, beat_at = now();

-- end_beats --
-- Forget an instance that stops in good order, and those silent for an hour
DELETE FROM heartbeats
WHERE (service = %(service)s AND instance = %(instance)s) OR beat_at < now() - interval '1 hour';
