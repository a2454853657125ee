"""Problems, a model that knows some of them, and a sandbox that only looks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.core.sandbox import Outcome, Program
from services.trainer.experiments import files, store
from services.trainer.experiments.files import Loaded
from services.trainer.experiments.trials import Trial
from services.trainer.generation.request import Completion, Request

RIGHT, WRONG = "    return 'right'\n", "    return 'wrong'\n"
EXPERIMENT = """\
recipe: demo
problems: problems.jsonl
arms:
  control: {{train: plain}}
  experiment: {{train: annotated, prompts: [plain, annotated]}}
{arms}folds: 2
samples: 4
k: [1, 4, 10]
resamples: 200
{lines}
"""


def loaded(folder: Path, number: int = 6, lines: str = "", arms: str = "") -> Loaded:
    """An experiment on so many problems, each solved by RIGHT."""
    problem = {"entry_point": "f", "canonical_solution": RIGHT, "test": "def check(candidate):\n    pass\n"}
    rows = [
        {"task_id": f"T/{at}", "prompt": f"def f():\n    '''{at}'''\n", **problem} for at in range(number)
    ]
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    path = folder / "mine.yaml"
    path.write_text(EXPERIMENT.format(lines=lines, arms=arms), encoding="utf-8")
    return files.load(path)


class Models:
    """Trainees that solve so many of the samples as `solved` has it of their arm; `opened` counts."""

    def __init__(self, solved: Mapping[str, int]) -> None:
        self.solved = solved
        self.opened: list[Trial] = []

    @contextmanager
    def open(self, trial: Trial, folder: Path, tell) -> Iterator["Trainee"]:
        self.opened.append(trial)
        tell("training")
        store.write(
            folder / store.TRAINING, {"steps": 3, "seconds": 1.0, "train_loss": 1.0, "eval_loss": 2.0}
        )
        yield Trainee(self.solved[trial.arm])


class Trainee:
    def __init__(self, solved: int) -> None:
        self.solved = solved

    def losses(self, names: Sequence[str], form: str) -> dict[str, tuple[float, int]]:
        return dict.fromkeys(names, (10.0 - self.solved - (form == "annotated"), 20))

    def write(self, names: Sequence[str], form: str, request: Request, on_done) -> list[list[Completion]]:
        on_done(len(names) * request.n, len(names) * request.n)
        texts = [RIGHT if sample < self.solved else WRONG for sample in range(request.n)]
        return [[Completion(text, (1,), finished=True) for text in texts] for _ in names]


class Sandbox:
    """Passes what holds RIGHT; `programs` are all it was given."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def run(self, programs: Sequence[Program], on_done=None) -> list[Outcome]:
        self.programs += programs
        return [
            Outcome(one.key, RIGHT in one.code, "passed" if RIGHT in one.code else "failed: wrong")
            for one in programs
        ]
