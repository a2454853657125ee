"""A round in which a team practises while one looks: overview, its page, metrics."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from flask.testing import FlaskClient

from services.core.db import Database, as_json
from services.core.models import Service, ServiceState
from services.core.target import Target
from tests.integration.metrics.test_rounds import client_of, database_of, read
from tests.metrics_history import TEAM

DETAIL = {"track": TEAM, "round": 2, "attempt": 1, "step": 12, "total_steps": 100, "eta_s": 1800.0,
          "loss": -0.004, "tokens_per_s": 610.0, "new_contents": 3, "needed": 5}  # fmt: skip
POINTS = (
    ("eval", 10, {"solved": 0.375, "reward": 0.375}),
    ("train", 12, {"reward": 0.4123, "solved": 0.375, "kl_reference": 0.0123, "loss": -0.004,
                   "roles": {"analyzer": {"kl_reference": 0.0101}, "coder": {"kl_reference": 0.0123}}}),
)  # fmt: skip


def practising(target: Target) -> None:
    """The team's second round runs, the other track's does not."""
    with closing(Database(target)) as database, database.transaction() as tx:
        cursor = tx._cursor
        cursor.execute("UPDATE rounds SET state = 'failed', closed_at = now() WHERE state = 'open'")
        cursor.execute("DELETE FROM heartbeats WHERE service = 'trainer'")
        cursor.execute(
            "INSERT INTO rounds (track, number, recipe, snapshot_hash, attempts)"
            " SELECT track, 2, recipe, 'tasks', 1 FROM rounds WHERE track = %s RETURNING id", (TEAM,),
        )  # fmt: skip
        round_id = cursor.fetchone()[0]
        for kind, step, metrics in POINTS:
            tx.execute("record_progress", round_id=round_id, kind=kind, step=step, metrics=as_json(metrics))
        tx.execute("beat", service=Service.TRAINER, instance="trainer-1:1", state=ServiceState.TRAINING,
                   detail=as_json(DETAIL))  # fmt: skip


@pytest.fixture(scope="module")
def target(server: Target, history_template: str) -> Iterator[Target]:
    with database_of(server, history_template, "practising") as target:
        practising(target)
        yield target


@pytest.fixture(scope="module")
def client(target: Target) -> Iterator[FlaskClient]:
    with client_of(target) as client:
        yield client


def test_the_overview_says_how_far_the_team_is(client: FlaskClient) -> None:
    text = read(client, "/")
    assert "Practising in round 2 of demo-marl" in text
    assert "Iteration 12 of 100 Reward 0.41 Validation tasks solved 37.5 %" in text
    assert "New, with those of round 2 3 new tasks, 5 needed" in text
    assert "Loss" not in text


def said_by_its_trainer(target: Target, state: ServiceState, **detail: object) -> None:
    with closing(Database(target)) as database, database.transaction() as tx:
        tx.execute("beat", service=Service.TRAINER, instance="trainer-1:1", state=state,
                   detail=as_json({**DETAIL, **detail}))  # fmt: skip


def test_an_evaluation_is_no_start(target: Target) -> None:
    """While validation tasks are solved before the first iteration."""
    words = "validation tasks before iteration 1: coder writes, 3 of 19 answers"
    said_by_its_trainer(target, ServiceState.EVALUATING, step=0, message=words, eta_s=None)
    with client_of(target) as client:
        text = read(client, "/")
        assert "Measuring in round 2 of demo-marl" in text
        assert words in text
        assert "evaluating: " + words in read(client, f"/rounds/{TEAM}/2")
    said_by_its_trainer(target, ServiceState.TRAINING)


def test_more_that_is_new_than_is_needed_fills_the_bar_and_no_more(target: Target) -> None:
    said_by_its_trainer(target, ServiceState.TRAINING, new_contents=209, needed=1)
    with client_of(target) as client:
        assert "New, with those of round 2 209 new tasks, 1 needed" in read(client, "/")
        assert 'max="1" value="1"' in client.get("/").text
    said_by_its_trainer(target, ServiceState.TRAINING)


def test_its_page_says_where_it_stands(client: FlaskClient) -> None:
    text = read(client, f"/rounds/{TEAM}/2")
    assert "Iteration 12 of 100 Reward 0.41 of an episode" in text
    assert "Distance to the base 0.012 nats a token" in text
    assert "No episode is kept yet" in text


def test_a_scraper_hears_of_it_without_a_label_of_the_round(client: FlaskClient) -> None:
    told = client.get("/metrics?format=prometheus").text
    assert 'ratchet_reinforcement_reward{track="demo-marl"} 0.4123' in told
    assert 'ratchet_reinforcement_validation_pass_ratio{track="demo-marl"} 0.375' in told
    assert 'ratchet_reinforcement_role_kl_reference{role="coder",track="demo-marl"} 0.0123' in told
    assert 'ratchet_held_out_pass_ratio{subject="candidate",track="demo-marl"} 0.5' in told
    assert 'ratchet_reinforcement_reward{track="demo"}' not in told


def test_the_api_has_its_tasks_and_the_figures_of_its_agents(client: FlaskClient) -> None:
    round_ = client.get(f"/api/v1/rounds/{TEAM}/1").get_json()
    assert round_["objective"] == "reinforcement"
    assert {"role": "train", "task_set": "easy", "tasks": 36} in round_["tasks"]
    points = client.get(f"/api/v1/rounds/{TEAM}/2/losses").get_json()["points"]
    assert points[-1]["roles"] == {"analyzer": {"kl_reference": 0.0101}, "coder": {"kl_reference": 0.0123}}
    assert "roles" not in points[-1]["metrics"]
    (adapter,) = client.get("/api/v1/adapters", query_string={"track": TEAM}).get_json()["items"]
    assert adapter["roles"] == ["analyzer", "coder"]
