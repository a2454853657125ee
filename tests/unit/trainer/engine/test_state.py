"""Who shared which steps: kept with a training's state, through checkpoints and changes."""

import json

import pytest

from services.trainer.engine.state import TrainingState, from_json


def test_a_training_says_how_many_processes_shared_its_steps() -> None:
    """From the first step on, and from each at which their number changed."""
    state = TrainingState().shared_by(2).after_step(1.0, 5, 0.1, 0.0)
    assert state.shared_by(2) == state
    again = from_json(json.loads(json.dumps(state.as_json())))
    assert again == state
    assert again.shared_by(4).processes == ((0, 2), (1, 4))


@pytest.mark.parametrize("step", [0, 3])
def test_an_older_checkpoint_does_not_say_it(step: int) -> None:
    """What is known begins at the step that it is gone on from."""
    fields = TrainingState(step=step).as_json()
    del fields["processes"]
    assert from_json(fields).shared_by(1).processes == ((step, 1),)
