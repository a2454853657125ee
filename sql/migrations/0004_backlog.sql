-- The backlog: what each track may still train on, so that polling and selecting read what they return and
-- nothing else. Why it is this way: docs/decisions/0010-backlog.md

-- Does a content fit a track's recipe? Characters above max_chars also bound its bytes: UTF-8 has at most 4 each.
CREATE FUNCTION fits_recipe(recipe jsonb, language text, characters integer) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN characters BETWEEN coalesce((recipe ->> 'min_chars')::integer, 0)
                          AND coalesce((recipe ->> 'max_chars')::integer, 2147483647)
       AND (coalesce(recipe -> 'languages', 'null') = 'null' OR recipe -> 'languages' ? language);

-- The definition: live contents that fit the recipe, that the champion has not learned from and that no failed
-- round has had. The table below equals this view whenever nobody is writing.
CREATE VIEW backlog_definition AS
    SELECT t.name AS track, c.id AS content_id, c.sha256, c.cluster_id, c.score,
           NOT EXISTS (SELECT FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
                       WHERE rc.content_id = c.id AND r.track = t.name) AS is_new
    FROM contents c JOIN tracks t ON fits_recipe(t.recipe, c.language, c.characters)
    WHERE c.live
      AND NOT EXISTS (SELECT FROM trained l WHERE l.track = t.name AND l.content_id = c.id)
      AND NOT EXISTS (SELECT FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
                      WHERE rc.content_id = c.id AND rc.role = 'train'
                        AND r.track = t.name AND r.state = 'failed');

-- Written only by the triggers below. No foreign keys: they would lock rows of tracks that a trainer holds.
CREATE TABLE backlog (
    track      text NOT NULL,
    content_id bigint NOT NULL,
    sha256     bytea NOT NULL,
    cluster_id bigint NOT NULL,
    score      smallint NOT NULL,
    is_new     boolean NOT NULL,                        -- no round of the track has had it
    PRIMARY KEY (content_id, track)
) WITH (
    -- What rounds take leaves dead entries just where the next selection begins to read: out with them early.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, vacuum_index_cleanup = on,
    autovacuum_vacuum_insert_scale_factor = 0.02
);
CREATE INDEX backlog_best_first ON backlog (track, score DESC, content_id);
CREATE INDEX backlog_new ON backlog (track, score DESC) WHERE is_new;

-- The clusters any round of the track has trained on, whatever became of it; as held_out_clusters, under the
-- names they had then.
CREATE TABLE trained_clusters (
    track      text NOT NULL,
    cluster_id bigint NOT NULL,
    PRIMARY KEY (track, cluster_id)
);

-- Derive these contents' rows again, of one track or of all. By index whatever the statistics promise: a plan is
-- kept for as long as its session lives, and these tables begin empty.
CREATE FUNCTION derive_backlog(changed bigint[], of_track text DEFAULT NULL) RETURNS void LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS
$$ BEGIN
    DELETE FROM backlog b
    WHERE b.content_id = ANY (changed) AND (of_track IS NULL OR b.track = of_track);
    INSERT INTO backlog
    SELECT d.* FROM backlog_definition d
    WHERE d.content_id = ANY (changed) AND (of_track IS NULL OR d.track = of_track);
END $$;
REVOKE EXECUTE ON FUNCTION derive_backlog FROM PUBLIC;

-- A row depends on contents and on rounds, and either may change while the other does. Writers of contents share
-- this lock, writers of rounds have it alone, both until they commit: whoever comes second sees what the first
-- did, since every statement below takes its snapshot after the lock (READ COMMITTED).
CREATE FUNCTION lock_backlog(alone boolean) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN
    IF alone THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('backlog', 0));
    ELSE
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('backlog', 0));
    END IF;
END $$;

CREATE FUNCTION backlog_follows_contents() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
DECLARE changed bigint[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(id) INTO changed FROM after_it WHERE live;
    ELSE
        SELECT array_agg(a.id) INTO changed
        FROM after_it a JOIN before_it b ON b.id = a.id
        WHERE (a.live OR b.live)
          AND (a.live, a.score, a.cluster_id, a.language, a.characters)
              IS DISTINCT FROM (b.live, b.score, b.cluster_id, b.language, b.characters);
    END IF;
    IF changed IS NOT NULL THEN
        PERFORM lock_backlog(alone => false);
        PERFORM derive_backlog(changed);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER backlog_inserted AFTER INSERT ON contents
    REFERENCING NEW TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION backlog_follows_contents();
CREATE TRIGGER backlog_updated AFTER UPDATE ON contents
    REFERENCING NEW TABLE AS after_it OLD TABLE AS before_it
    FOR EACH STATEMENT EXECUTE FUNCTION backlog_follows_contents();

-- A new track gets everything that fits; one whose recipe wants other contents now gets those.
CREATE FUNCTION backlog_follows_recipe() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$ BEGIN
    PERFORM lock_backlog(alone => true);
    DELETE FROM backlog WHERE track = NEW.name;
    INSERT INTO backlog
    SELECT * FROM backlog_definition WHERE track = NEW.name ORDER BY score DESC, content_id;
    RETURN NULL;
END $$;
CREATE TRIGGER backlog_of_new_track AFTER INSERT ON tracks
    FOR EACH ROW EXECUTE FUNCTION backlog_follows_recipe();
CREATE TRIGGER backlog_of_new_recipe AFTER UPDATE OF recipe ON tracks
    FOR EACH ROW WHEN ((OLD.recipe -> 'languages', OLD.recipe -> 'min_chars', OLD.recipe -> 'max_chars')
                       IS DISTINCT FROM
                       (NEW.recipe -> 'languages', NEW.recipe -> 'min_chars', NEW.recipe -> 'max_chars'))
    EXECUTE FUNCTION backlog_follows_recipe();

CREATE FUNCTION backlog_follows_snapshot() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$ BEGIN
    PERFORM lock_backlog(alone => true);
    PERFORM derive_backlog(array_agg(a.content_id), r.track)
    FROM after_it a JOIN rounds r ON r.id = a.round_id GROUP BY r.track;
    INSERT INTO trained_clusters
    SELECT DISTINCT r.track, c.cluster_id
    FROM after_it a JOIN rounds r ON r.id = a.round_id JOIN contents c ON c.id = a.content_id
    WHERE a.role = 'train'
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER backlog_taken AFTER INSERT ON round_contents
    REFERENCING NEW TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION backlog_follows_snapshot();

CREATE FUNCTION backlog_follows_promotion() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$ BEGIN
    PERFORM lock_backlog(alone => true);
    PERFORM derive_backlog(array_agg(content_id), track) FROM after_it GROUP BY track;
    RETURN NULL;
END $$;
CREATE TRIGGER backlog_learned AFTER INSERT ON trained
    REFERENCING NEW TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION backlog_follows_promotion();

CREATE FUNCTION backlog_follows_failure() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$ BEGIN
    PERFORM lock_backlog(alone => true);
    PERFORM derive_backlog((SELECT array_agg(content_id) FROM round_contents WHERE round_id = NEW.id), NEW.track);
    RETURN NULL;
END $$;
CREATE TRIGGER backlog_failed AFTER UPDATE OF state ON rounds
    FOR EACH ROW WHEN (NEW.state = 'failed') EXECUTE FUNCTION backlog_follows_failure();

-- The triggers lock out writers until this commits, so nothing is missed.
INSERT INTO backlog SELECT * FROM backlog_definition;
INSERT INTO trained_clusters
SELECT DISTINCT r.track, c.cluster_id
FROM round_contents rc JOIN rounds r ON r.id = rc.round_id JOIN contents c ON c.id = rc.content_id
WHERE rc.role = 'train';

GRANT SELECT ON backlog, trained_clusters TO ratchet_trainer, ratchet_metrics;
