-- A sender of its own, `ratchet webhook run`: it tells that the trainer, which else sends, has died. It sends what is
-- due and looks at the heartbeats; of the code and of the rounds it sees nothing but what events say.
DO $$ BEGIN
    CREATE ROLE ratchet_webhooks NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this server has it
END $$;

GRANT USAGE ON SCHEMA public TO ratchet_webhooks;
GRANT SELECT ON schema_migrations, events TO ratchet_webhooks;
GRANT SELECT, INSERT, UPDATE ON webhook_endpoints TO ratchet_webhooks;
GRANT SELECT, UPDATE ON deliveries TO ratchet_webhooks;
GRANT EXECUTE ON FUNCTION notice_stalls TO ratchet_webhooks;
