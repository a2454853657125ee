-- The ledger: what came in, what was trained on, what was published. Words as in docs/explanation/words.md.

-- One repository in the ingest volume.
CREATE TABLE sources (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL UNIQUE,               -- first path component below the ingest volume
    first_seen_at   timestamptz NOT NULL DEFAULT now(),
    last_scanned_at timestamptz
);

-- One text, addressed by the SHA-256 of its UTF-8 bytes, stored once.
CREATE TABLE contents (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256         bytea NOT NULL UNIQUE CHECK (octet_length(sha256) = 32),
    cluster_id     bigint NOT NULL,                     -- oldest content it descends from; a split never divides a cluster
    language       text NOT NULL,
    text           text NOT NULL,
    bytes          integer NOT NULL CHECK (bytes > 0),
    lines          integer NOT NULL CHECK (lines > 0),
    score          smallint NOT NULL CHECK (score BETWEEN 0 AND 100),
    score_reasons  jsonb NOT NULL,                      -- reason → points
    scorer_version integer NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX contents_best_first ON contents (score DESC, id);
CREATE INDEX contents_cluster ON contents (cluster_id);

-- One path of a source: it holds a content, or it was rejected for a reason; never both, never neither.
CREATE TABLE files (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id  bigint NOT NULL REFERENCES sources,
    path       text NOT NULL,                           -- below the source; undecodable bytes as \xNN
    size_bytes bigint NOT NULL,
    mtime_ns   bigint NOT NULL,                         -- size and mtime unchanged: not read again
    content_id bigint REFERENCES contents,
    cluster_id bigint,                                  -- of the last content it held, kept while it is rejected
    reason     text,                                    -- stable code of the rejection
    detail     text,                                    -- its figures, for a person
    seen_at    timestamptz NOT NULL DEFAULT now(),      -- last time it was read and judged
    retired_at timestamptz,                             -- no longer in the ingest volume since
    UNIQUE (source_id, path),
    CHECK ((content_id IS NULL) <> (reason IS NULL))
);
CREATE INDEX files_content ON files (content_id) WHERE retired_at IS NULL;

CREATE VIEW rejections AS
    SELECT s.name AS source, f.path, f.reason, f.detail, f.seen_at
    FROM files f JOIN sources s ON s.id = f.source_id
    WHERE f.reason IS NOT NULL AND f.retired_at IS NULL;

-- A recipe's line of descent, and who may train it now.
CREATE TABLE tracks (
    name             text PRIMARY KEY,                  -- the recipe's name
    recipe           jsonb NOT NULL,                    -- as resolved by the daemon that last took the track
    token            bigint NOT NULL DEFAULT 0,         -- fencing token: grows with every lease
    lease_holder     text,
    lease_expires_at timestamptz,
    created_at       timestamptz NOT NULL DEFAULT now()
);

-- One snapshot + one recipe → one candidate.
CREATE TABLE rounds (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    track             text NOT NULL REFERENCES tracks,
    number            integer NOT NULL CHECK (number > 0),
    state             text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'promoted', 'refused', 'failed')),
    recipe            jsonb NOT NULL,
    parent_adapter_id bigint,                           -- the champion it continues from
    snapshot_hash     text NOT NULL,                    -- SHA-256 over role and content hash, in order
    attempts          integer NOT NULL DEFAULT 0,       -- times a child process was started for it
    training          jsonb,                            -- figures of the finished training
    verdict           jsonb,                            -- the gate's decision, reasons and figures
    opened_at         timestamptz NOT NULL DEFAULT now(),
    closed_at         timestamptz,
    UNIQUE (track, number),
    CHECK ((state = 'open') = (closed_at IS NULL))
);
CREATE UNIQUE INDEX rounds_one_open_per_track ON rounds (track) WHERE state = 'open';

-- The snapshot: what a round trains on and is judged by. Written once, with its round.
CREATE TABLE round_contents (
    round_id   bigint NOT NULL REFERENCES rounds,
    content_id bigint NOT NULL REFERENCES contents,
    role       text NOT NULL CHECK (role IN ('train', 'validation', 'held_out')),
    position   integer NOT NULL,
    PRIMARY KEY (round_id, content_id),
    UNIQUE (round_id, role, position)
);
CREATE INDEX round_contents_content ON round_contents (content_id);

-- Clusters that no round of the track may ever train on.
CREATE TABLE held_out_clusters (
    track      text NOT NULL REFERENCES tracks,
    cluster_id bigint NOT NULL,
    role       text NOT NULL CHECK (role IN ('validation', 'held_out')),
    round_id   bigint NOT NULL REFERENCES rounds,       -- the round that set it aside
    PRIMARY KEY (track, cluster_id)
);

-- What the champion has learned from: filled only by the transaction that promotes a round.
CREATE TABLE trained (
    track      text NOT NULL REFERENCES tracks,
    content_id bigint NOT NULL REFERENCES contents,
    round_id   bigint NOT NULL REFERENCES rounds,
    PRIMARY KEY (track, content_id)                     -- nothing is trained twice
);

CREATE TABLE evaluations (
    round_id   bigint NOT NULL REFERENCES rounds,
    subject    text NOT NULL CHECK (subject IN ('base', 'champion', 'candidate')),
    content_id bigint NOT NULL REFERENCES contents,
    nats       double precision NOT NULL CHECK (nats >= 0 AND nats < 'Infinity'),
    tokens     integer NOT NULL,
    bytes      integer NOT NULL CHECK (bytes > 0),
    PRIMARY KEY (round_id, subject, content_id)
);

CREATE TABLE adapters (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    track        text NOT NULL REFERENCES tracks,
    round_id     bigint NOT NULL UNIQUE REFERENCES rounds,
    directory    text NOT NULL,                         -- below adapters/<track>/
    manifest     jsonb NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE rounds ADD FOREIGN KEY (parent_adapter_id) REFERENCES adapters;

-- Every move of a champion, append-only; the newest row of a track names the champion.
CREATE TABLE promotions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    track       text NOT NULL REFERENCES tracks,
    adapter_id  bigint NOT NULL REFERENCES adapters,
    token       bigint NOT NULL,                        -- the lease it was made under
    reason      text NOT NULL,
    promoted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX promotions_champion ON promotions (track, id DESC);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;
CREATE TRIGGER promotions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON promotions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What a round logged while it ran: losses, rates.
CREATE TABLE progress (
    round_id  bigint NOT NULL REFERENCES rounds,
    step      integer NOT NULL,
    kind      text NOT NULL CHECK (kind IN ('train', 'eval')),
    metrics   jsonb NOT NULL,
    logged_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (round_id, kind, step)
);

-- The last sign of life of every running service.
CREATE TABLE heartbeats (
    service    text NOT NULL CHECK (service IN ('processor', 'trainer')),
    instance   text NOT NULL,                           -- host and process
    state      text NOT NULL,                           -- as in services/core/models.py
    detail     jsonb NOT NULL DEFAULT '{}',
    started_at timestamptz NOT NULL DEFAULT now(),
    beat_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (service, instance)
);
