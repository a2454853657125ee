-- Health a track: who left in good order is not missed, and who died is not hidden by others.
-- Why it is this way: docs/decisions/0031-monitoring.md

-- The last that left in good order of the processors, or of the trainers of a track. It counts while none of
-- them has a heartbeat.
CREATE TABLE departures (
    service  text NOT NULL CHECK (service IN ('processor', 'trainer')),
    track    text NOT NULL,                             -- of a trainer; '' for the processors
    instance text NOT NULL,
    left_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (service, track)
);

GRANT SELECT, INSERT, UPDATE ON departures TO ratchet_processor, ratchet_trainer;
GRANT SELECT ON departures TO ratchet_metrics;
