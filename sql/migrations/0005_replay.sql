-- Replay: a round may train once more on what earlier rounds of its track were promoted with.

-- The same contents in another role: they are neither trained on anew nor judged by. They are no part of any
-- backlog, since what the champion has learned never is.
ALTER TABLE round_contents DROP CONSTRAINT round_contents_role_check;
ALTER TABLE round_contents
    ADD CONSTRAINT round_contents_role_check CHECK (role IN ('train', 'validation', 'held_out', 'replay')),
    ADD source text,                                    -- where the content was found when the round was opened:
    ADD path   text;                                    -- a snapshot does not change when files are moved

-- Only what the champion has learned is replayed.
CREATE FUNCTION refuse_unlearned_replay() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
DECLARE unlearned bigint;
BEGIN
    SELECT a.content_id INTO unlearned
    FROM after_it a JOIN rounds r ON r.id = a.round_id
    WHERE a.role = 'replay'
      AND NOT EXISTS (SELECT FROM trained l WHERE l.track = r.track AND l.content_id = a.content_id)
    LIMIT 1;
    IF unlearned IS NOT NULL THEN
        RAISE EXCEPTION 'content % cannot be replayed: no promoted round of the track has had it', unlearned;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER replay_is_learned AFTER INSERT ON round_contents
    REFERENCING NEW TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION refuse_unlearned_replay();
