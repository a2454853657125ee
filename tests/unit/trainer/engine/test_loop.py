"""The training loop, with models of two layers."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from services.core.errors import RoundError
from services.trainer import checkpoints
from services.trainer.engine import optimizer as optimizers
from services.trainer.engine.figures import Training
from services.trainer.interruption import Interrupted
from tests.unit.trainer.engine import tiny
from tests.unit.trainer.engine.tiny import Round, adapted, recipe

TIMES = ("seconds", "tokens_per_s", "input_stall", "peak_memory_bytes")


def timeless(training: Training) -> dict[str, Any]:
    return {name: value for name, value in training.as_json().items() if name not in TIMES}


def randomness() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002  the one that libraries use
    return torch.get_rng_state().tolist(), name, keys.tolist(), rest, random.getstate()


def test_training_learns(tmp_path: Path) -> None:
    """The validation loss falls; the best state is the one left in the model."""
    one = Round(tmp_path, recipe(epochs=6, early_stopping_threshold=0))
    training = one.train()
    curve = [metrics["eval_loss"] for kind, _, metrics in one.logged if kind == "eval"]
    assert curve[-1] < curve[0] - 0.1
    assert training.eval_loss == min(curve)
    assert training.steps == training.total_steps == one.setup.steps
    saved = checkpoints.read(checkpoints.path_of(tmp_path, training.best_step), "all").weights
    assert all(torch.equal(value, saved[name]) for name, value in one.weights.items())


@pytest.mark.parametrize("micro_batch_asked", [3, 9, 14])
def test_resumed_is_as_never_interrupted(tmp_path: Path, micro_batch_asked: int) -> None:
    """Weights, moments, generators, patience, best metric: bit for bit, with dropout, stopped in a step."""
    chosen = recipe(lora_dropout=0.1, early_stopping_threshold=0.5, early_stopping_patience=4)

    def run(folder: Path, stop_at: int | None) -> Round:
        asked = 0

        def stop(_: Round) -> bool:
            nonlocal asked
            asked += 1
            return asked == stop_at

        one = Round(folder, chosen, adapted(dropout=0.1))
        one.training = one.train(stop)
        return one

    whole = run(tmp_path / "whole", None)
    expected = randomness()
    torch.manual_seed(99)
    with pytest.raises(Interrupted):
        run(tmp_path / "parts", micro_batch_asked)
    assert checkpoints.newest_valid(tmp_path / "parts") is not None
    random.seed(5)
    resumed = run(tmp_path / "parts", None)
    assert randomness() == expected
    assert all(torch.equal(value, whole.weights[name]) for name, value in resumed.weights.items())
    for mine, theirs in zip(
        optimizers.state_of(resumed.setup.optimizer, resumed.setup.parameters),
        optimizers.state_of(whole.setup.optimizer, whole.setup.parameters),
        strict=True,
    ):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(torch.as_tensor(mine[key]), torch.as_tensor(theirs[key])) for key in mine)
    assert timeless(resumed.training) == timeless(whole.training)
    newest = [checkpoints.newest_valid(tmp_path / name).name for name in ("whole", "parts")]
    states = [
        checkpoints.read(tmp_path / name / last, "all").state["training"]
        for name, last in zip(("whole", "parts"), newest, strict=True)
    ]
    assert states[0]["stopper"] == states[1]["stopper"]
    assert states[0]["losses"] == states[1]["losses"]


def test_interrupted_while_evaluating_it_is_evaluated_when_resumed(tmp_path: Path) -> None:
    """The step is saved, its evaluation is not forgotten."""
    one = Round(tmp_path, recipe())
    inner = one.compute.hidden

    def interrupted(batch: Any) -> Any:
        if not one.model.training:
            raise Interrupted
        return inner(batch)

    one.compute.hidden = interrupted
    with pytest.raises(Interrupted):
        one.train()
    step = checkpoints.read(checkpoints.newest_valid(tmp_path), "all").step
    again = Round(tmp_path, recipe())
    again.train()
    assert again.evaluations[0] == one.evaluations[-1] == step


def test_a_damaged_checkpoint_is_skipped_for_the_one_before(tmp_path: Path) -> None:
    """A flipped bit in the newest: training goes on from an older one, to the same end."""
    chosen = recipe(early_stopping_threshold=0)
    whole = Round(tmp_path / "whole", chosen)
    whole.train()
    one = Round(tmp_path / "damaged", chosen)
    with pytest.raises(Interrupted):
        one.train(lambda self: self.progress[-1].step == 4)
    newest = checkpoints.newest_valid(tmp_path / "damaged")
    tensors = next(newest.glob("weights-*"))
    content = bytearray(tensors.read_bytes())
    content[-1] ^= 1
    tensors.write_bytes(content)
    again = Round(tmp_path / "damaged", chosen)
    again.train()
    assert again.progress[0].step == 3
    assert all(torch.equal(value, whole.weights[name]) for name, value in again.weights.items())


def test_a_checkpoint_of_another_version_is_not_gone_on_from(tmp_path: Path) -> None:
    """Whole, but with other files in it: the training begins anew instead of failing for ever."""
    older = tmp_path / "checkpoint-5"
    older.mkdir()
    (older / "optimizer.pt").write_bytes(bytes(100))
    checkpoints.seal(older)
    one = Round(tmp_path, recipe())
    training = one.train()
    assert one.progress[0].step == 0
    assert training.steps == training.total_steps


def test_disk_use_is_bounded(tmp_path: Path) -> None:
    """The newest, the one before and the best; no pickle among their files."""
    Round(tmp_path, recipe(epochs=6, eval_steps=1, early_stopping_patience=50)).train()
    kept = list(tmp_path.iterdir())
    assert len(kept) <= 3
    assert {path.suffix for folder in kept for path in folder.iterdir()} == {".json", ".safetensors"}


class Spoiled(Round):
    """A round whose loss is multiplied at some calls of the forward pass."""

    def spoil(self, factors: dict[int, float]) -> "Spoiled":
        inner, calls = self.compute.loss, 0

        def loss(batch: Any) -> torch.Tensor:
            nonlocal calls
            calls += 1
            return inner(batch) * factors.get(calls, 1.0)

        self.compute.loss = loss
        return self


@pytest.mark.parametrize("factor", [math.nan, math.inf, 1e6])
def test_a_bad_batch_is_left_out_and_the_last_good_state_taken(tmp_path: Path, factor: float) -> None:
    """As if the batch had never been in the order: the weights equal those of a training without it."""
    chosen = recipe(epochs=4, early_stopping_threshold=0)
    bad = Spoiled(tmp_path / "bad", chosen).spoil({2 * 10 + 1: factor})  # the 11th step, of 2 micro-batches
    training = bad.train()
    assert (training.rollbacks, training.skipped_batches, training.left_out) == (1, 1, (10,))
    assert training.processes == ((0, 1),)
    assert any("batch 10 left out" in (progress.message or "") for progress in bad.progress)
    spared = Round(tmp_path / "spared", chosen)
    number = spared.setup.feed._make
    spared.setup.feed._make = lambda at, rows: number(at + (at >= 10), rows)
    spared.train()
    assert all(torch.equal(value, spared.weights[name]) for name, value in bad.weights.items())


def test_after_too_many_faults_the_round_fails(tmp_path: Path) -> None:
    """With words that say what to change."""
    spoiled = Spoiled(tmp_path, recipe(max_rollbacks=2)).spoil(dict.fromkeys(range(100), math.nan))
    with pytest.raises(RoundError, match=r"loss is nan at step 1, after going back 2 times.*learning_rate"):
        spoiled.train()


def test_gradients_that_are_not_finite_are_a_fault(tmp_path: Path) -> None:
    """The loss may look well."""
    one = Round(tmp_path, recipe())
    spoiled = next(iter(one.setup.parameters.values()))
    calls = 0

    def spoil(gradient: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return gradient * (math.nan if calls == 1 else 1.0)

    spoiled.register_hook(spoil)
    assert one.train().rollbacks == 1


def test_out_of_memory_halves_the_micro_batch_and_keeps_the_effective_one(tmp_path: Path) -> None:
    """Steps, rows and loss stay; it is said to whoever looks, and in the figures."""
    chosen = recipe(batch_size=4, gradient_accumulation_steps=1, early_stopping_threshold=0)
    small = Round(tmp_path / "small", chosen)
    plain, inner = Round(tmp_path / "plain", chosen), small.compute.loss

    def loss(batch: Any) -> torch.Tensor:
        if batch.tokens > 2 * tiny.LENGTH:
            raise torch.OutOfMemoryError
        return inner(batch)

    small.compute.loss = loss
    training, expected = small.train(), plain.train()
    assert (training.micro_batch, training.ran_out_of_memory) == (2, 1)
    assert (training.steps, training.tokens) == (expected.steps, expected.tokens)
    assert training.train_loss == pytest.approx(expected.train_loss, rel=1e-4)
    assert any("going on with 2" in (progress.message or "") for progress in small.progress)
    assert small.logged[0][2]["micro_batch"] == 2


def test_out_of_memory_is_given_up_after_three_halvings(tmp_path: Path) -> None:
    """Not for ever smaller."""
    one = Round(tmp_path, recipe(batch_size=32, gradient_accumulation_steps=1))

    def loss(batch: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError

    one.compute.loss = loss
    with pytest.raises(RoundError, match="micro-batch of 4 × 64 tokens after 3 smaller tries"):
        one.train()


def test_early_stopping_keeps_the_best(tmp_path: Path) -> None:
    """Nothing counts as improvement after the first evaluation: patience decides."""
    chosen = recipe(epochs=20, eval_steps=2, early_stopping_threshold=100, early_stopping_patience=2)
    training = Round(tmp_path, chosen).train()
    assert training.stopped_early
    assert training.steps == 6
    assert training.weights_step == training.best_step


def test_what_is_logged(tmp_path: Path) -> None:
    """Every figure the page and the trackers show."""
    one = Round(tmp_path, recipe())
    one.train()
    kind, step, metrics = one.logged[0]
    assert (kind, step) == ("train", 1)
    names = {"loss", "learning_rate", "grad_norm", "epoch", "tokens_per_s", "input_stall", "memory_bytes"}
    assert names <= metrics.keys()
    assert all(math.isfinite(value) for value in metrics.values())
    assert one.progress[-1].eta_s is not None
