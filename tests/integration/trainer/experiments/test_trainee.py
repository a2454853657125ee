"""A tiny random model as the trainee of a trial: what it learns, what it does not see, how it comes back."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from services.core.errors import ConfigurationError
from services.core.settings import Settings
from services.trainer.experiments import files, store
from services.trainer.experiments.trainee import Models
from services.trainer.experiments.trials import ALL, Trial
from services.trainer.generation.request import Request
from services.trainer.interruption import Interrupted
from tests import tiny_model

EXPERIMENT = """\
overrides:
  base_model: {model}
  method: lora
  lora_r: 8
  learning_rate: 0.005
  max_length: {max_length}
  batch_size: 1
  gradient_accumulation_steps: 1
  epochs: 6
arms:
  control: {{train: plain}}
  experiment: {{train: annotated, prompts: [plain, annotated]}}
  base: {{train: nothing}}
problems: humaneval
most_problems: 4
folds: 2
"""
GREEDY = Request(max_new_tokens=12)


class Patient:
    """An interruption that has not come, or comes after so many questions."""

    def __init__(self, after: int | None = None) -> None:
        self.after = after
        self.asked = 0

    @property
    def requested(self) -> bool:
        self.asked += 1
        return self.after is not None and self.asked > self.after

    def deferred(self):
        import contextlib

        return contextlib.nullcontext()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.make(tmp_path_factory.mktemp("model"), instruct=False)


@pytest.fixture(scope="module")
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def loaded(tmp_path: Path, model: Path, threads: None) -> files.Loaded:
    path = tmp_path / "tiny.yaml"
    path.write_text(EXPERIMENT.format(model=model, max_length=1024), encoding="utf-8")
    return files.load(path)


@pytest.fixture
def models(loaded: files.Loaded, tmp_path: Path) -> Models:
    return Models(loaded, Settings(cache_dir=tmp_path / "cache"), Patient())


def trial(arm: str = "control", seed: int = 1, forms=("plain",)) -> Trial:
    names = [f"HumanEval/{number}" for number in range(4)]
    seen, unseen = (tuple(names[:2]), tuple(names[2:])) if arm != "base" else ((), tuple(names))
    return Trial(ALL, arm, seed, 1, seen, unseen, forms, 2)


def test_it_learns_the_solutions_it_is_given(models: Models, tmp_path: Path) -> None:
    """As far as a random base can: its adapter alone learns."""
    one = trial()
    with models.open(trial("base"), tmp_path / "base", lambda _: None) as base:
        before = base.losses(one.trained_on, "plain")
    with models.open(one, tmp_path / "one", lambda _: None) as trainee:
        after = trainee.losses(one.trained_on, "plain")
    assert sum(nats for nats, _ in after.values()) < 0.995 * sum(nats for nats, _ in before.values())
    assert [size for _, size in after.values()] == [size for _, size in before.values()]


def test_the_loss_is_on_the_solution_alone(models: Models, loaded: files.Loaded) -> None:
    """Decoded, what is learned is the solution and the token that ends a document, in both forms."""
    for form in ("plain", "annotated"):
        for task, sample in zip(
            loaded.problems, models._samples([t.name for t in loaded.problems], form), strict=True
        ):
            learned = models._tokenizer.decode(sample.ids[sample.prompt_tokens :])
            assert learned == task.continuation + "<|endoftext|>"
            prompt = models._tokenizer.decode(sample.ids[: sample.prompt_tokens])
            assert ("# @algorithm" in prompt) == (form == "annotated")
            assert task.solution not in prompt
            assert sample.code_bytes == len(task.continuation.encode())


def test_opened_again_it_is_what_was_trained(models: Models, tmp_path: Path) -> None:
    one = trial("experiment", forms=("plain", "annotated"))
    found = []
    for _ in range(2):
        with models.open(one, tmp_path / "one", lambda _: None) as trainee:
            losses = trainee.losses(one.scored_on, "annotated")
            written = trainee.write(one.scored_on, "plain", GREEDY, lambda *_: None)
            found.append((losses, [[each.text for each in some] for some in written]))
    (losses, texts), (again, same) = found
    assert texts == same
    assert {name: nats for name, (nats, _) in again.items()} == pytest.approx(
        {name: nats for name, (nats, _) in losses.items()}, rel=1e-4
    )
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["adapter", "training.json"]


def test_an_interrupted_training_ends_as_if_it_had_not_been(
    models: Models, loaded: files.Loaded, tmp_path: Path
) -> None:
    one = trial()
    with models.open(one, tmp_path / "whole", lambda _: None):
        pass
    hurried = Models(loaded, Settings(cache_dir=tmp_path / "cache"), Patient(after=3))
    with pytest.raises(Interrupted), hurried.open(one, tmp_path / "broken", lambda _: None):
        pass
    assert list((tmp_path / "broken" / "checkpoints").glob("checkpoint-*"))
    with models.open(one, tmp_path / "broken", lambda _: None):
        pass
    whole, broken = (store.read(tmp_path / name / store.TRAINING) for name in ("whole", "broken"))
    assert broken["train_loss"] == whole["train_loss"]
    weights = [
        (tmp_path / name / "adapter" / "adapter_model.safetensors").read_bytes()
        for name in ("whole", "broken")
    ]
    assert weights[0] == weights[1]


def test_seeds_differ(models: Models, tmp_path: Path) -> None:
    losses = []
    for seed in (1, 2):
        with models.open(trial(seed=seed), tmp_path / str(seed), lambda _: None) as trainee:
            losses.append(trainee.losses(["HumanEval/3"], "plain")["HumanEval/3"][0])
    assert losses[0] != losses[1]


def test_the_untrained_arm_leaves_no_adapter(models: Models, tmp_path: Path) -> None:
    with models.open(trial("base"), tmp_path / "base", lambda _: None) as trainee:
        assert not hasattr(trainee.compute.model, "peft_config")
    assert store.read(tmp_path / "base" / store.TRAINING) == {"steps": 0}
    shutil.rmtree(tmp_path / "base")


def test_a_row_that_is_too_short_for_a_problem_is_refused(loaded: files.Loaded, tmp_path: Path) -> None:
    recipe = loaded.recipe.model_copy(update={"max_length": 128})
    short = files.Loaded(loaded.path, loaded.experiment, recipe, loaded.problems, loaded.metadata)
    with pytest.raises(ConfigurationError, match=r"max_length=128: HumanEval/\d with its solution has"):
        Models(short, Settings(cache_dir=tmp_path / "cache"), Patient())
