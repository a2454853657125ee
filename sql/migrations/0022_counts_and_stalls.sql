-- How many contents were ever stored, and their size, without a pass over them: kept in score_histogram beside the
-- live ones, by the same triggers.

LOCK TABLE contents IN SHARE ROW EXCLUSIVE MODE;        -- who writes waits until this commits, so nothing is missed

ALTER TABLE score_histogram
    ADD stored       bigint NOT NULL DEFAULT 0,         -- live or not; rows of contents are never deleted
    ADD stored_bytes bigint NOT NULL DEFAULT 0;
INSERT INTO score_histogram AS was (language, score, contents, stored, stored_bytes)
SELECT language, score, 0, count(*), sum(bytes) FROM contents GROUP BY language, score
ON CONFLICT (language, score) DO UPDATE SET stored = excluded.stored, stored_bytes = excluded.stored_bytes;

CREATE OR REPLACE FUNCTION count_new_scores() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO score_histogram AS was (language, score, contents, stored, stored_bytes)
    SELECT language, score, count(*) FILTER (WHERE live), count(*), sum(bytes)
    FROM added GROUP BY language, score ORDER BY language, score
    ON CONFLICT (language, score) DO UPDATE
    SET contents = was.contents + excluded.contents, stored = was.stored + excluded.stored,
        stored_bytes = was.stored_bytes + excluded.stored_bytes;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION count_changed_scores() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO score_histogram AS was (language, score, contents, stored, stored_bytes)
    SELECT language, score, sum(alive), sum(there), sum(bytes)
    FROM (SELECT language, score, live::integer AS alive, 1 AS there, bytes FROM after_change
          UNION ALL SELECT language, score, -live::integer, -1, -bytes FROM before_change) AS changes
    GROUP BY language, score HAVING sum(alive) <> 0 OR sum(there) <> 0 OR sum(bytes) <> 0
    ORDER BY language, score
    ON CONFLICT (language, score) DO UPDATE
    SET contents = was.contents + excluded.contents, stored = was.stored + excluded.stored,
        stored_bytes = was.stored_bytes + excluded.stored_bytes;
    RETURN NULL;
END $$;

-- `ratchet rejections` lists a source's refusals by the reasons it has, in whose name it may run.
GRANT SELECT ON file_counts TO ratchet_trainer;

-- Of a paused track nobody waits for anything: as services/metrics/health.py says of it, its trainer is not ill,
-- whatever is wrong with it. Resumed, the suspicion begins anew.
CREATE OR REPLACE FUNCTION notice_stalls() RETURNS void LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
DECLARE
    ill_states CONSTANT text[] := ARRAY['stalled', 'recovering', 'error'];
    moment CONSTANT timestamptz := clock_timestamp();
    seen record;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('ratchet_stalls', 0)) THEN
        RETURN;  -- another is looking
    END IF;
    FOR seen IN
        SELECT n.service, n.track, speaking.instance, speaking.state, left(speaking.detail ->> 'message', 500) AS message,
               round(extract(epoch FROM moment - n.beat_at))::integer AS silent_s,
               n.beat_at < moment - interval '45 s' OR speaking.state = ANY (ill_states) AS is_ill,
               EXISTS (SELECT FROM tracks WHERE name = n.track AND paused_at IS NOT NULL) AS is_paused
        FROM (SELECT service, coalesce(detail ->> 'track', '') AS track, max(beat_at) AS beat_at
              FROM heartbeats GROUP BY 1, 2) AS n
        CROSS JOIN LATERAL (
            SELECT h.instance, h.state, h.detail FROM heartbeats h
            WHERE h.service = n.service AND coalesce(h.detail ->> 'track', '') = n.track
              AND h.beat_at >= n.beat_at - interval '10 s'  -- those before are predecessors
            ORDER BY h.state = ANY (ill_states) DESC, h.beat_at DESC LIMIT 1) AS speaking
    LOOP
        IF seen.is_ill AND seen.is_paused THEN
            DELETE FROM stalls WHERE service = seen.service AND track = seen.track;
        ELSIF seen.is_ill THEN
            INSERT INTO stalls (service, track) VALUES (seen.service, seen.track)
            ON CONFLICT ON CONSTRAINT stalls_pkey DO UPDATE
            SET looked_at = moment,
                suspected_at = CASE WHEN stalls.looked_at < moment - interval '30 s' THEN moment
                                    ELSE stalls.suspected_at END;
            UPDATE stalls SET told_at = moment
            WHERE service = seen.service AND track = seen.track AND told_at IS NULL
              AND suspected_at <= moment - interval '20 s';
            IF FOUND THEN
                PERFORM record_event('service.stalled', nullif(seen.track, ''), jsonb_build_object(
                    'service', seen.service, 'instance', seen.instance, 'state', seen.state,
                    'message', seen.message, 'silent_s', seen.silent_s));
            END IF;
        ELSE
            DELETE FROM stalls WHERE service = seen.service AND track = seen.track AND told_at IS NULL;
            DELETE FROM stalls WHERE service = seen.service AND track = seen.track;
            IF FOUND THEN
                PERFORM record_event('service.recovered', nullif(seen.track, ''), jsonb_build_object(
                    'service', seen.service, 'instance', seen.instance, 'state', seen.state));
            END IF;
        END IF;
    END LOOP;
END $$;
