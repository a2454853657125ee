-- Receipts: where everything lay that a round trained on, and how often it did. Why: docs/decisions/0021-receipts.md

-- The sources of a round's contents as they were when it was opened. Copies, not references: what is in a
-- receipt must not change when files move, sources are read again or go.
CREATE TABLE round_sources (
    round_id  bigint NOT NULL REFERENCES rounds,
    source_id bigint NOT NULL,                          -- of `sources`, at that time
    name      text NOT NULL,
    kind      text,
    commit_id text,                                     -- checked out then; NULL: no repository, or an older round
    licence   text,
    PRIMARY KEY (round_id, source_id)
);
CREATE INDEX round_sources_name ON round_sources (name);

-- Every file that held one of its contents then. No foreign keys here and below: they would take longer than
-- the rows, which are made of rows that have them.
CREATE TABLE round_files (
    round_id   bigint NOT NULL,
    content_id bigint NOT NULL,
    source_id  bigint NOT NULL,
    path       text COLLATE "C" NOT NULL,
    commit_id  text,                                    -- the last one that touched it, where history was read
    PRIMARY KEY (round_id, content_id, source_id, path)
);
CREATE INDEX round_files_path ON round_files (source_id, path);

-- Of older rounds the first file is known, and no commit.
INSERT INTO round_sources (round_id, source_id, name, kind, licence)
SELECT DISTINCT rc.round_id, s.id, s.name, s.kind, s.licence
FROM round_contents rc JOIN sources s ON s.name = rc.source;
INSERT INTO round_files (round_id, content_id, source_id, path)
SELECT rc.round_id, rc.content_id, s.id, rc.path
FROM round_contents rc JOIN sources s ON s.name = rc.source
WHERE rc.path IS NOT NULL;

-- How often a published adapter was trained on each content that it was to be trained on: written with its
-- receipt. No row at all: the round is older, or nothing of it was published.
CREATE TABLE exposures (
    round_id   bigint NOT NULL,
    content_id bigint NOT NULL,
    seen       bigint NOT NULL CHECK (seen >= 0),       -- times that a sample of it was in a step
    tokens     bigint NOT NULL CHECK (tokens >= 0),     -- in those steps
    PRIMARY KEY (round_id, content_id)
);

-- SHA-256 of the adapter's receipt.jsonl; NULL: published before there were receipts.
ALTER TABLE adapters
    ADD receipt text GENERATED ALWAYS AS (manifest #>> '{files,receipt.jsonl}') STORED;

GRANT SELECT, INSERT ON round_sources, round_files TO ratchet_trainer;
GRANT SELECT, INSERT, DELETE ON exposures TO ratchet_trainer;
GRANT SELECT ON round_sources, round_files, exposures TO ratchet_metrics;
