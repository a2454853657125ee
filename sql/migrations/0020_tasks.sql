-- Tasks: programs to be written, and the tests that say whether they are right. What reinforcement learns from.
-- Why: docs/explanation/reinforcement.md

-- Where the tasks of a set came from when they were last read. The row is locked while they are written.
CREATE TABLE task_sets (
    name      text PRIMARY KEY,                         -- easy, or NAME of TASKS_DIR/NAME.train.jsonl
    signature text,                                     -- of the files as they were read; NULL: read them again
    source    text,                                     -- for a person: the files, or what generated them
    read_at   timestamptz
);

-- One task as it was read. A task that changed is a new row, and the old one is retired: rounds refer to them.
CREATE TABLE tasks (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_set      text NOT NULL REFERENCES task_sets,
    name          text NOT NULL,                        -- HumanEval/12
    sha256        bytea NOT NULL CHECK (octet_length(sha256) = 32),        -- of all of it
    prompt_sha256 bytea NOT NULL CHECK (octet_length(prompt_sha256) = 32), -- of what it asks, however it is spelt
    task_group    text NOT NULL,                        -- a split never divides a group
    split         text NOT NULL CHECK (split IN ('train', 'validation', 'test')),
    style         text NOT NULL CHECK (style IN ('check', 'unittest', 'assert')),
    payload       jsonb NOT NULL,                       -- fields of suites.formats.Task
    source        text NOT NULL,                        -- file and line, or the generator
    excluded      text,                                 -- why no round may have it; NULL: it may
    added_at      timestamptz NOT NULL DEFAULT now(),
    retired_at    timestamptz,                          -- no longer in its set since
    UNIQUE (task_set, sha256)
);
CREATE UNIQUE INDEX tasks_name ON tasks (task_set, name) WHERE retired_at IS NULL;

-- What a round trains on and is judged by, beside or instead of contents. Written once, with its round.
CREATE TABLE round_tasks (
    round_id bigint NOT NULL REFERENCES rounds ON DELETE CASCADE,
    task_id  bigint NOT NULL REFERENCES tasks,
    role     text NOT NULL CHECK (role IN ('train', 'validation', 'held_out')),
    position integer NOT NULL CHECK (position >= 0),
    PRIMARY KEY (round_id, task_id),
    UNIQUE (round_id, role, position)
);
CREATE INDEX round_tasks_task ON round_tasks (task_id);

-- How often the published adapters were trained on each task.
CREATE TABLE task_exposures (
    round_id bigint NOT NULL REFERENCES rounds ON DELETE CASCADE,
    task_id  bigint NOT NULL REFERENCES tasks,
    episodes bigint NOT NULL CHECK (episodes >= 0),
    solved   bigint NOT NULL CHECK (solved BETWEEN 0 AND episodes),
    tokens   bigint NOT NULL CHECK (tokens >= 0),       -- written by all agents in those episodes
    PRIMARY KEY (round_id, task_id)
);

GRANT SELECT, INSERT, UPDATE ON task_sets, tasks TO ratchet_trainer;
GRANT SELECT, INSERT ON round_tasks TO ratchet_trainer;
GRANT SELECT, INSERT, DELETE ON task_exposures TO ratchet_trainer;
GRANT SELECT ON task_sets, tasks, round_tasks, task_exposures TO ratchet_metrics;
