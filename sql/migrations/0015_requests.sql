-- Requests: what a person asks of a track's trainer from outside, each answered once.
-- Why it is this way: docs/decisions/0028-writes-and-stream.md

-- While it is paused no new round of a track begins; one that runs goes on.
ALTER TABLE tracks
    ADD paused_at    timestamptz,                       -- null: it is not paused
    ADD paused_by    text,
    ADD pause_reason text,
    ADD CHECK ((paused_at IS NULL) = (paused_by IS NULL));

CREATE TABLE requests (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind     text NOT NULL CHECK (kind IN
             ('train', 'pause', 'resume', 'promote', 'reject', 'rollback', 'pin', 'unpin', 'forget')),
    track    text NOT NULL REFERENCES tracks,
    payload  jsonb NOT NULL CHECK (jsonb_typeof(payload) = 'object' AND octet_length(payload::text) <= 8000),
                                                        -- adapter, target, reason, where the kind has them
    actor    text NOT NULL CHECK (actor <> ''),         -- whom the asker says it is for
    key      text UNIQUE,                               -- of who asks: with it, asking again changes nothing
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state    text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed')),
    message  text,                                      -- what came of it, for a person
    done_at  timestamptz,
    CHECK ((state = 'waiting') = (done_at IS NULL)),
    CHECK ((state = 'waiting') = (message IS NULL))
);
CREATE INDEX requests_waiting ON requests (track, id) WHERE state = 'waiting';

-- Answered is answered.
CREATE FUNCTION keep_answer() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'request % has its answer', OLD.id; END $$;
CREATE TRIGGER requests_answered_once BEFORE UPDATE ON requests
    FOR EACH ROW WHEN (OLD.state <> 'waiting') EXECUTE FUNCTION keep_answer();

CREATE FUNCTION event_of_request() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
BEGIN
    INSERT INTO events (kind, track, adapter, payload)
    VALUES ('request.' || NEW.state, NEW.track, NEW.payload ->> 'adapter', jsonb_build_object(
        'request', NEW.id, 'asked', NEW.kind, 'actor', NEW.actor, 'message', left(NEW.message, 1000)));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER request_answered AFTER UPDATE OF state ON requests DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.state = 'waiting' AND NEW.state <> 'waiting') EXECUTE FUNCTION event_of_request();

-- Nobody is surprised tomorrow by what was asked of a trainer that was not there; how many those were.
CREATE FUNCTION expire_requests() RETURNS bigint LANGUAGE sql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
    WITH expired AS (
        UPDATE requests SET state = 'failed', done_at = clock_timestamp(),
               message = 'no trainer of the track took it up within an hour: is one running? Ask again when it is'
        WHERE state = 'waiting' AND asked_at < clock_timestamp() - interval '1 hour'
        RETURNING id)
    SELECT count(*) FROM expired
$$;

-- The one way to ask: the new request's id, or that of the same one asked before with this key; null when the
-- key stands for another request.
CREATE FUNCTION ask(kind text, track text, payload jsonb, actor text, key text DEFAULT NULL) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS
$$
DECLARE request bigint;
BEGIN
    PERFORM expire_requests();
    INSERT INTO requests (kind, track, payload, actor, key) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT ON CONSTRAINT requests_key_key DO NOTHING
    RETURNING id INTO request;
    IF request IS NULL THEN
        SELECT r.id INTO request FROM requests r
        WHERE r.key = $5 AND (r.kind, r.track, r.payload, r.actor) = ($1, $2, $3, $4);
    END IF;
    RETURN request;
END $$;

REVOKE EXECUTE ON FUNCTION keep_answer, event_of_request, expire_requests, ask FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ask TO ratchet_metrics;
GRANT EXECUTE ON FUNCTION expire_requests TO ratchet_trainer;
GRANT SELECT ON requests TO ratchet_metrics, ratchet_trainer;
GRANT UPDATE (state, message, done_at) ON requests TO ratchet_trainer;
