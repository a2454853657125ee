-- The gate and the moves of a champion: by the gate, by hand, by the canary. Why: docs/decisions/0017-gate.md

-- Every move says what it is, who made it and why.
ALTER TABLE promotions
    ADD kind  text NOT NULL DEFAULT 'promoted'
              CHECK (kind IN ('promoted', 'rolled_back', 'rejected', 'pinned', 'unpinned')),
    ADD actor text NOT NULL DEFAULT 'gate',             -- gate, canary, or the user who ran the command
    ALTER adapter_id DROP NOT NULL,                     -- null: the base model, without any adapter
    ALTER token DROP NOT NULL,                          -- null: by hand, under the lock of the track's row
    ADD CHECK (adapter_id IS NOT NULL OR kind IN ('rolled_back', 'pinned', 'unpinned'));

-- What the canary found when the adapter had become the champion; null: it has not been asked yet.
ALTER TABLE adapters ADD canary jsonb;

-- The champion of each track that has had one; adapter_id is null where it was rolled back to the base model.
CREATE VIEW champions AS
    SELECT DISTINCT ON (track) track, adapter_id, kind, actor, reason, promoted_at
    FROM promotions WHERE kind IN ('promoted', 'rolled_back')
    ORDER BY track, id DESC;

-- The rounds whose training is in the champion: its own, the one that its round continued from, and so on.
CREATE FUNCTION lineage(of_track text) RETURNS SETOF bigint LANGUAGE sql STABLE AS
$$
    WITH RECURSIVE line AS (
        SELECT a.round_id, r.parent_adapter_id
        FROM champions c JOIN adapters a ON a.id = c.adapter_id JOIN rounds r ON r.id = a.round_id
        WHERE c.track = of_track
        UNION
        SELECT a.round_id, r.parent_adapter_id
        FROM line JOIN adapters a ON a.id = line.parent_adapter_id JOIN rounds r ON r.id = a.round_id
    )
    SELECT round_id FROM line
$$;

-- `trained` is what the champion has learned from, whoever it is. A move that only forgets or takes up again
-- what rounds had learned may be settled later, in a transaction of its own: it takes seconds for a large
-- round. No round opens before it is.
CREATE INDEX trained_round ON trained (round_id);
CREATE TRIGGER backlog_unlearned AFTER DELETE ON trained
    REFERENCING OLD TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION backlog_follows_promotion();

CREATE FUNCTION settle_trained(of_track text) RETURNS void LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
DECLARE learned bigint[] := ARRAY(SELECT lineage(of_track));
DECLARE forgotten bigint[] := ARRAY(
    SELECT a.round_id FROM adapters a
    WHERE a.track = of_track AND a.round_id <> ALL (learned)
      AND EXISTS (SELECT FROM trained t WHERE t.round_id = a.round_id));
DECLARE missing bigint[] := ARRAY(
    SELECT id FROM unnest(learned) AS id WHERE NOT EXISTS (SELECT FROM trained t WHERE t.round_id = id));
BEGIN
    IF cardinality(forgotten) > 0 THEN
        DELETE FROM trained WHERE round_id = ANY (forgotten);
    END IF;
    IF cardinality(missing) > 0 THEN
        INSERT INTO trained (track, content_id, round_id)
        SELECT of_track, content_id, round_id FROM round_contents
        WHERE role = 'train' AND round_id = ANY (missing)
        ON CONFLICT DO NOTHING;
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION settle_trained, lineage FROM PUBLIC;
GRANT EXECUTE ON FUNCTION settle_trained, lineage TO ratchet_trainer;
GRANT SELECT ON champions TO ratchet_trainer, ratchet_metrics;
