"""An experiment from its first trial to its report. Killed anywhere, it goes on from what is on disk."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from services.core.process import failpoint
from services.trainer.experiments import analysis, judge, store
from services.trainer.experiments.experiment import Form
from services.trainer.experiments.files import Loaded
from services.trainer.experiments.findings import Report
from services.trainer.experiments.judge import Sandbox
from services.trainer.experiments.progress import Pace, Work, clock
from services.trainer.experiments.publish import publish
from services.trainer.experiments.trials import ALL, Stage, Trial, stages, trials
from services.trainer.generation.request import Completion, Request
from services.trainer.suites.extraction import STOPS

PROGRAMS_AT_ONCE = 512  # are asked for together: enough to fill a GPU, few enough to lose in a kill
Tell = Callable[[str], None]


class Trainee(Protocol):
    """See `trainee.Trainee`."""

    def losses(self, names: Sequence[str], form: Form) -> Mapping[str, tuple[float, int]]: ...
    def write(
        self, names: Sequence[str], form: Form, request: Request, on_done: Callable[[int, int], None]
    ) -> Sequence[Sequence[Completion]]: ...


class Models(Protocol):
    """See `trainee.Models`."""

    def open(self, trial: Trial, folder: Path, tell: Tell) -> AbstractContextManager[Trainee]: ...


class Runner:
    """What is to be done, with what, and where it is written."""

    def __init__(self, loaded: Loaded, root: Path, models: Models, sandbox: Sandbox, tell: Tell) -> None:
        self._loaded = loaded
        self._experiment = loaded.experiment
        self._problems = {task.name: task for task in loaded.problems}
        self._root = root
        self._models = models
        self._sandbox = sandbox
        self._say = tell
        self._stages = stages(loaded.experiment, list(self._problems))
        self._trials = {stage.name: trials(loaded.experiment, stage) for stage in self._stages}
        self._pace = Pace(self._left())
        self._where = ""

    def run(self) -> Report:
        """Stage after stage, each with its report; the last one's."""
        if any(self._left().values()):
            self._tell("running the problems' own solutions")
            judge.check_solutions(self._loaded.problems, self._sandbox, self._experiment.timeout)
        report: Report | None = None
        for stage in self._stages:
            for number, trial in enumerate(self._trials[stage.name], 1):
                self._where = f"[{number}/{len(self._trials[stage.name])}] {trial}"
                if not store.is_done(self._root, trial):
                    self._do(trial)
            report = self._report(stage)
        assert report is not None
        return report

    def _do(self, trial: Trial) -> None:
        folder = self._root / trial.folder
        if not self._is_written(trial, folder):
            began = time.monotonic()
            with self._models.open(trial, folder, self._tell) as trainee:
                self._took("train", 1, began)
                failpoint("experiment.after_training")
                self._measure(trial, folder, trainee)
                for form in trial.forms:
                    self._write(trial, folder, form, trainee)
        failpoint("experiment.after_writing")
        for form in trial.forms:
            for kind, _ in self._asked(trial):
                self._run_programs(folder, form, kind)
        store.finish(self._root, trial, keep_adapter=self._experiment.keep_adapters)
        failpoint("experiment.after_trial")

    def _measure(self, trial: Trial, folder: Path, trainee: Trainee) -> None:
        if (folder / store.LOSSES).is_file():
            return
        self._tell("measuring the loss of unseen solutions")
        found = {form: dict(trainee.losses(trial.scored_on, form)) for form in trial.forms}
        store.write(folder / store.LOSSES, found)

    def _write(self, trial: Trial, folder: Path, form: Form, trainee: Trainee) -> None:
        """Programs for the problems that have none yet, some problems at a time."""
        for kind, request in self._asked(trial):
            path = store.samples_path(folder, form, kind)
            left = self._unwritten(trial, path, request.n)
            store.without(path, left)
            at_once = max(1, PROGRAMS_AT_ONCE // request.n)
            for start in range(0, len(left), at_once):
                names = left[start : start + at_once]
                began = time.monotonic()
                before = (len(trial.scored_on) - len(left) + start) * request.n

                def wrote(done: int, _total: int, before: int = before, all_: int = request.n) -> None:
                    total = len(trial.scored_on) * all_
                    self._tell(f"writing programs from {form} prompts, {before + done}/{total}")

                written = trainee.write(names, form, request, wrote)
                store.append(path, _rows(names, written))
                self._took("write", len(names) * request.n, began)
                failpoint("experiment.while_writing")

    def _run_programs(self, folder: Path, form: Form, kind: store.Kind) -> None:
        if store.results_path(folder, form, kind).is_file():
            return
        self._tell(f"running the programs from {form} prompts")
        began = time.monotonic()
        path = store.samples_path(folder, form, kind)
        results = judge.judge(path, self._problems, self._sandbox, self._experiment.timeout)
        self._took("run", len(results), began)

    # what there is to ask, and what of it is done

    def _asked(self, trial: Trial) -> list[tuple[store.Kind, Request]]:
        experiment = self._experiment
        drawn = Request(
            max_new_tokens=experiment.max_new_tokens,
            temperature=experiment.temperature,
            top_p=experiment.top_p,
            n=trial.samples,
            stop=STOPS,
            seed=trial.seed,
        )
        asked: list[tuple[store.Kind, Request]] = [("samples", drawn)]
        if experiment.greedy:
            asked.append(("greedy", replace(drawn, temperature=0.0, top_p=1.0, n=1)))
        return asked

    def _unwritten(self, trial: Trial, path: Path, programs: int) -> list[str]:
        """The problems that lack a program."""
        there = [row["task_id"] for row in store.rows(path)]
        return [name for name in trial.scored_on if there.count(name) < programs]

    def _is_written(self, trial: Trial, folder: Path) -> bool:
        return (folder / store.LOSSES).is_file() and not any(
            self._unwritten(trial, store.samples_path(folder, form, kind), request.n)
            for form in trial.forms
            for kind, request in self._asked(trial)
        )

    def _left(self) -> dict[Work, float]:
        """Trainings, programs to be written and programs to be run, of all trials that are not done."""
        left: dict[Work, float] = {"train": 0, "write": 0, "run": 0}
        for trial in (one for some in self._trials.values() for one in some):
            folder = self._root / trial.folder
            if store.is_done(self._root, trial):
                continue
            left["train"] += not self._is_written(trial, folder)
            for form in trial.forms:
                for kind, request in self._asked(trial):
                    unwritten = self._unwritten(trial, store.samples_path(folder, form, kind), request.n)
                    left["write"] += len(unwritten) * request.n
                    if not store.results_path(folder, form, kind).is_file():
                        left["run"] += len(trial.scored_on) * request.n
        return left

    # telling

    def _took(self, work: Work, amount: float, began: float) -> None:
        self._pace = self._pace.after(work, amount, time.monotonic() - began)

    def _tell(self, what: str) -> None:
        left = clock(self._pace.seconds_left)
        self._say(" · ".join(filter(None, (self._where, what, left and f"{left} left"))))

    def _report(self, stage: Stage) -> Report:
        done = self._trials[stage.name]
        scored = [one for trial in done for one in store.scored(self._root, trial)]
        training = [store.read(self._root / trial.folder / store.TRAINING) for trial in done]
        report = analysis.analyse(self._loaded, stage, scored, training)
        publish(report, self._root if stage.name == ALL else self._root / stage.name)
        return report


def _rows(names: Sequence[str], written: Sequence[Sequence[Completion]]) -> list[dict[str, object]]:
    return [
        {"task_id": name, "completion": completion.text, "finished": completion.finished}
        for name, completions in zip(names, written, strict=True)
        for completion in completions
    ]
