-- Held-out sets: which contents every round is judged by, and which of their bytes count.

-- Held-out contents of the track's first judged round: later ones are judged by them too, so that rounds compare.
CREATE TABLE anchors (
    track      text NOT NULL REFERENCES tracks,
    content_id bigint NOT NULL REFERENCES contents,
    round_id   bigint NOT NULL REFERENCES rounds,       -- the round that chose it
    PRIMARY KEY (track, content_id)
);

ALTER TABLE rounds
    ADD held_out jsonb;                                 -- kind of split, time, version, numbers; NULL: an older round
ALTER TABLE round_contents
    ADD judged jsonb;                                   -- [[start, end], …], bytes that count; NULL: all of them
ALTER TABLE evaluations
    ADD correct integer,                                -- tokens predicted right; NULL: not counted then
    ADD CHECK (correct BETWEEN 0 AND tokens);

GRANT SELECT, INSERT ON anchors TO ratchet_trainer;
GRANT SELECT ON anchors TO ratchet_metrics;
