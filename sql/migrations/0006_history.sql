-- What evaluation must know of a text's past: when each of its lines was first written, and which of its units
-- stand elsewhere too.

-- Of the text that the file holds now, or held when its history was read last.
ALTER TABLE files
    ADD line_times jsonb,                               -- [[first line, last line, seconds since 1970], …], from 1;
                                                        -- lines that are not named have no known time
    ADD lines_of   bigint REFERENCES contents,          -- the text whose lines these are: another one's are stale
    ADD lines_at   text,                                -- commit_id as it was then: once committed, an edit has a time
    ADD CHECK ((line_times IS NULL) = (lines_of IS NULL));
ALTER TABLE sources
    ADD lines_id    text,                               -- commit up to which the times of lines were read
    ADD lines_since timestamptz;                        -- the walk for them was broken off there; NULL: it was not

-- 8 bytes over a unit's code without comments, docstrings and white space: equal where it was copied.
ALTER TABLE units
    ADD fingerprint bigint;                             -- NULL: too small to matter, or not judged again yet
CREATE INDEX units_fingerprint ON units (fingerprint) INCLUDE (content_id) WHERE fingerprint IS NOT NULL;
ALTER TABLE contents
    ADD units_version integer NOT NULL DEFAULT 0;       -- that its units were fingerprinted by; 0: not at all

GRANT UPDATE ON units TO ratchet_processor;
GRANT SELECT (units_version) ON contents TO ratchet_metrics;
