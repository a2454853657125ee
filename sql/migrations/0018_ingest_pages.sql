-- What the pages of ingest show, at a cost that does not grow with the files: counts and rates as they are kept,
-- refusals of a source in order, looks at sources, one text at a time.

-- How many files are in the ingest volume now, by source, by what became of them and by language.
CREATE TABLE file_counts (
    source_id bigint NOT NULL,
    reason    text NOT NULL,                            -- of the refusal; '': it holds a content
    language  text NOT NULL,                            -- '': not recognised
    files     bigint NOT NULL,
    PRIMARY KEY (source_id, reason, language)
);

-- How many files were read and judged in which minute.
CREATE TABLE files_read (
    minute  timestamptz PRIMARY KEY,
    kept    bigint NOT NULL,
    refused bigint NOT NULL
);

CREATE FUNCTION count_files() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS
$$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO file_counts AS was
        SELECT source_id, coalesce(reason, ''), coalesce(language, ''), count(*)
        FROM after_it WHERE retired_at IS NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (source_id, reason, language) DO UPDATE SET files = was.files + excluded.files;
        INSERT INTO files_read AS was
        SELECT date_trunc('minute', seen_at), count(*) FILTER (WHERE reason IS NULL), count(reason)
        FROM after_it GROUP BY 1 ORDER BY 1
        ON CONFLICT (minute) DO UPDATE
        SET kept = was.kept + excluded.kept, refused = was.refused + excluded.refused;
        RETURN NULL;
    END IF;
    INSERT INTO file_counts AS was
    SELECT source_id, coalesce(reason, ''), coalesce(language, ''), sum(change)
    FROM (SELECT source_id, reason, language, 1 AS change FROM after_it WHERE retired_at IS NULL
          UNION ALL
          SELECT source_id, reason, language, -1 FROM before_it WHERE retired_at IS NULL) AS changes
    GROUP BY 1, 2, 3 HAVING sum(change) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (source_id, reason, language) DO UPDATE SET files = was.files + excluded.files;
    INSERT INTO files_read AS was
    SELECT date_trunc('minute', a.seen_at), count(*) FILTER (WHERE a.reason IS NULL), count(a.reason)
    FROM after_it a JOIN before_it b ON b.id = a.id
    WHERE a.seen_at <> b.seen_at
    GROUP BY 1 ORDER BY 1
    ON CONFLICT (minute) DO UPDATE
    SET kept = was.kept + excluded.kept, refused = was.refused + excluded.refused;
    RETURN NULL;
END $$;
CREATE TRIGGER files_counted AFTER INSERT ON files
    REFERENCING NEW TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER files_counted_again AFTER UPDATE ON files
    REFERENCING NEW TABLE AS after_it OLD TABLE AS before_it FOR EACH STATEMENT EXECUTE FUNCTION count_files();

-- The triggers lock out writers until this commits, so nothing is missed. Of what was read before, the last time
-- of each file is known.
INSERT INTO file_counts
SELECT source_id, coalesce(reason, ''), coalesce(language, ''), count(*)
FROM files WHERE retired_at IS NULL GROUP BY 1, 2, 3;
INSERT INTO files_read
SELECT date_trunc('minute', seen_at), count(*) FILTER (WHERE reason IS NULL), count(reason)
FROM files WHERE seen_at > now() - interval '2 days' GROUP BY 1;

-- Refusals of a source, of one reason after the other.
CREATE INDEX files_refused_by ON files (source_id, reason, id) WHERE reason IS NOT NULL AND retired_at IS NULL;

-- Looks at a source that found something new, the last hundred: written by the processor at their end.
CREATE TABLE looks (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id bigint NOT NULL REFERENCES sources,
    ended_at  timestamptz NOT NULL DEFAULT now(),
    seconds   double precision NOT NULL CHECK (seconds >= 0),
    commit_id text,                                     -- that was read; NULL: no repository
    kept      integer NOT NULL,                         -- files that hold a content now
    refused   integer NOT NULL,
    unchanged integer NOT NULL,                         -- not read again
    retired   integer NOT NULL,                         -- no longer there
    renamed   integer NOT NULL
);
CREATE INDEX looks_of_source ON looks (source_id, id DESC);

-- One text, for its page: never one that was taken back. The role that shows it cannot read `contents.text`: it
-- asks for what a person has asked it for, text by text.
CREATE FUNCTION shown_text(of_content bigint) RETURNS text LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
    SELECT c.text FROM contents c
    WHERE c.id = of_content AND c.text <> ''
      AND NOT EXISTS (SELECT FROM forgotten_contents fc JOIN forgettings f ON f.id = fc.forgetting_id
                      WHERE fc.content_id = c.id AND f.remembered_at IS NULL)
$$;

REVOKE EXECUTE ON FUNCTION count_files, shown_text FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shown_text TO ratchet_metrics;
GRANT SELECT, INSERT, DELETE ON looks TO ratchet_processor;
GRANT SELECT ON file_counts, files_read, looks TO ratchet_metrics;
