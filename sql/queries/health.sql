-- beat --
-- Say that a service instance lives, and what it is doing
INSERT INTO heartbeats (service, instance, state, detail)
VALUES (%(service)s, %(instance)s, %(state)s, %(detail)s)
ON CONFLICT (service, instance) DO UPDATE
SET state = excluded.state, detail = excluded.detail, beat_at = now();

-- end_beats --
-- An instance stops in good order: note it, forget it, whom it replaced, and whom another did or nobody in a week
WITH own AS (
    SELECT service, instance, coalesce(detail ->> 'track', '') AS track, started_at, beat_at
    FROM heartbeats WHERE service = %(service)s AND instance = %(instance)s
), gone AS (
    DELETE FROM heartbeats h
    WHERE (h.service = %(service)s AND h.instance = %(instance)s)
       OR EXISTS (SELECT FROM own
                  WHERE own.service = h.service AND own.track = coalesce(h.detail ->> 'track', '')
                    AND (h.beat_at < own.started_at OR h.beat_at < now() - interval '45 s'))
       OR (h.beat_at < now() - interval '1 hour'
           AND EXISTS (SELECT FROM heartbeats later
                       WHERE later.service = h.service AND later.beat_at > h.beat_at
                         AND coalesce(later.detail ->> 'track', '') = coalesce(h.detail ->> 'track', '')))
       OR h.beat_at < now() - interval '7 days'
)
INSERT INTO departures (service, track, instance)
SELECT service, track, instance FROM own
ON CONFLICT (service, track) DO UPDATE SET instance = excluded.instance, left_at = now();
