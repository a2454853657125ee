-- Forgetting: a source, folder or file taken back, what of it was stored and learned, and who may never serve
-- it again. Why it is this way: docs/decisions/0022-forget.md

-- One `ratchet forget`. While nobody says `remember`, the row is the tombstone of its path.
CREATE TABLE forgettings (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source        text NOT NULL CHECK (source <> ''),
    path          text NOT NULL COLLATE "C",            -- of a file; of a folder, with a slash; '': the whole source
    everywhere    boolean NOT NULL DEFAULT false,       -- its texts go wherever else they are held, too
    policy        text NOT NULL CHECK (policy IN ('refuse', 'warn')),
    state         text NOT NULL DEFAULT 'barred'        -- how far it is: services/trainer/forgetting/words.py
                  CHECK (state IN ('barred', 'withdrawn', 'probed', 'erased', 'done')),
    actor         text NOT NULL,
    reason        text NOT NULL,
    found         jsonb NOT NULL,                       -- what it touched, in numbers
    extraction    jsonb NOT NULL DEFAULT '{}',          -- track → what base, champion before and after gave up
    begun_at      timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz,
    remembered_at timestamptz,                          -- its tombstones were lifted then
    CHECK ((state = 'done') = (finished_at IS NOT NULL))
);
CREATE INDEX forgettings_source ON forgettings (source) WHERE remembered_at IS NULL;

-- Texts that were forgotten. Their rows stay, since rounds and receipts name them; text and units go.
CREATE TABLE forgotten_contents (
    forgetting_id bigint NOT NULL REFERENCES forgettings,
    content_id    bigint NOT NULL REFERENCES contents,
    barred        boolean NOT NULL,                     -- refused wherever it turns up; false: only erased, since
                                                        -- it may have been a file's that stays
    PRIMARY KEY (content_id, forgetting_id)
);
CREATE INDEX forgotten_contents_of ON forgotten_contents (forgetting_id);

-- Adapters that learned from them, or continue from one that did.
CREATE TABLE tainted_adapters (
    forgetting_id bigint NOT NULL REFERENCES forgettings,
    adapter_id    bigint NOT NULL REFERENCES adapters,
    contents      integer NOT NULL CHECK (contents >= 0), -- trained on in its own round; 0: by inheritance alone
    PRIMARY KEY (adapter_id, forgetting_id)
);

-- The marks that stand. Of several the strictest counts.
CREATE VIEW taints AS
    SELECT t.adapter_id, min(f.policy) AS policy, max(f.id) AS forgetting_id
    FROM tainted_adapters t JOIN forgettings f ON f.id = t.forgetting_id
    WHERE f.remembered_at IS NULL
    GROUP BY t.adapter_id;

-- Rounds whose training is taken back: what else they trained on is new again.
ALTER TABLE rounds ADD withdrawn_by bigint REFERENCES forgettings;

CREATE OR REPLACE VIEW backlog_definition AS
    SELECT t.name AS track, c.id AS content_id, c.sha256, c.cluster_id, c.score,
           NOT EXISTS (SELECT FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
                       WHERE rc.content_id = c.id AND r.track = t.name AND r.withdrawn_by IS NULL) AS is_new
    FROM contents c JOIN tracks t ON fits_recipe(t.recipe, c.language, c.characters)
    WHERE c.live
      AND NOT EXISTS (SELECT FROM trained l WHERE l.track = t.name AND l.content_id = c.id)
      AND NOT EXISTS (SELECT FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
                      WHERE rc.content_id = c.id AND rc.role = 'train'
                        AND r.track = t.name AND r.state = 'failed');
CREATE TRIGGER backlog_withdrawn AFTER UPDATE OF withdrawn_by ON rounds
    FOR EACH ROW WHEN (NEW.withdrawn_by IS DISTINCT FROM OLD.withdrawn_by)
    EXECUTE FUNCTION backlog_follows_failure();

-- Whatever the code does: no round continues from such an adapter, and none becomes the champion.
CREATE FUNCTION refuse_tainted() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE adapter bigint := (to_jsonb(NEW) ->> CASE TG_TABLE_NAME WHEN 'rounds' THEN 'parent_adapter_id'
                                                               ELSE 'adapter_id' END)::bigint;
DECLARE forgetting bigint;
BEGIN
    SELECT forgetting_id INTO forgetting FROM taints WHERE adapter_id = adapter AND policy = 'refuse';
    IF forgetting IS NOT NULL THEN
        RAISE EXCEPTION 'adapter % has learned what forgetting % took back', adapter, forgetting;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER promotion_is_clean BEFORE INSERT ON promotions
    FOR EACH ROW WHEN (NEW.adapter_id IS NOT NULL AND NEW.kind IN ('promoted', 'rolled_back', 'pinned'))
    EXECUTE FUNCTION refuse_tainted();
CREATE TRIGGER parent_is_clean BEFORE INSERT ON rounds
    FOR EACH ROW WHEN (NEW.parent_adapter_id IS NOT NULL) EXECUTE FUNCTION refuse_tainted();

-- Forgetting is for the database's owner. The services see what is barred.
GRANT SELECT ON forgettings, forgotten_contents TO ratchet_processor;
GRANT SELECT ON forgettings, tainted_adapters, taints TO ratchet_trainer;
GRANT SELECT ON forgettings, forgotten_contents, tainted_adapters, taints TO ratchet_metrics;
