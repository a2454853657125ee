"""One model at work on what all are asked: suites, prompts, and the bits that held-out code costs it.

Results are kept as a round's suites keep theirs, by weights and item: what a round measured of the base or a
champion is not measured again, nor what was compared before.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from services.core.models import Json
from services.core.settings import Settings
from services.trainer import evaluate
from services.trainer.answering import loading
from services.trainer.assessing import open_sandbox
from services.trainer.comparing import bits, prompting, tasks
from services.trainer.comparing.prompting import Question
from services.trainer.comparing.questions import Prompt
from services.trainer.comparing.tasks import Told
from services.trainer.generation import Request
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement.team import Team
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.source import SampleSource
from services.trainer.subjects import Subject
from services.trainer.suites import cache, completion, run
from services.trainer.suites.cache import Results
from services.trainer.suites.formats import Task
from services.trainer.suites.suite import Score

OnDone = Callable[[str, int, int], None]  # what, done, of how many


@dataclass(frozen=True)
class Asked:
    """The same for every model."""

    suites: tuple[str, ...] = ()
    contents: tuple[SampleSource, ...] = ()  # held out: completions are made of them, bits counted over them
    prompts: tuple[Prompt, ...] = ()
    items: int = 20  # completions
    seed: int = 0
    most: int | None = None  # tasks of a suite of programs
    request: Request = field(default_factory=lambda: Request(256))  # of prompts
    chat: bool | None = None  # None: as the model's recipe asks
    tasks: tuple[Task, ...] = ()  # held out: programs are written and run


@dataclass(frozen=True)
class Found:
    """What one model did."""

    scores: tuple[Score, ...]
    figures: dict[str, float]
    bits_per_byte: float | None  # of held-out code, or of the prompts' answers
    tokens_per_second: float | None  # of writing; None where answers were known before
    seconds: float
    from_cache: int  # of the scores

    def as_json(self) -> Json:
        return {**asdict(self), "scores": [asdict(score) for score in self.scores]}


@dataclass(frozen=True)
class Loaded:
    """A model in memory, with what names its weights."""

    subject: Subject
    model: Any
    tokenizer: Any
    weights: str


def loaded(subject: Subject, settings: Settings, base: Any, tokenizer: Any) -> Loaded:
    """The subject on a base that `loading.load_base` loaded; raises as `loading.attach` does."""
    attached = loading.attach(base, subject)
    is_adapter = subject.kind == "adapter"
    causal_lm = attached.get_base_model() if is_adapter else attached
    method = "full" if subject.kind == "model" else subject.recipe.method
    identity = cache.base_identity(
        loading.source_of(subject, settings),
        numbers=f"{method} {causal_lm.get_input_embeddings().weight.dtype}",
        commit=getattr(causal_lm.config, "_commit_hash", None),
    )
    weights = cache.weights_of(identity, subject.folder if is_adapter else None)
    return Loaded(subject, attached, tokenizer, weights)


def measure(found: Loaded, asked: Asked, settings: Settings, on_done: OnDone) -> Found:
    """Everything that is asked, of one model."""
    began = time.monotonic()
    bench = _bench(found, asked, settings, on_done)
    results = Results(settings.cache_dir, found.weights)
    chat = bench.chat(found.tokenizer) if asked.chat is None else asked.chat
    questions = prompting.questions(asked.prompts, found.tokenizer, asked.request, chat=chat)
    told = [_suite(suite, found, bench) for suite in asked.suites]
    if questions:
        told.append(_prompts(questions, found, asked, results, on_done))
    if asked.tasks:
        told.append(_tasks(found, asked, settings, on_done))
    pairs = [(each.ids, each.prompt.answer) for each in questions if each.prompt.answer]
    losses = bits.kept(
        found.model,
        found.tokenizer,
        bits.of_texts(pairs, found.tokenizer)
        or bits.of_contents(asked.contents, found.subject.recipe, found.tokenizer),
        found.subject.recipe.max_length,
        results,
        lambda done, of: on_done("bits per byte, rows", done, of),
    )
    bits_per_byte = evaluate.bits_per_byte(losses) if losses else None
    return together(told, time.monotonic() - began, bits_per_byte)


def measure_team(
    team: Team, subject: Subject, asked: Asked, settings: Settings, on_done: OnDone
) -> list[Told]:
    """The prompts and tasks that are asked, of a whole team. Nothing of it is kept for later."""
    told = []
    if asked.prompts:
        heard = partial(on_done, "prompts, by each agent")
        told.append(tasks.prompts_of_team(team, subject, asked.prompts, asked.request, heard))
    if asked.tasks:
        heard = partial(on_done, "tasks, by each agent")
        with open_sandbox(settings) as sandbox:
            told.append(tasks.of_team(team, subject, asked.tasks, asked.request, sandbox, heard))
    return told


def together(told: Sequence[Told], seconds: float, bits_per_byte: float | None = None) -> Found:
    """What one model did, of all that it was asked."""
    figures = {name: value for each in told for name, value in each.figures.items()}
    tokens, writing = sum(each.tokens for each in told), math.fsum(each.writing for each in told)
    return Found(
        scores=tuple(score for each in told for score in each.scores),
        figures=figures,
        bits_per_byte=figures.get("bits_per_byte") if bits_per_byte is None else bits_per_byte,
        tokens_per_second=tokens / writing if tokens and writing else None,
        seconds=seconds,
        from_cache=sum(each.from_cache for each in told),
    )


def _suite(suite: str, found: Loaded, bench: run.Bench) -> Told:
    report = run.measure(suite, found.model, found.tokenizer, weights=found.weights, bench=bench)
    if report.from_cache:  # whose tokens took which time is not known
        return Told(report.scores, report.figures, report.from_cache)
    tokens = _tokens(report.scores, found.tokenizer)
    return Told(report.scores, report.figures, 0, tokens, report.seconds)


def _tasks(found: Loaded, asked: Asked, settings: Settings, on_done: OnDone) -> Told:
    with open_sandbox(settings) as sandbox:
        heard = partial(on_done, "tasks")
        return tasks.of_model(found.model, found.tokenizer, asked.tasks, asked.request, sandbox, heard)


def _prompts(
    questions: Sequence[Question], found: Loaded, asked: Asked, results: Results, on_done: OnDone
) -> Told:
    known = sum(len(results.of(question.key)) for question in questions)
    tokens, seconds = prompting.answered(
        found.model, found.tokenizer, questions, asked.request, results,
        lambda done, of: on_done("prompts", done, of),
    )  # fmt: skip
    scores = [score for question in questions for score in results.of(question.key)]
    return Told(scores, prompting.figures(scores), known, tokens, seconds)


def text_of(score: Score) -> str:
    """What the model wrote for the item, where it wrote anything."""
    return str(score.detail.get("written") or score.detail.get("completion") or "")


def completions(asked: Asked, subject: Subject, tokenizer: Any) -> list[completion.Item]:
    """The items of the suite of this code."""
    return completion.items(asked.contents, _recipe(asked, subject), tokenizer)


def _recipe(asked: Asked, subject: Subject) -> Recipe:
    return subject.recipe.model_copy(update={"completion_items": asked.items, "seed": asked.seed})


def _bench(found: Loaded, asked: Asked, settings: Settings, on_done: OnDone) -> run.Bench:
    return run.Bench(
        recipe=_recipe(asked, found.subject),
        cache_dir=settings.cache_dir,
        benchmarks_dir=settings.benchmarks_dir,
        contents=asked.contents,
        sandbox=lambda: open_sandbox(settings),
        most=asked.most,
        on_done=on_done,
    )


def _tokens(scores: Sequence[Score], tokenizer: Any) -> int:
    """Of what was written for each item, at least: what was cut from it is not known any more."""
    texts = {score.item: text_of(score) for score in scores}
    return sum(map(len, Encoder(tokenizer).plain([text for text in texts.values() if text])))
