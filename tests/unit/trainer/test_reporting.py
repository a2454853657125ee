"""What the heartbeat says of a training's progress."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from services.core.models import ServiceState
from services.trainer.engine.figures import Progress
from services.trainer.heartbeat import Beat, Heart, read
from services.trainer.reporting import Reporter

STEP = Progress(step=3, total_steps=10, loss=1.5, tokens_per_s=200.0, eta_s=60.0)


@pytest.fixture
def beat(tmp_path: Any) -> Any:
    """The heartbeat after a progress, on a device."""

    def told(progress: Progress, device: str = "cpu") -> Beat:
        shared = SimpleNamespace(is_first=False, device=torch.device(device))
        context = SimpleNamespace(distribution=shared, heart=Heart(tmp_path))
        Reporter(context, SimpleNamespace(parent=None), {}).on_progress(progress)  # type: ignore[arg-type]
        found = read(tmp_path)
        assert found is not None
        return found

    return told


def test_a_step_is_training(beat: Any) -> None:
    found = beat(STEP)
    assert (found.state, found.message, found.step, found.tokens_per_s) == (
        ServiceState.TRAINING, None, 3, 200.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("device", "said"),
    [("cpu", "taking the first step"), ("cuda", "taking the first step, in which layers are compiled")],
)
def test_before_the_first_step_is_done_it_says_that_it_takes_it(beat: Any, device: str, said: str) -> None:
    """It may take as long as loading a model does; a speed is not known yet."""
    found = beat(Progress(step=0, total_steps=10, loss=None, tokens_per_s=0.0, eta_s=None), device)
    assert (found.state, found.message, found.tokens_per_s) == (ServiceState.STARTING, said, None)


def test_a_state_that_is_named_holds_before_there_is_a_speed(beat: Any) -> None:
    progress = Progress(
        step=0, total_steps=8, loss=None, tokens_per_s=0.0, eta_s=None, doing="coder writes",
        state=ServiceState.EVALUATING,
    )  # fmt: skip
    found = beat(progress)
    assert (found.state, found.message) == (ServiceState.EVALUATING, "coder writes")


def test_what_has_happened_is_told_before_what_is_under_way(beat: Any) -> None:
    progress = Progress(3, 10, 1.5, 200.0, 60.0, message="collapsed", doing="learning")
    assert beat(progress).message == "collapsed"
