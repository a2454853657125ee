-- Suites: what base, champion and candidate of a round scored, item by item, and what that comes to.

-- One suite under one model.
CREATE TABLE suite_reports (
    round_id    bigint NOT NULL REFERENCES rounds,
    subject     text NOT NULL CHECK (subject IN ('base', 'champion', 'candidate')),
    suite       text NOT NULL CHECK (suite <> ''),
    version     text NOT NULL,                          -- SHA-256 over its items: two versions do not compare
    items       integer NOT NULL CHECK (items >= 0),
    figures     jsonb NOT NULL,                         -- name → number: pass@1, exact_match, bits_per_byte, …
    seconds     double precision NOT NULL CHECK (seconds >= 0),
    from_cache  integer NOT NULL CHECK (from_cache >= 0), -- scores that were known already
    measured_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (round_id, subject, suite)
);

-- One item of it.
CREATE TABLE suite_scores (
    round_id   bigint NOT NULL,
    subject    text NOT NULL,
    suite      text NOT NULL,
    item       text NOT NULL,                           -- SHA-256 of all that decides its value but the weights
    metric     text NOT NULL CHECK (metric IN ('pass@1', 'exact_match', 'edit_similarity', 'keywords', 'nats')),
    name       text NOT NULL,                           -- for a person: HumanEval/12, src/app.py:40
    item_group text NOT NULL,                           -- items of a group are not independent
    value      double precision NOT NULL CHECK (value >= 0 AND value < 'Infinity'),
    weight     double precision NOT NULL CHECK (weight > 0 AND weight < 'Infinity'),
    detail     jsonb NOT NULL DEFAULT '{}',             -- what was written, why it failed: may quote others' code
    PRIMARY KEY (round_id, subject, suite, item, metric),
    FOREIGN KEY (round_id, subject, suite) REFERENCES suite_reports ON DELETE CASCADE,
    CHECK (value <= 1 OR metric = 'nats')
);

GRANT SELECT, INSERT, DELETE ON suite_reports TO ratchet_trainer;
GRANT SELECT, INSERT ON suite_scores TO ratchet_trainer;

-- Metrics see every score, and nothing of what was written.
GRANT SELECT ON suite_reports TO ratchet_metrics;
GRANT SELECT (round_id, subject, suite, item, metric, name, item_group, value, weight)
    ON suite_scores TO ratchet_metrics;
