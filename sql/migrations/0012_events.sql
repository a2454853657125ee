-- Events: what a person or another program may want to know of, and their deliveries to webhooks.
-- Why so: docs/decisions/0026-events-and-webhooks.md

-- Append-only. Ids grow in the order of commits (keep_event_order): who has read up to one has missed none below.
CREATE TABLE events (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid          uuid NOT NULL DEFAULT gen_random_uuid(),  -- of the message, wherever and however often it is sent
    kind         text NOT NULL CHECK (kind ~ '^[a-z]+\.[a-z_]+$'),
    track        text,                                  -- null: of no track
    round_number integer,
    adapter      text,                                  -- below adapters/<track>/; null: none, or the base model
    payload      jsonb NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX events_at ON events (at);

-- Where events are sent, as the trainers that run have it in their settings; URLs are not kept here.
CREATE TABLE webhook_endpoints (
    name             text PRIMARY KEY,                  -- host and eight digits of a hash
    kinds            text[] NOT NULL,                   -- of the events it wants
    seen_at          timestamptz NOT NULL DEFAULT now(), -- when a sender last had it in its settings
    disabled_at      timestamptz,                       -- since then it gets nothing
    disabled_because text,
    CHECK ((disabled_at IS NULL) = (disabled_because IS NULL))
);

-- The outbox: one event for one endpoint, written by the transaction that makes the event.
CREATE TABLE deliveries (
    event_id bigint NOT NULL REFERENCES events,
    endpoint text NOT NULL REFERENCES webhook_endpoints,
    state    text NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'delivered', 'given_up')),
    attempts integer NOT NULL DEFAULT 0,
    due_at   timestamptz NOT NULL DEFAULT now(),        -- while one is sending it: when another may take it over
    status   integer,                                   -- HTTP status of the last answer
    error    text,                                      -- why the last attempt failed; holds no secret
    ended_at timestamptz,
    PRIMARY KEY (event_id, endpoint),
    CHECK ((state = 'due') = (ended_at IS NULL))
);
CREATE INDEX deliveries_due ON deliveries (endpoint, due_at) WHERE state = 'due';

-- What record_event was asked for in a transaction that has not committed; empty to everybody else. What happens to
-- rounds and champions is announced by their own rows, and by nothing else.
CREATE UNLOGGED TABLE event_drafts (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind    text NOT NULL CHECK (kind ~ '^[a-z]+\.[a-z_]+$' AND kind !~ '^(round|adapter)\.'),
    track   text,
    payload jsonb NOT NULL
);

-- Services that are ill, from the first look that found them so.
CREATE TABLE stalls (
    service      text NOT NULL,
    track        text NOT NULL,                         -- of a trainer; '' for the processors
    suspected_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    looked_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    told_at      timestamptz,                           -- when service.stalled was recorded
    PRIMARY KEY (service, track)
);

-- JSON without what may be a secret in it: passwords and queries of URLs, signing secrets. An escape, as \", is
-- taken as a whole, so that JSON stays JSON.
CREATE FUNCTION without_credentials(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
    SELECT regexp_replace(regexp_replace(regexp_replace(said,
        '(://[^\s:/@"\\]*):(?:[^\s/@"\\]|\\[^nrt])+@', '\1:***@', 'g'),
        '(://(?:[^\s?#"\\]|\\[^nrt])*)\?(?:[^\s#"\\]|\\[^nrt])+', '\1?***', 'g'),
        'whsec_[A-Za-z0-9+/=_-]+', 'whsec_***', 'g')
$$;

-- What the events say. Reasons are cut: they are for a person.

CREATE FUNCTION gain_percent(verdict jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
    SELECT CASE WHEN jsonb_typeof(verdict -> 'improvement') = 'number'
                THEN round(100 * (verdict ->> 'improvement')::numeric, 2) END
$$;

CREATE FUNCTION round_started(r rounds) RETURNS jsonb LANGUAGE sql STABLE AS
$$
    SELECT jsonb_build_object(
        'contents', (SELECT count(*) FROM round_contents WHERE round_id = r.id AND role = 'train'),
        'continues_from', (SELECT directory FROM adapters WHERE id = r.parent_adapter_id))
$$;

CREATE FUNCTION round_closed(r rounds) RETURNS jsonb LANGUAGE sql STABLE AS
$$
    SELECT jsonb_build_object(
        'reason', left(r.verdict ->> 'reason', 1000),
        'gain_percent', gain_percent(r.verdict),
        'against', r.verdict ->> 'against',
        'attempts', r.attempts)
$$;

-- A promotion that was made under a lease is a round's; one without was made by hand.
CREATE FUNCTION move_kind(p promotions) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT CASE WHEN p.kind = 'promoted' AND p.token IS NOT NULL THEN 'round.promoted' ELSE 'adapter.' || p.kind END $$;

CREATE FUNCTION move_payload(p promotions) RETURNS jsonb LANGUAGE sql STABLE AS
$$
    SELECT jsonb_build_object('actor', p.actor, 'reason', left(p.reason, 1000))
        || CASE WHEN p.kind IN ('promoted', 'rolled_back') THEN jsonb_build_object('before', (
               SELECT a.directory FROM promotions e LEFT JOIN adapters a ON a.id = e.adapter_id
               WHERE e.track = p.track AND e.id < p.id AND e.kind IN ('promoted', 'rolled_back')
               ORDER BY e.id DESC LIMIT 1)) ELSE '{}' END
        || CASE WHEN p.kind = 'promoted' THEN jsonb_build_object('gain_percent', (
               SELECT gain_percent(r.verdict) FROM adapters a JOIN rounds r ON r.id = a.round_id
               WHERE a.id = p.adapter_id)) ELSE '{}' END
$$;

CREATE VIEW moves_as_events AS
    SELECT p.id, move_kind(p) AS kind, p.track, r.number AS round_number, a.directory AS adapter,
           move_payload(p) AS payload, p.promoted_at AS at
    FROM promotions p LEFT JOIN adapters a ON a.id = p.adapter_id LEFT JOIN rounds r ON r.id = a.round_id;

-- What had happened before there were events.
INSERT INTO events (kind, track, round_number, adapter, payload, at)
SELECT kind, track, round_number, adapter, without_credentials(payload::text)::jsonb, at
FROM (
    SELECT opened_at AS at, 1 AS step, id, 'round.started' AS kind, track, number AS round_number,
           NULL AS adapter, round_started(r) AS payload
    FROM rounds r
    UNION ALL
    SELECT closed_at, 2, id, 'round.' || state, track, number, NULL, round_closed(r)
    FROM rounds r WHERE state IN ('refused', 'failed')
    UNION ALL
    SELECT at, 3, id, kind, track, round_number, adapter, payload FROM moves_as_events
) AS past
ORDER BY at, step, id;

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One at a time takes an id and commits: the lock is let go after the commit can be seen. It is taken before the
-- id is, and at the very end of a transaction (deferred triggers), so that nobody waits for more than a commit.
CREATE FUNCTION keep_event_order() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock(hashtextextended('ratchet_events', 0)); RETURN NULL; END $$;
CREATE TRIGGER events_in_order BEFORE INSERT ON events
    FOR EACH STATEMENT EXECUTE FUNCTION keep_event_order();

CREATE FUNCTION event_without_credentials() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN NEW.payload := without_credentials(NEW.payload::text)::jsonb; RETURN NEW; END $$;
CREATE TRIGGER events_without_credentials BEFORE INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION event_without_credentials();

-- To every endpoint that wants it, but those that nobody has had in the settings for a week, and to who listens.
CREATE FUNCTION event_goes_out() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    INSERT INTO deliveries (event_id, endpoint)
    SELECT NEW.id, name FROM webhook_endpoints
    WHERE NEW.kind = ANY (kinds) AND disabled_at IS NULL AND seen_at > now() - interval '7 days';
    PERFORM pg_notify('ratchet_events', NEW.id::text);
    RETURN NULL;
END $$;
CREATE TRIGGER events_go_out AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION event_goes_out();

CREATE FUNCTION event_of_round() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO events (kind, track, round_number, payload)
        VALUES ('round.started', NEW.track, NEW.number, round_started(NEW));
    ELSE
        INSERT INTO events (kind, track, round_number, payload)
        VALUES ('round.' || NEW.state, NEW.track, NEW.number, round_closed(NEW));
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER round_started AFTER INSERT ON rounds DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION event_of_round();
CREATE CONSTRAINT TRIGGER round_closed AFTER UPDATE OF state ON rounds DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.state = 'open' AND NEW.state IN ('refused', 'failed'))  -- a promoted one makes a move
    EXECUTE FUNCTION event_of_round();

CREATE FUNCTION event_of_move() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
BEGIN
    INSERT INTO events (kind, track, round_number, adapter, payload)
    SELECT kind, track, round_number, adapter, payload FROM moves_as_events WHERE id = NEW.id;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER moved AFTER INSERT ON promotions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION event_of_move();

-- What no table shows: source.forgotten, service.stalled. The payload's `round` and `adapter`, if any, become
-- columns; of what is long only the beginning is kept, of a long list its length: no event may fail what it is of.
-- It is there when the transaction commits, and not if it does not.
CREATE FUNCTION record_event(kind text, track text, payload jsonb) RETURNS void LANGUAGE sql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
    INSERT INTO event_drafts (kind, track, payload)
    SELECT $1, $2, coalesce(jsonb_object_agg(key, CASE
        WHEN octet_length(value::text) <= 2000 THEN value
        WHEN jsonb_typeof(value) = 'string' THEN to_jsonb(left(value #>> '{}', 1000) || '…')
        WHEN jsonb_typeof(value) = 'array' THEN to_jsonb(jsonb_array_length(value))
        ELSE 'null' END), '{}')
    FROM jsonb_each($3)
$$;

CREATE FUNCTION event_of_draft() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
BEGIN
    INSERT INTO events (kind, track, round_number, adapter, payload)
    VALUES (NEW.kind, NEW.track, (NEW.payload ->> 'round')::integer, NEW.payload ->> 'adapter',
            NEW.payload - 'round' - 'adapter');
    DELETE FROM event_drafts WHERE id = NEW.id;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER drafted AFTER INSERT ON event_drafts DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION event_of_draft();

-- One look at the heartbeats, as services/metrics/health.py judges them, by any service that lives: a service is
-- the trainers of one track, or the processors. It is told once that a service is ill, when two looks or more over
-- 20 s have found it so, and once that it is well again. After a pause in which nobody looked (the database was
-- away, the machine slept) the suspicion begins anew: everybody has been silent then.
CREATE FUNCTION notice_stalls() RETURNS void LANGUAGE plpgsql
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
               n.beat_at < moment - interval '45 s' OR speaking.state = ANY (ill_states) AS is_ill
        FROM (SELECT service, coalesce(detail ->> 'track', '') AS track, max(beat_at) AS beat_at
              FROM heartbeats GROUP BY 1, 2) AS n
        CROSS JOIN LATERAL (
            SELECT h.instance, h.state, h.detail FROM heartbeats h
            WHERE h.service = n.service AND coalesce(h.detail ->> 'track', '') = n.track
              AND h.beat_at >= n.beat_at - interval '10 s'  -- those before are predecessors
            ORDER BY h.state = ANY (ill_states) DESC, h.beat_at DESC LIMIT 1) AS speaking
    LOOP
        IF seen.is_ill THEN
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

REVOKE EXECUTE ON FUNCTION without_credentials, gain_percent, round_started, round_closed, move_kind, move_payload,
    keep_event_order, event_without_credentials, event_goes_out, event_of_round, event_of_move, record_event,
    event_of_draft, notice_stalls FROM PUBLIC;
-- The processor reads what is not trusted: it may look at the heartbeats, and say nothing of its own.
GRANT EXECUTE ON FUNCTION notice_stalls TO ratchet_processor, ratchet_trainer;
GRANT EXECUTE ON FUNCTION record_event TO ratchet_trainer;
GRANT SELECT ON events TO ratchet_trainer, ratchet_metrics;
GRANT SELECT, INSERT, UPDATE ON webhook_endpoints TO ratchet_trainer;
GRANT SELECT, UPDATE ON deliveries TO ratchet_trainer;
GRANT SELECT ON webhook_endpoints, deliveries, stalls TO ratchet_metrics;
