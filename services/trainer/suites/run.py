"""A suite for a model: its items, those not measured yet with these weights, and a report of all."""

import difflib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.core.sandbox import Outcome, Program
from services.trainer.engine.compute import Compute
from services.trainer.generation import Request, asks_in_template, complete
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import SampleSource
from services.trainer.suites import completion, formats, keywords, likelihood, programs, references
from services.trainer.suites.cache import FOLDER, Results, version_of
from services.trainer.suites.suite import Report, Score

COMPLETION = "completion"
PROGRAM_TOKENS = 512  # of a program at most
SOUND = "sound.json"  # which references pass their tests here


@dataclass(frozen=True)
class Bench:
    """What measuring takes, beside a model."""

    recipe: Recipe  # its objective decides how is asked, its seed what is drawn
    cache_dir: Path
    benchmarks_dir: Path
    contents: Sequence[SampleSource] = ()  # held out: what `completion` is made of
    sandbox: Callable[[], AbstractContextManager[references.Runner]] | None = (
        None  # opened where it is needed
    )
    compute: Compute | None = None  # of the model, where there is one
    samples: int = 1  # programs of a task
    temperature: float = 0.0  # they are drawn at; more than one a task needs one above 0
    most: int | None = None  # tasks of a benchmark, evenly spread over it; None: all
    on_done: Callable[[str, int, int], None] | None = None  # what, done, of how many; may raise

    def chat(self, tokenizer: Any) -> bool:
        return asks_in_template(self.recipe.objective, tokenizer)

    def heard(self, what: str) -> Callable[[int, int], None]:
        return lambda done, total: self.on_done(what, done, total) if self.on_done is not None else None


@dataclass(frozen=True)
class _Suite:
    """The keys of its items, how those at given places are measured, what all scores come to."""

    keys: Sequence[str]
    measure: Callable[[Sequence[int]], list[Score]]
    figures: Callable[[Sequence[Score]], dict[str, float]]


def measure(suite: str, model: Any, tokenizer: Any, *, weights: str, bench: Bench) -> Report:
    """The model's scores on every item of a suite, in order; none is measured twice for the same weights.

    suite: one of `names`. weights: as `cache.weights_of` gives it. model: as `load_base` loads it, bare or
    with adapters. Raises ConfigurationError for a suite that there is none of, SandboxError where programs
    cannot be run.
    """
    began = time.monotonic()
    chosen = _suite(suite, model, tokenizer, bench)
    results = Results(bench.cache_dir, weights)
    missing = [at for at, key in enumerate(chosen.keys) if not results.of(key)]
    if missing:
        results.add(chosen.measure(missing))
    scores = tuple(score for key in chosen.keys for score in results.of(key))
    return Report(
        suite=suite,
        version=version_of(chosen.keys),
        scores=scores,
        seconds=time.monotonic() - began,
        from_cache=len(scores) - sum(len(results.of(chosen.keys[at])) for at in missing),
        figures=chosen.figures(scores) if scores else {},
    )


def names(benchmarks_dir: Path) -> list[str]:
    """Every suite there is."""
    files = [path.name for path in sorted(benchmarks_dir.glob("*"))] if benchmarks_dir.is_dir() else []
    stems = [name.partition(".jsonl")[0] for name in files if name.endswith(formats.SUFFIXES)]
    with_tests = [programs.HUMAN_EVAL, *stems]
    return [COMPLETION, keywords.NAME, *with_tests, *(f"{name}{likelihood.SUFFIX}" for name in with_tests)]


def check(suite: str, benchmarks_dir: Path) -> None:
    """Raises ConfigurationError that names the nearest suite there is, and where files are looked for."""
    known = names(benchmarks_dir)
    if suite in known:
        return
    near = difflib.get_close_matches(suite, known, n=1, cutoff=0.0)
    raise ConfigurationError(
        f"there is no suite {suite!r}, the nearest is {near[0]}: expected {', '.join(known)}; files are"
        f" looked for in {benchmarks_dir.absolute()} (BENCHMARKS_DIR), as NAME.jsonl or NAME.jsonl.gz"
    )


def _suite(suite: str, model: Any, tokenizer: Any, bench: Bench) -> _Suite:
    check(suite, bench.benchmarks_dir)
    if suite == COMPLETION:
        return _completion(model, tokenizer, bench)
    if suite == keywords.NAME:
        return _keywords(model, tokenizer, bench)
    tasks = _spread(programs.load(suite.removesuffix(likelihood.SUFFIX), bench.benchmarks_dir), bench.most)
    if suite.endswith(likelihood.SUFFIX):
        return _likelihood(suite, tasks, model, tokenizer, bench)
    return _programs(suite, tasks, model, tokenizer, bench)


def _spread(tasks: Sequence[formats.Task], most: int | None) -> Sequence[formats.Task]:
    if most is None or most >= len(tasks):
        return tasks
    return [tasks[number * len(tasks) // most] for number in range(most)]


def _completion(model: Any, tokenizer: Any, bench: Bench) -> _Suite:
    items = completion.items(bench.contents, bench.recipe, tokenizer)

    def run(places: Sequence[int]) -> list[Score]:
        asked = [items[at] for at in places]
        return completion.measure(
            model,
            tokenizer,
            asked,
            chat=bench.chat(tokenizer),
            on_done=bench.heard("completions of this code"),
        )

    return _Suite([item.key for item in items], run, completion.figures)


def _keywords(model: Any, tokenizer: Any, bench: Bench) -> _Suite:
    items = keywords.items(tokenizer, chat=bench.chat(tokenizer))

    def run(places: Sequence[int]) -> list[Score]:
        asked = [items[at] for at in places]
        return keywords.measure(model, tokenizer, asked, on_done=bench.heard(keywords.NAME))

    return _Suite([item.key for item in items], run, keywords.figures)


def _likelihood(
    suite: str, tasks: Sequence[formats.Task], model: Any, tokenizer: Any, bench: Bench
) -> _Suite:
    items = likelihood.items(tasks, tokenizer)

    def run(places: Sequence[int]) -> list[Score]:
        compute = Compute(model) if bench.compute is None else bench.compute
        asked = [items[at] for at in places]
        return likelihood.measure(
            compute, asked, pad_id=tokenizer.pad_token_id, on_done=bench.heard(f"{suite}, rows")
        )

    return _Suite([item.key for item in items], run, likelihood.figures)


def _programs(suite: str, tasks: Sequence[formats.Task], model: Any, tokenizer: Any, bench: Bench) -> _Suite:
    chat = bench.chat(tokenizer)
    request = Request(
        PROGRAM_TOKENS,
        temperature=bench.temperature,
        n=bench.samples,
        stop=programs.stops(chat=chat),
        seed=bench.recipe.seed,
    )
    excluded: Mapping[str, str] = {}
    if bench.sandbox is not None:
        sound = references.sound(tasks, _Opened(bench.sandbox), bench.cache_dir / FOLDER / SOUND)
        tasks, excluded = sound.tasks, sound.excluded
    asked = f"form {formats.FORM}, chat {chat}, {request}"

    def run(places: Sequence[int]) -> list[Score]:
        if bench.sandbox is None:
            raise ConfigurationError(f"suite {suite} runs programs: it needs the sandbox, and none was given")
        chosen = [tasks[at] for at in places]
        prompts = programs.prompts(chosen, tokenizer, chat=chat)
        heard = bench.heard(f"programs of {suite} written")
        written = complete(model, tokenizer, prompts, request, on_done=heard)
        texts = [[each.text for each in completions] for completions in written]
        return programs.judge(chosen, texts, _Opened(bench.sandbox), chat=chat, asked=asked)

    def figures(scores: Sequence[Score]) -> dict[str, float]:
        return programs.figures(scores) | ({"excluded_tasks": float(len(excluded))} if excluded else {})

    return _Suite([programs.item_key(task, asked) for task in tasks], run, figures)


@dataclass(frozen=True)
class _Opened:
    """A sandbox that is opened for each run, when there is something to run."""

    sandbox: Callable[[], AbstractContextManager[references.Runner]]

    def run(self, programs_: Sequence[Program], on_done: Callable[..., None] | None = None) -> list[Outcome]:
        with self.sandbox() as sandbox:
            return sandbox.run(programs_, on_done)
