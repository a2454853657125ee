"""A few lines that say how things stand."""

import pytest

from services.cli.printing import progress
from services.core.models import HEARTBEAT_STALE, Service

TOTALS = {
    "files_accepted": 1417,
    "files_rejected": 106,
    "contents_above_threshold": 300,
    "quality_threshold": 70,
}


def beat(state, age=1.0, service="trainer", **detail):
    return {"service": service, "state": state, "age_seconds": age, "detail": detail}


def test_ingest_counts_what_was_stored_and_refused():
    text = progress.ingest(TOTALS, beat("idle"))
    assert text == "1,417 files stored, 106 rejected · 300 contents score 70 or more"


def test_a_walk_shows_where_it_is_and_how_fast():
    text = progress.ingest(TOTALS, beat("scanning", source="flask", files_per_s=88.4))
    assert text.endswith("reading flask at 88 files/s")


def test_a_round_shows_step_loss_rate_and_time_left():
    figures = {"step": 50, "total_steps": 200, "loss": 1.23456, "tokens_per_s": 1394.2, "eta_s": 125}
    text = progress.training(beat("training", round=3, **figures))
    assert (
        text
        == "round 3 · training · ━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ step 50/200 · loss 1.235 · 1,394 tokens/s · 2:05 left"
    )


def test_a_team_practises_and_shows_iteration_and_reward():
    figures = {"step": 12, "total_steps": 100, "loss": -0.003, "tokens_per_s": 640.0, "eta_s": 125}
    snapshot = {"operations": {"practice": [
        {"track": "marl", "round": 3, "metrics": {"reward": 0.4123}, "evaluated": {"solved": 0.375}},
    ]}}  # fmt: skip
    heard = beat("training", round=3, track="marl", **figures)
    text = progress.training(heard, progress.practising(snapshot, heard))
    assert text.startswith("round 3 · practising · ")
    assert "iteration 12/100 · reward 0.41 · 38 % of the validation tasks solved · 640 tokens/s" in text
    assert "loss" not in text


def test_before_anything_is_logged_a_team_counts_iterations_too():
    snapshot = {"tracks": [{"name": "marl", "objective": "reinforcement"}]}
    heard = beat("evaluating", round=3, track="marl", message="validation tasks", step=0, total_steps=8)
    text = progress.training(heard, progress.practising(snapshot, heard))
    assert text.startswith("round 3 · validation tasks · ")
    assert text.endswith("iteration 0/8")


def test_a_training_that_is_over_has_no_time_left():
    """The round goes on: its candidate is measured."""
    text = progress.training(beat("evaluating", round=3, step=8, total_steps=8, eta_s=0.0))
    assert "left" not in text


def test_a_state_without_words_of_its_own_does_not_say_that_a_model_is_loaded():
    assert progress.training(beat("starting", round=3)) == "round 3 · starting"


def test_another_tracks_round_is_no_practice():
    snapshot = {"operations": {"practice": [{"track": "marl", "round": 3, "metrics": {}, "evaluated": None}]}}
    assert progress.practising(snapshot, beat("training", round=3, track="demo")) is None
    assert progress.practising({}, beat("training", round=3, track="demo")) is None
    assert progress.practising(snapshot, None) is None


@pytest.mark.parametrize("missing", ["step", "total_steps", "loss", "tokens_per_s", "eta_s"])
def test_a_figure_not_known_yet_is_left_out(missing):
    """Every figure of a heartbeat may be null."""
    figures = {"step": 0, "total_steps": 200, "loss": 1.2, "tokens_per_s": 300.0, "eta_s": 60.0}
    text = progress.training(beat("training", round=1, **{**figures, missing: None}))
    assert "None" not in text


def test_waiting_says_for_how_many_files():
    assert progress.training(beat("idle", new_contents=40, needed=100)) == "waiting: 40 new files, 100 needed"


def test_an_error_says_why():
    assert progress.training(beat("error", message="no model")) == "cannot work · no model"


def test_a_silent_service_is_not_taken_for_a_living_one():
    """A heartbeat older than HEARTBEAT_STALE is of a process that is gone."""
    beats = [beat("training", age=HEARTBEAT_STALE + 1)]
    assert progress.newest(beats, Service.TRAINER) is None


def test_the_newest_heartbeat_counts():
    old, new = beat("stalled", age=20.0), beat("idle", age=2.0)
    assert progress.newest([old, new], Service.TRAINER) is new


def test_the_gate_tells_of_the_last_closed_round():
    rounds = [
        {"number": 3, "state": "open", "closed_at": None, "verdict": None},
        {"number": 2, "state": "refused", "closed_at": "now", "verdict": {"reason": "no better"}},
    ]
    assert progress.gate(rounds) == "round 2 refused: no better"
