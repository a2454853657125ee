"""The model of a trial: a base with an adapter, trained on what it may see, measured on what it has not."""

import gc
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.settings import Settings
from services.trainer import evaluate, model, planning
from services.trainer.engine import loop
from services.trainer.engine.compute import Compute
from services.trainer.engine.figures import Hooks, Progress
from services.trainer.engine.setup import prepare
from services.trainer.experiments import metadata, store
from services.trainer.experiments.experiment import Form
from services.trainer.experiments.files import Loaded
from services.trainer.experiments.trials import Trial
from services.trainer.generation.complete import complete
from services.trainer.generation.prompts import prompt_ids
from services.trainer.generation.request import Completion, Request
from services.trainer.interruption import Interruption
from services.trainer.packing import Row, pack
from services.trainer.recipes.recipe import Recipe
from services.trainer.rows import mean_document_tokens
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.sample import Sample

AT_THE_END = 10**9  # steps between evaluations: one, after the last step, so that nothing is chosen by it
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Trainee:
    """The model in memory, as the trial scores it."""

    compute: Compute
    tokenizer: Any
    recipe: Recipe
    samples: Callable[[Sequence[str], Form], list[Sample]]
    prompts: Callable[[Sequence[str], Form], list[list[int]]]

    def losses(self, names: Sequence[str], form: Form) -> dict[str, tuple[float, int]]:
        """Nats and bytes of each problem's solution after its prompt."""
        samples = self.samples(names, form)
        named = {sample.content_id: name for sample, name in zip(samples, names, strict=True)}
        rows = pack(samples, self.recipe.max_length)
        items = _losses(self.compute, rows, self.recipe, self.tokenizer)
        return {named[item.content_id]: (item.nats, item.bytes) for item in items}

    def write(
        self, names: Sequence[str], form: Form, request: Request, on_done: Callable[[int, int], None]
    ) -> list[list[Completion]]:
        """`request.n` completions of each problem's prompt."""
        prompts = self.prompts(names, form)
        return complete(self.compute.model, self.tokenizer, prompts, request, on_done=on_done)


class Models:
    """Makes the trainee of each trial of an experiment.

    Raises ConfigurationError when a problem with its solution is longer than the recipe's max_length.
    """

    def __init__(self, loaded: Loaded, settings: Settings, interruption: Interruption) -> None:
        self._loaded = loaded
        self._interruption = interruption
        self._token = settings.hub_token
        recipe = loaded.recipe
        self._source = model.locate(recipe.base_model, recipe.revision, settings.cache_dir)
        self._tokenizer = model.load_tokenizer(self._source, self._token)
        self._encoder = Encoder(self._tokenizer)
        self._problems = {task.name: task for task in loaded.problems}
        self._numbers = {name: number for number, name in enumerate(self._problems)}
        self._check_lengths()

    @contextmanager
    def open(self, trial: Trial, folder: Path, tell: Tell) -> Iterator[Trainee]:
        """The trial's model: trained now, or as it was trained before. One at a time is in memory."""
        recipe = self._loaded.recipe.model_copy(update={"seed": trial.seed, "eval_steps": AT_THE_END})
        tell("loading the model")
        _free()  # the trial before this one's, which is in cycles
        trainee = self._load(trial, recipe, folder)
        if not (folder / store.TRAINING).is_file():
            self._train(trial, trainee, folder, tell)
        trainee.compute.model.eval()
        yield trainee

    def _load(self, trial: Trial, recipe: Recipe, folder: Path) -> Trainee:
        hardware = planning.hardware(1)
        base = model.load_base(recipe, self._source, self._token)
        rows = self._rows(trial) or pack(self._samples(trial.scored_on, "plain"), recipe.max_length)
        plan = planning.plan(base.config, recipe, hardware, mean_document_tokens(rows))
        if trial.trained_on:
            was_trained = (folder / store.TRAINING).is_file()
            adapter = folder / "adapter" if was_trained else None
            opened = model.for_training(base, recipe, adapter, folder / "start")
        else:
            opened = base.requires_grad_(requires_grad=False)
        compute = planning.compute(opened, plan)
        return Trainee(compute, self._tokenizer, recipe, self._samples, self._prompts)

    def _train(self, trial: Trial, trainee: Trainee, folder: Path, tell: Tell) -> None:
        """Leaves the adapter on disk and in memory, then what was measured, by which it counts as trained."""
        if not trial.trained_on:
            store.write(folder / store.TRAINING, {"steps": 0})
            return
        compute, recipe = trainee.compute, trainee.recipe
        rows = self._rows(trial)
        form = self._loaded.experiment.arms[trial.arm].train
        assert form != "nothing"
        unseen = pack(self._samples(trial.scored_on, form), recipe.max_length)

        def evaluated(_step: int) -> tuple[float, float]:
            items = _losses(compute, unseen, recipe, self._tokenizer)
            return evaluate.nats_per_token(items), evaluate.bits_per_byte(items)

        def progress(state: Progress) -> None:
            loss = "" if state.loss is None else f" · loss {state.loss:.3f}"
            tell(f"training, step {state.step}/{state.total_steps}{loss}")

        checkpoints = folder / "checkpoints"
        pad_id = self._tokenizer.pad_token_id
        with self._interruption.deferred():
            prepared = prepare(compute, rows, recipe, checkpoints, pad_id=pad_id)
            hooks = Hooks(progress, lambda *_: None, lambda: self._interruption.requested, evaluated)
            figures = loop.train(prepared, hooks).as_json()
        _save(compute.model, folder)
        revision = getattr(compute.model.config, "_commit_hash", None) or self._source.revision
        store.write(folder / store.TRAINING, {**_finite(figures), "base_revision": revision})
        shutil.rmtree(checkpoints, ignore_errors=True)
        shutil.rmtree(folder / "start", ignore_errors=True)

    def _rows(self, trial: Trial) -> list[Row]:
        form = self._loaded.experiment.arms[trial.arm].train
        if form == "nothing":
            return []
        return pack(self._samples(trial.trained_on, form), self._loaded.recipe.max_length)

    def _prompts(self, names: Sequence[str], form: Form) -> list[list[int]]:
        shown = self._loaded.experiment.annotations
        written = [
            metadata.written(self._problems[name], form, self._loaded.metadata, shown) for name in names
        ]
        return [prompt_ids(self._tokenizer, text.rstrip(), chat=False) for text in written]

    def _samples(self, names: Sequence[str], form: Form) -> list[Sample]:
        """Prompt, solution, end of document; the loss is on what follows the prompt.

        Prompt and solution are encoded apart, as they are when the model is asked.
        """
        solutions = self._encoder.plain([self._problems[name].continuation for name in names])
        made = []
        for name, prompt, solution in zip(names, self._prompts(names, form), solutions, strict=True):
            start, end = len(prompt), len(prompt) + len(solution)
            size = len(self._problems[name].continuation.encode())
            ids = [*prompt, *solution, self._encoder.end]
            made.append(Sample(self._numbers[name], ids, start, start, end, size))
        return made

    def _check_lengths(self) -> None:
        experiment, most = self._loaded.experiment, self._loaded.recipe.max_length
        forms: tuple[Form, ...] = ("plain", "annotated") if experiment.uses_metadata else ("plain",)
        names = list(self._problems)
        longest, name = max(
            (len(sample.ids), name)
            for form in forms
            for name, sample in zip(names, self._samples(names, form), strict=True)
        )
        if longest > most:
            raise ConfigurationError(
                f"max_length={most}: {name} with its solution has {longest} tokens; set it to that at least"
            )


def _losses(
    compute: Compute, rows: Sequence[Row], recipe: Recipe, tokenizer: Any
) -> list[evaluate.ContentLoss]:
    found: list[evaluate.ContentLoss] = evaluate.losses(
        compute,
        rows,
        rows_at_once=recipe.batch_size,
        pad_id=tokenizer.pad_token_id,
        longest=recipe.max_length,
    )
    return found


def _free() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _save(trained: Any, folder: Path) -> None:
    unfinished, adapter = folder / f".adapter.{os.getpid()}", folder / "adapter"
    shutil.rmtree(unfinished, ignore_errors=True)
    model.save(trained, unfinished, {}, folder / "start")
    shutil.rmtree(adapter, ignore_errors=True)
    os.rename(unfinished, adapter)


def _finite(figures: Mapping[str, Any]) -> Json:
    """Strict JSON: what is not finite becomes null."""
    return dict(json.loads(json.dumps(figures), parse_constant=lambda _: None))
