-- Solutions: programs that passed their tests in reinforcement, to be learned from by fine-tuning (rejection
-- sampling, Yuan et al. 2023), and some episodes for the page of a round. Why: docs/how-to/rejection-sampling.md

-- One program that passed all tests of its task. Its text is a model's; nothing in it is of a repository.
CREATE TABLE solutions (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id    bigint NOT NULL REFERENCES tasks,
    prompt     text NOT NULL,                           -- the task as a model is asked without other agents
    code       text NOT NULL,
    sha256     bytea NOT NULL CHECK (octet_length(sha256) = 32),  -- of the code
    round_id   bigint REFERENCES rounds,                -- of reinforcement, that wrote it; NULL: not known
    source     text NOT NULL DEFAULT 'rollout' CHECK (source IN ('rollout')),
    passed_at  timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz,                             -- others of its task say more, or it was withdrawn, since
    UNIQUE (task_id, sha256),
    CHECK (code <> '' OR retired_at IS NOT NULL)        -- '': withdrawn; it is never offered again
);
CREATE INDEX solutions_offered ON solutions (task_id, id) WHERE retired_at IS NULL;
CREATE INDEX solutions_round ON solutions (round_id);

-- Only what may be trained on: whatever the code does, no task that judges gives a solution.
CREATE FUNCTION refuse_judging_solution() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = public, pg_temp AS
$$
DECLARE judging bigint;
BEGIN
    SELECT a.task_id INTO judging
    FROM after_it a JOIN tasks t ON t.id = a.task_id
    WHERE t.split <> 'train' OR t.excluded IS NOT NULL
       OR a.round_id IS NOT NULL
          AND NOT EXISTS (SELECT FROM round_tasks rt
                          WHERE rt.round_id = a.round_id AND rt.task_id = a.task_id AND rt.role = 'train')
    LIMIT 1;
    IF judging IS NOT NULL THEN
        RAISE EXCEPTION 'task % gives no solution to train on: it is no task that its round trained on', judging;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER solution_may_be_learned AFTER INSERT ON solutions
    REFERENCING NEW TABLE AS after_it FOR EACH STATEMENT EXECUTE FUNCTION refuse_judging_solution();

-- The solutions in a round's snapshot, behind its contents.
CREATE TABLE round_solutions (
    round_id    bigint NOT NULL REFERENCES rounds ON DELETE CASCADE,
    solution_id bigint NOT NULL REFERENCES solutions,
    position    integer NOT NULL CHECK (position >= 0),
    seen        bigint CHECK (seen >= 0),               -- times that it was in a step; NULL: nothing was published
    PRIMARY KEY (round_id, solution_id),
    UNIQUE (round_id, position)
);
CREATE INDEX round_solutions_solution ON round_solutions (solution_id);

-- Some episodes of a round as its agents wrote them, of its first and its latest evaluation or rollout.
CREATE TABLE round_episodes (
    round_id  bigint NOT NULL REFERENCES rounds ON DELETE CASCADE,
    iteration integer NOT NULL CHECK (iteration >= 0),
    number    smallint NOT NULL CHECK (number BETWEEN 1 AND 8),
    task_id   bigint NOT NULL REFERENCES tasks,
    prompt    text NOT NULL,                            -- what was asked, cut
    turns     jsonb NOT NULL CHECK (octet_length(turns::text) <= 16384),  -- [{role, text, left_out}], in order
    reward    double precision NOT NULL,
    solved    boolean NOT NULL,
    result    text NOT NULL,                            -- of the last program
    PRIMARY KEY (round_id, iteration, number)
);

-- What events say of a team's rounds: its gain in points of pass rate, and the tasks that it practises.
CREATE OR REPLACE FUNCTION gain_percent(verdict jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
    SELECT CASE WHEN jsonb_typeof(verdict -> 'improvement') = 'number' AND verdict ->> 'metric' IS DISTINCT FROM 'rate'
                THEN round(100 * (verdict ->> 'improvement')::numeric, 2) END
$$;

CREATE FUNCTION gain_points(verdict jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
    SELECT CASE WHEN jsonb_typeof(verdict -> 'improvement') = 'number' AND verdict ->> 'metric' = 'rate'
                THEN jsonb_build_object('gain_points', round(100 * (verdict ->> 'improvement')::numeric, 2))
                ELSE '{}' END
$$;

CREATE OR REPLACE FUNCTION round_started(r rounds) RETURNS jsonb LANGUAGE sql STABLE AS
$$
    SELECT jsonb_build_object(
        'contents', (SELECT count(*) FROM round_contents WHERE round_id = r.id AND role = 'train'),
        'continues_from', (SELECT directory FROM adapters WHERE id = r.parent_adapter_id))
        || CASE WHEN r.recipe ->> 'objective' = 'reinforcement' THEN jsonb_build_object(
               'tasks', (SELECT count(*) FROM round_tasks WHERE round_id = r.id AND role = 'train')) ELSE '{}' END
$$;

CREATE OR REPLACE FUNCTION round_closed(r rounds) RETURNS jsonb LANGUAGE sql STABLE AS
$$
    SELECT jsonb_build_object(
        'reason', left(r.verdict ->> 'reason', 1000),
        'gain_percent', gain_percent(r.verdict),
        'against', r.verdict ->> 'against',
        'attempts', r.attempts) || coalesce(gain_points(r.verdict), '{}')
$$;

CREATE OR REPLACE FUNCTION move_payload(p promotions) RETURNS jsonb LANGUAGE sql STABLE AS
$$
    SELECT jsonb_build_object('actor', p.actor, 'reason', left(p.reason, 1000))
        || CASE WHEN p.kind IN ('promoted', 'rolled_back') THEN jsonb_build_object('before', (
               SELECT a.directory FROM promotions e LEFT JOIN adapters a ON a.id = e.adapter_id
               WHERE e.track = p.track AND e.id < p.id AND e.kind IN ('promoted', 'rolled_back')
               ORDER BY e.id DESC LIMIT 1)) ELSE '{}' END
        || CASE WHEN p.kind = 'promoted' THEN coalesce((
               SELECT jsonb_build_object('gain_percent', gain_percent(r.verdict)) || gain_points(r.verdict)
               FROM adapters a JOIN rounds r ON r.id = a.round_id
               WHERE a.id = p.adapter_id), '{"gain_percent": null}') ELSE '{}' END
$$;

REVOKE EXECUTE ON FUNCTION refuse_judging_solution, gain_points FROM PUBLIC;
GRANT SELECT, INSERT, UPDATE ON solutions, round_solutions TO ratchet_trainer;
GRANT SELECT, INSERT, DELETE ON round_episodes TO ratchet_trainer;
GRANT SELECT ON solutions, round_solutions, round_episodes TO ratchet_metrics;
