-- Least privilege: one role a service. They get a login and a password from `ratchet migrate`.
DO $$
DECLARE role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['ratchet_processor', 'ratchet_trainer', 'ratchet_metrics'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this server has it
        END;
    END LOOP;
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO ratchet_processor, ratchet_trainer, ratchet_metrics;
GRANT SELECT ON schema_migrations TO ratchet_processor, ratchet_trainer, ratchet_metrics;
GRANT SELECT, INSERT, UPDATE, DELETE ON heartbeats TO ratchet_processor, ratchet_trainer;

-- The processor writes what comes in and sees nothing of training.
GRANT SELECT, INSERT, UPDATE ON sources, contents, files TO ratchet_processor;
GRANT SELECT ON rejections TO ratchet_processor;
DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO ratchet_processor', current_database()); END $$;

-- The trainer reads what came in and writes the rounds; promotions it may only append.
GRANT SELECT ON sources, contents, files TO ratchet_trainer;
GRANT SELECT, INSERT, UPDATE ON tracks, rounds, evaluations, adapters, progress TO ratchet_trainer;
GRANT SELECT, INSERT ON round_contents, held_out_clusters, trained, promotions TO ratchet_trainer;
GRANT DELETE ON evaluations, progress TO ratchet_trainer;

-- Metrics can only read, and of the code itself only what describes it.
GRANT SELECT ON sources, files, rejections, tracks, rounds, round_contents, held_out_clusters, trained,
    evaluations, adapters, promotions, progress, heartbeats TO ratchet_metrics;
GRANT SELECT (id, sha256, cluster_id, language, bytes, lines, score, score_reasons, scorer_version, created_at)
    ON contents TO ratchet_metrics;
