"""Where a training is, to JSON and back."""

import json

from services.trainer.reinforcement.figures import Evaluation, Iteration
from services.trainer.reinforcement.state import State, from_json
from tests.unit.trainer.reinforcement.fakes import episode, tasks


def iteration(step, reward, kl=0.1, loss=0.5):
    return Iteration(
        step=step, total_steps=9, episodes=2, reward=reward, solved=reward, tokens=6, rollout_seconds=1.0,
        update_seconds=0.5, learning_rate=0.1, update={"kl_reference": kl, "policy_loss": loss},
        tokens_of={"coder": 6},
    )  # fmt: skip


def after(*rewards):
    state = State()
    for step, reward in enumerate(rewards, start=1):
        state = state.after_iteration(iteration(step, reward), [episode(tasks(1)[0], reward > 0)])
    return state


def test_a_fresh_state_survives_json():
    assert from_json(json.loads(json.dumps(State().as_json(), allow_nan=False))) == State()


def test_a_state_survives_json():
    state = after(0.5, 0.0, 1.0).after_evaluation(Evaluation(3, 0.75, 0.5, 8, 1.0))
    assert from_json(json.loads(json.dumps(state.as_json(), allow_nan=False))) == state


def test_a_loss_that_is_no_number_is_none_in_json():
    state = State().after_iteration(iteration(1, 0.5, loss=float("nan")), [])
    assert state.policy_loss is None


def test_an_evaluation_of_other_weights_does_not_count():
    state = after(0.5).after_evaluation(Evaluation(1, 0.75, 0.5, 8, 1.0))
    assert state.is_evaluated
    assert not state.after_iteration(iteration(2, 0.5), []).is_evaluated
