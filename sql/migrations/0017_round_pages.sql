-- What the page of a round shows and no other table has: a few samples as the model saw them, the end of the
-- round's log, what models wrote in suites. Little of each; a sample goes when what it quotes is forgotten.

CREATE TABLE round_samples (
    round_id bigint NOT NULL REFERENCES rounds ON DELETE CASCADE,
    number   smallint NOT NULL CHECK (number BETWEEN 1 AND 8),
    contents bigint[] NOT NULL CHECK (cardinality(contents) > 0),  -- ids of all that it quotes, each once
    kind     text NOT NULL,
    tokens   integer NOT NULL CHECK (tokens > 0),
    learned  integer NOT NULL CHECK (learned BETWEEN 0 AND tokens), -- of them, with loss
    runs     jsonb NOT NULL CHECK (octet_length(runs::text) <= 4096), -- as services/trainer/shown_samples.py cuts it
    PRIMARY KEY (round_id, number)
);

-- Texts are only ever changed by being forgotten. Whoever comes second, the sample or the forgetting, sees the
-- other: this one locks the contents' rows against it, that one deletes with a snapshot taken after it.
CREATE FUNCTION refuse_forgotten_sample() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
DECLARE standing integer;
BEGIN
    SELECT count(*) INTO standing
    FROM (SELECT FROM contents WHERE id = ANY (NEW.contents) AND text <> '' ORDER BY id FOR SHARE) AS held;
    IF standing = cardinality(NEW.contents) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER sample_is_not_forgotten BEFORE INSERT ON round_samples
    FOR EACH ROW EXECUTE FUNCTION refuse_forgotten_sample();

CREATE FUNCTION forget_samples() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
BEGIN
    IF EXISTS (SELECT FROM after_it WHERE text = '') THEN  -- rarely: the processor updates contents, too
        DELETE FROM round_samples
        WHERE (round_id, number) IN (
            SELECT s.round_id, s.number
            FROM round_samples s CROSS JOIN unnest(s.contents) AS quoted (id) JOIN after_it a ON a.id = quoted.id
            WHERE a.text = '');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER samples_forgotten AFTER UPDATE ON contents
    REFERENCING NEW TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION forget_samples();

-- The last 200 lines; services/trainer/round_log.py removes older ones as it writes.
CREATE TABLE round_log (
    round_id bigint NOT NULL REFERENCES rounds ON DELETE CASCADE,
    id       bigint GENERATED ALWAYS AS IDENTITY,
    at       timestamptz NOT NULL,
    level    text NOT NULL,
    line     text NOT NULL CHECK (char_length(line) <= 1000),      -- without the log's secrets
    PRIMARY KEY (round_id, id)
);

-- What a model wrote for an item and what was expected, cut; null once it was forgotten.
CREATE VIEW suite_answers AS
    SELECT round_id, subject, suite, item, metric,
           left(coalesce(detail ->> 'written', detail ->> 'completion'), 4000) AS written,
           left(detail ->> 'answer', 4000) AS answer,
           CASE WHEN jsonb_typeof(detail -> 'results') = 'object' THEN detail -> 'results' END AS results
    FROM suite_scores;

REVOKE EXECUTE ON FUNCTION refuse_forgotten_sample, forget_samples FROM PUBLIC;
GRANT SELECT, INSERT ON round_samples TO ratchet_trainer;
GRANT SELECT, INSERT, DELETE ON round_log TO ratchet_trainer;
GRANT SELECT ON round_samples, round_log, suite_answers TO ratchet_metrics;
