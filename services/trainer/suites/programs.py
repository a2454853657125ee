"""Suites of programs: written by a model, run in the sandbox, counted by pass@k."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.core.sandbox import Outcome
from services.trainer import generation
from services.trainer.suites import formats
from services.trainer.suites.estimators import mean_pass_at_k, pass_at_k
from services.trainer.suites.extraction import STOPS, answered, continued
from services.trainer.suites.formats import Task
from services.trainer.suites.references import OnDone, Runner, program_of
from services.trainer.suites.suite import Score

HUMAN_EVAL = "humaneval"
KS = (1, 10, 100)
QUESTION = "Complete the following Python code:\n\n```python\n{prompt}\n```"  # as completion pairs ask
SHOWN_CHARACTERS = 4000  # of a completion in a score's detail


def load(name: str, benchmarks_dir: Path) -> list[Task]:
    """The tasks of `humaneval`, or of the file of that name in the folder of benchmarks.

    Raises ConfigurationError when there is no such file, or as `formats.read` does.
    """
    if name == HUMAN_EVAL:
        return formats.human_eval()
    paths = [benchmarks_dir / f"{name}{suffix}" for suffix in formats.SUFFIXES]
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        there = [HUMAN_EVAL, *_names(benchmarks_dir)]
        raise ConfigurationError(
            f"suite {name!r}: there is no {paths[0]} or {paths[1].name}; programs to be had are"
            f" {', '.join(there)}. Put a file there, or name another suite in the recipe"
        )
    return formats.read(found)


def stops(*, chat: bool) -> tuple[str, ...]:
    """Where generation may end: what follows is no part of the program."""
    return () if chat else STOPS


def prompts(tasks: Sequence[Task], tokenizer: Any, *, chat: bool) -> list[list[int]]:
    """The token ids that each task is asked with: the prompt itself, or a question in the chat template."""
    return [list(generation.prompt_ids(tokenizer, _asked(task, chat=chat), chat=chat)) for task in tasks]


def judge(
    tasks: Sequence[Task],
    completions: Sequence[Sequence[str]],
    sandbox: Runner,
    on_done: OnDone | None = None,
    *,
    chat: bool,
    asked: str = "",
) -> list[Score]:
    """pass@1 of each task, from the completions of it; equal programs are run once.

    completions: texts as the model wrote them, one list a task. asked: all else that decides them but the
    weights (prompt's form, temperature, length, seed), for the item's key. `on_done` hears of every
    program as the sandbox tells it. Raises ValueError where a task has no completion.
    """
    extract = answered if chat else continued
    written = [
        [extract(task, text) for text in texts] for task, texts in zip(tasks, completions, strict=True)
    ]
    if empty := next((task.name for task, each in zip(tasks, written, strict=True) if not each), None):
        raise ValueError(f"{empty} has no completion: expected one at least")
    distinct = [
        program_of(task, code)
        for task, each in zip(tasks, written, strict=True)
        for code in dict.fromkeys(each)
    ]
    outcomes = iter(sandbox.run(distinct, on_done))
    scores = []
    for task, codes, texts in zip(tasks, written, completions, strict=True):
        results = {code: next(outcomes) for code in dict.fromkeys(codes)}
        scores.append(_score(task, [results[code] for code in codes], texts, item_key(task, asked)))
    return scores


def item_key(task: Task, asked: str) -> str:
    """SHA-256 of all that decides a task's value but the weights."""
    return hashlib.sha256(f"{task.key}\n{asked}".encode()).hexdigest()


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """pass@1, 10 and 100 over the tasks, each where every task has as many completions."""
    counts = [(score.detail["samples"], score.detail["passed"]) for score in scores]
    found = {f"pass@{k}": mean_pass_at_k(counts, k) for k in KS} if counts else {}
    return {name: value for name, value in found.items() if value is not None}


def _asked(task: Task, *, chat: bool) -> str:
    return question(task) if chat else task.asked


def question(task: Task) -> str:
    """The task in words: its own, or its prompt to be completed."""
    return task.instruction or QUESTION.format(prompt=task.prompt.rstrip("\n"))


def _score(task: Task, outcomes: Sequence[Outcome], texts: Sequence[str], key: str) -> Score:
    n, c = len(outcomes), sum(outcome.passed for outcome in outcomes)
    detail = {
        "samples": n,
        "passed": c,
        "results": dict(Counter(outcome.result for outcome in outcomes).most_common()),
        "completion": texts[0][:SHOWN_CHARACTERS],
    }
    return Score(key, task.name, task.name, "pass@1", pass_at_k(n, c, 1), detail=detail)


def _names(folder: Path) -> list[str]:
    """The files of the folder that may be suites."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [name.partition(".jsonl")[0] for name in names if name.endswith(formats.SUFFIXES)]
