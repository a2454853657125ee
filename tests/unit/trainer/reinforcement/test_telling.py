"""What a training tells of itself while it runs: its state, words, and how long it will take."""

from dataclasses import replace
from typing import Any

import pytest

from services.core.models import ServiceState
from services.trainer.engine.figures import Progress
from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement import loop
from services.trainer.reinforcement.figures import Evaluation, Hooks
from services.trainer.reinforcement.state import State
from services.trainer.reinforcement.telling import seconds_left
from tests.unit.trainer.reinforcement.fakes import FakeUpdate, setup

SETTINGS = Reinforcement(iterations=8, eval_interval=4)
AFTER_TWO = State(step=2, seconds=20.0, curve=(Evaluation(0, 0.5, 0.5, 4, 30.0),))


def left(state: State, elapsed: float = 0.0, *, evaluates: bool = False) -> float | None:
    return seconds_left(state, SETTINGS, elapsed, evaluates=evaluates)


def test_nothing_is_foretold_before_the_first_iteration() -> None:
    assert left(replace(AFTER_TWO, step=0)) is None


def test_evaluations_that_are_to_come_count() -> None:
    """Six iterations of 10 s, and two evaluations of 30 s: after the fourth and after the last."""
    assert left(AFTER_TWO) == 120.0


def test_what_is_under_way_counts_down_and_no_further() -> None:
    assert left(AFTER_TWO, 4.0) == 116.0
    assert left(AFTER_TWO, 400.0) == 110.0


def test_an_evaluation_under_way_counts() -> None:
    last = replace(AFTER_TWO, step=8, seconds=80.0)
    assert left(last, 10.0, evaluates=True) == 20.0
    assert left(last) == 0.0


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[Progress]:
    """By a training of two iterations, with an evaluation before and after them."""
    monkeypatch.setattr(loop, "update", FakeUpdate())
    heard: list[Progress] = []
    loop.train(setup(tmp_path, iterations=2, eval_samples=2), Hooks(beat=heard.append))
    return heard


def test_each_part_of_a_training_has_its_state_and_words(told: list[Progress]) -> None:
    writes = "coder writes, 1 of 2 answers"
    an_iteration = [
        (ServiceState.TRAINING, writes), (ServiceState.TRAINING, "learning from 8 episodes, step 1 of 4"),
        (ServiceState.TRAINING, None),
    ]  # fmt: skip
    assert [(each.state, each.doing) for each in told] == [
        (ServiceState.TRAINING, None),
        (ServiceState.EVALUATING, f"validation tasks before iteration 1: {writes}"),
        (ServiceState.TRAINING, None),
        *an_iteration,
        *an_iteration,
        (ServiceState.EVALUATING, f"validation tasks after iteration 2 of 2: {writes}"),
        (ServiceState.TRAINING, None),
    ]


def test_while_it_writes_its_speed_is_of_now(told: list[Progress]) -> None:
    assert {each.tokens_per_s for each in told if "writes" in (each.doing or "")} == {15.0}


def test_it_is_asked_to_stop_wherever_it_tells_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(loop, "update", FakeUpdate())
    heard: list[Progress | None] = []
    hooks = Hooks(beat=heard.append, check=lambda: heard.append(None))
    loop.train(setup(tmp_path, iterations=1, eval_samples=2), hooks)
    before = [heard[at - 1] for at, each in enumerate(heard) if each is not None and each.doing]
    assert before
    assert set(before) == {None}
