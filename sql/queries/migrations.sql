-- has_schema --
-- Whether any migration was ever applied
SELECT to_regclass('schema_migrations') IS NOT NULL;

-- newest_migration --
-- The version of the newest migration that is applied; 0 without any
SELECT coalesce(max(version), 0) FROM schema_migrations;

-- applied_migrations --
-- The migrations that are applied, with the SHA-256 of each file as it was
SELECT version, checksum FROM schema_migrations ORDER BY version;
