"""What a team is worth: the held-out tasks it solves, its ability elsewhere, the gate's verdict on both."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

from services.core.models import Json, Subject
from services.trainer import gate
from services.trainer.assessing import Assessor, Reports, general_evidence, paired, rule_of
from services.trainer.context import Context
from services.trainer.engine.compute import Compute
from services.trainer.model import Source
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement.episodes import Episode
from services.trainer.reinforcement.figures import Training
from services.trainer.reinforcement.standing import Standing
from services.trainer.suites.cache import version_of
from services.trainer.suites.estimators import mean_pass_at_k, pass_at_k
from services.trainer.suites.formats import Task
from services.trainer.suites.programs import KS, SHOWN_CHARACTERS, item_key
from services.trainer.suites.suite import Report, Score

if TYPE_CHECKING:
    from services.trainer.reinforcement.team import Team

OnDone = Callable[[Standing], None]
SUITE = "tasks"  # what the report of held-out tasks is called


class Collecting(Protocol):
    """What is used of `rollout.Rollouts`."""

    def collect(
        self,
        tasks: Sequence[Task],
        *,
        group_size: int,
        seed: int,
        greedy: bool = False,
        samples: int = 1,
        on_done: OnDone | None = None,
    ) -> list[Episode]: ...


def evaluate(
    rollouts: Collecting,
    tasks: Sequence[Task],
    samples: int,
    seed: int,
    on_done: OnDone | None = None,
) -> Report:
    """The pass rate of every task, from `samples` episodes of it: one is written greedily, several are drawn.

    Nothing is learned. Raises ValueError where a task has another number of episodes, and what `on_done`
    raises.
    """
    began = time.monotonic()
    episodes = rollouts.collect(
        tasks, group_size=1, seed=seed, greedy=samples == 1, samples=samples, on_done=on_done
    )
    of_task: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        of_task[episode.task].append(episode)
    scores = tuple(_score(task, of_task[task.key], samples) for task in tasks)
    return Report(
        suite=SUITE,
        version=version_of([score.item for score in scores]),
        scores=scores,
        seconds=time.monotonic() - began,
        figures=_figures(scores, samples),
    )


def ability(
    context: Context, source: Source, team: "Team", subject: Subject, weights: Path | None = None
) -> dict[str, Report]:
    """The recipe's suites, its general one among them, written by the role that answers; by the bare base.

    weights: the champion's published folder; None: the team as it is. What was measured of the same weights
    before is not measured again.
    """
    recipe = context.recipe.model_copy(update={"completion_items": 0})  # of no code: there are no contents
    assessor = Assessor(
        replace(context, recipe=recipe), source, team.tokenizer, team.model,
        Compute(team.model, united=False), (),
    )  # fmt: skip
    if subject is Subject.BASE:
        with team.at_rest():
            return assessor.reports(subject, None)
    role = team.roles[-1]
    with team.acting(role):
        return assessor.reports(subject, team.parameters_of(role) if weights is None else weights / role)


def verdict(
    recipe: Recipe, reports: Reports, history: gate.History, notes: Sequence[str] = ()
) -> gate.Verdict:
    """The gate's verdict on the candidate, with everyone's pass rate.

    Tasks solved are compared with the champion's, or the base's where there is none; ability elsewhere
    always with the base's.
    """
    against = Subject.CHAMPION if Subject.CHAMPION in reports else Subject.BASE
    before, after = reports[against][SUITE], reports[Subject.CANDIDATE][SUITE]
    if before.version != after.version:
        return gate.refuse(f"the {against} and the candidate were measured on other tasks", against)
    told = gate.Evidence(
        paired(before, after),
        against,
        general_evidence(recipe, reports),
        history,
        tuple(notes),
        metric="rate",
        step=1 / max(score.detail["samples"] for score in after.scores) if after.scores else 1.0,
    )
    rates = {str(subject): _pass_rate(reports[subject][SUITE]) for subject in reports}
    return replace(gate.decide(told, rule_of(recipe)), pass_rates=rates)


def notes(training: Training) -> list[str]:
    """What a reader of the verdict has to know of the training: why the candidate may be what it began as."""
    found = [training.stopped_why] if training.collapsed and training.stopped_why else []
    if training.curve and training.weights_step == 0 < training.steps:
        found.append(
            f"none of the {training.steps} iterations solved more of the validation tasks than the weights"
            " they began with, so those are the candidate"
        )
    return found


def figures(reports: Reports) -> Json:
    """What a person compares: of every model the figures of each suite."""
    return {
        str(subject): {name: dict(report.figures) for name, report in suites.items()}
        for subject, suites in reports.items()
    }


def _score(task: Task, episodes: Sequence[Episode], samples: int) -> Score:
    if len(episodes) != samples:
        raise ValueError(f"{task.name} has {len(episodes)} episodes: expected {samples}")
    passed = sum(episode.solved for episode in episodes)
    shown = episodes[0]
    detail = {
        "samples": samples,
        "passed": passed,
        "results": dict(Counter(episode.result for episode in episodes).most_common()),
        "completion": shown.programs[-1][:SHOWN_CHARACTERS] if shown.programs else "",
        "said": {action.role: action.text[:SHOWN_CHARACTERS] for action in shown.actions},  # in its last turn
    }
    key = item_key(task, f"a team, {samples} samples")
    return Score(key, task.name, task.name, "pass@1", pass_at_k(samples, passed, 1), detail=detail)


def _figures(scores: Sequence[Score], samples: int) -> dict[str, float]:
    """pass@k for 1, 10, 100 and the number of samples, where there are so many; pass@1 is the pass rate."""
    counts = [(samples, score.detail["passed"]) for score in scores]
    ks = sorted({k for k in (*KS, samples) if k <= samples}) if counts else []
    found = {f"pass@{k}": mean_pass_at_k(counts, k) for k in ks}
    return {name: value for name, value in found.items() if value is not None}


def _pass_rate(report: Report) -> float | None:
    return fmean(score.value for score in report.scores) if report.scores else None
