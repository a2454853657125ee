-- Ingestion: kinds of sources, near duplicates, units, licences, redactions, work shared by claims.

-- What a source is, and which revision of it was read last.
ALTER TABLE sources
    ADD kind       text NOT NULL DEFAULT 'directory'
                   CHECK (kind IN ('directory', 'git', 'bare', 'archive', 'loose')),
    ADD commit_id  text,                                -- checked out, or HEAD of a bare repository
    ADD licence    text,                                -- SPDX expression of its licence text, or as it was told
    ADD stamp      text,                                -- equal: nothing in it changed since it was read to its end
    ADD history_id text,                                -- commit up to which times of change were read
    ADD problem    text;                                -- why it cannot be read, for a person

ALTER TABLE contents
    ADD characters integer NOT NULL DEFAULT 0,
    ADD live       boolean NOT NULL DEFAULT false,      -- a file that is neither retired nor refused holds it
    ADD licence    text,                                -- SPDX expression of its own header
    ADD redactions jsonb NOT NULL DEFAULT '[]';         -- [kind, line] of what was taken out, never what it said
UPDATE contents c
SET characters = length(text),
    live = EXISTS (SELECT FROM files f WHERE f.content_id = c.id AND f.retired_at IS NULL);
ALTER TABLE contents ALTER characters DROP DEFAULT, ADD CHECK (characters > 0);
-- Where the server has lz4, a text costs a quarter of the time to store. Some builds lack it.
DO $$ BEGIN
    ALTER TABLE contents ALTER text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;

-- Paths in the order of their bytes, as the walk meets them: both are read side by side, once.
DROP VIEW rejections;
ALTER TABLE files
    ALTER path TYPE text COLLATE "C",
    ADD language      text,                             -- where it was recognised, also of a refused file
    ADD rules         integer NOT NULL DEFAULT 0,       -- digest of the rules it was judged by; others: judged again
    ADD duplicate_of  bigint REFERENCES contents,       -- the kept text that this refused file is nearly the same as
    ADD first_seen_at timestamptz NOT NULL DEFAULT now(),
    ADD renamed_from  text,                             -- the path it had before, in the same source
    ADD commit_id     text,                             -- last commit that touched it
    ADD changed_at    timestamptz;                      -- when that was
CREATE INDEX files_duplicate ON files (duplicate_of) WHERE duplicate_of IS NOT NULL;

CREATE VIEW rejections AS
    SELECT s.name AS source, f.path, f.language, f.reason, f.detail, f.duplicate_of, f.seen_at
    FROM files f JOIN sources s ON s.id = f.source_id
    WHERE f.reason IS NOT NULL AND f.retired_at IS NULL;

-- Near duplicates: texts connected by shared band keys are a group, one of them is kept.
CREATE SEQUENCE group_ids;
CREATE TABLE groups (
    id         bigint PRIMARY KEY,
    root       bigint NOT NULL,                         -- itself, or the group it was merged into: one step
    content_id bigint NOT NULL REFERENCES contents      -- the kept member, where this is a root
);
CREATE INDEX groups_root ON groups (root);
CREATE TABLE bands (
    key      bigint PRIMARY KEY,                        -- 8 bytes of MinHash: docs/decisions/0007
    group_id bigint NOT NULL                            -- the one that brought it; no foreign key: 14 a text
);

-- Clusters: what a split must not divide. A text that replaces another joins its cluster, near duplicates
-- share one, and two that turn out to belong together are merged.
CREATE SEQUENCE cluster_ids;
SELECT setval('cluster_ids', greatest(1, (SELECT max(cluster_id) FROM contents)));
CREATE TABLE cluster_merges (
    cluster_id  bigint PRIMARY KEY,
    merged_into bigint NOT NULL CHECK (merged_into <> cluster_id)  -- always one that still is
);
CREATE INDEX cluster_merges_into ON cluster_merges (merged_into);

-- Named spans of a content. No foreign key: it would cost more than the row, and contents are never
-- deleted without their units.
CREATE TABLE units (
    content_id   bigint NOT NULL,
    ordinal      integer NOT NULL,                      -- in the order of the text
    kind         text NOT NULL,
    name         text NOT NULL,
    start_byte   integer NOT NULL,
    end_byte     integer NOT NULL,
    start_line   integer NOT NULL,
    end_line     integer NOT NULL,
    comment_byte integer NOT NULL,                      -- where its leading comment begins
    PRIMARY KEY (content_id, ordinal)
);

-- How many live contents have which score: the percentile of a score within its language, without a scan.
CREATE TABLE score_histogram (
    language text NOT NULL,
    score    smallint NOT NULL,
    contents bigint NOT NULL,
    PRIMARY KEY (language, score)
);
INSERT INTO score_histogram SELECT language, score, count(*) FROM contents WHERE live GROUP BY language, score;
CREATE FUNCTION count_new_scores() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO score_histogram AS was
    SELECT language, score, count(*) FROM added WHERE live GROUP BY language, score
    ON CONFLICT (language, score) DO UPDATE SET contents = was.contents + excluded.contents;
    RETURN NULL;
END $$;
CREATE FUNCTION count_changed_scores() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO score_histogram AS was
    SELECT language, score, sum(change)
    FROM (SELECT language, score, 1 AS change FROM after_change WHERE live
          UNION ALL SELECT language, score, -1 FROM before_change WHERE live) AS changes
    GROUP BY language, score HAVING sum(change) <> 0
    ON CONFLICT (language, score) DO UPDATE SET contents = was.contents + excluded.contents;
    RETURN NULL;
END $$;
CREATE TRIGGER scores_added AFTER INSERT ON contents REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_new_scores();
CREATE TRIGGER scores_changed AFTER UPDATE ON contents
    REFERENCING OLD TABLE AS before_change NEW TABLE AS after_change
    FOR EACH STATEMENT EXECUTE FUNCTION count_changed_scores();

-- Found files that are to be read, a chunk a row. A processor locks the row, stores what became of the
-- files and deletes it, all in one transaction. Emptied by a crash of the server: the next walk fills it.
CREATE UNLOGGED TABLE claims (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id bigint NOT NULL REFERENCES sources,
    entries   bytea NOT NULL,                           -- as services/processor/claims.py packs them
    files     integer NOT NULL
);
CREATE INDEX claims_source ON claims (source_id);

GRANT SELECT, INSERT, UPDATE, DELETE ON claims TO ratchet_processor;
GRANT SELECT, INSERT, UPDATE ON groups, cluster_merges, score_histogram TO ratchet_processor;
GRANT SELECT, INSERT ON bands, units TO ratchet_processor;
GRANT SELECT ON rejections TO ratchet_processor, ratchet_trainer, ratchet_metrics;
GRANT USAGE ON SEQUENCE group_ids, cluster_ids TO ratchet_processor;
DO $$ BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO ratchet_processor', pg_get_serial_sequence('contents', 'id'));
END $$;
GRANT SELECT ON units, cluster_merges TO ratchet_trainer;
GRANT SELECT ON units, claims, groups, cluster_merges, score_histogram TO ratchet_metrics;
GRANT SELECT (characters, live, licence, redactions) ON contents TO ratchet_metrics;
