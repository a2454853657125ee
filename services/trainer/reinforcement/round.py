"""A round of reinforcement, top to bottom: a team practises tasks and is judged by others.

Choose tasks, measure base and champion, train, measure again, pass the gate, publish. Killed anywhere, it
is taken up again from what is on disk and in the ledger, as rounds of fine-tuning are (`rounds`).
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.core.models import ContentRole, ServiceState, Subject
from services.core.process import failpoint
from services.trainer import assessing, gate, lineage, model, publish
from services.trainer.closing import close
from services.trainer.context import Context
from services.trainer.engine import randomness
from services.trainer.ledger import ANY_NUMBER_VARIABLE, Round
from services.trainer.recipes.reinforcement import Reinforcement, section
from services.trainer.reinforcement import evaluating, keeping, loop, publishing, reporting
from services.trainer.reinforcement.backend import AtRest
from services.trainer.reinforcement.episodes import Episode
from services.trainer.reinforcement.figures import Evaluation, Hooks, Iteration, Training
from services.trainer.reinforcement.measured import Reports, kept
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.rewards import Rewards
from services.trainer.reinforcement.rollout import Rollouts
from services.trainer.reinforcement.standing import Standing, measuring
from services.trainer.reinforcement.team import Team
from services.trainer.reporting import Reporter
from services.trainer.samples.chance import draw
from services.trainer.suites.formats import Task
from services.trainer.tasks import folder
from services.trainer.tasks.store import StoredTask, TaskExposure

log = logging.getLogger(__name__)
NOTHING_NEW = "no task that the team has not practised yet"
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Practice:
    """A team ready to be measured and trained, and what it works on."""

    context: Context
    round_: Round
    settings: Reinforcement
    source: model.Source
    team: Team
    rollouts: Rollouts
    at_rest: Rollouts  # of the bare base, asked as the team is
    tasks: Mapping[ContentRole, list[StoredTask]]

    def of(self, role: ContentRole) -> list[Task]:
        return [stored.task for stored in self.tasks[role]]


def begin(context: Context) -> Round | None:
    """Open a round, or take up the open one; None when the team has practised all there is.

    Raises ConfigurationError where several processes share the round, or there are no tasks; SandboxError
    where programs cannot be run: before a round is opened, which would count as tried.
    """
    _check_alone(context)
    assessing.open_sandbox(context.settings).close()
    books, asked = context.first_books, section(context.recipe)
    _read_tasks(context, asked)
    fewest = asked.min_new_tasks
    if os.environ.get(ANY_NUMBER_VARIABLE) or books.ledger.retrains():
        fewest = 0
    return books.ledger.open_or_resume_practice(books.lease, context.recipe, fewest)


def run(context: Context, round_: Round) -> None:
    """The round from its tasks to its verdict."""
    _check_alone(context)
    recipe, ledger = context.recipe, context.first_books.ledger
    champion = None if round_.parent is None else context.track_dir / round_.parent.directory
    if champion is not None:
        lineage.check_champion(recipe, publish.verify(champion))
    revision = lineage.revision(context, round_.parent)
    source = model.locate(recipe.base_model, revision, context.settings.cache_dir)
    assessing.check(recipe, context.settings, context.distribution)
    tasks = ledger.tasks(round_.round_id)
    failpoint("round.after_samples")

    with _practice(context, round_, source, tasks, champion) as practice:
        failpoint("round.after_load")
        reports = _assess_before(practice, champion)
        training = _train(practice)
        failpoint("round.after_train")
        reports[Subject.CANDIDATE] = _assess(practice, Subject.CANDIDATE)
        verdict = _verdict(practice, training, reports)
        log.info("%s: %s", "promoted" if verdict.promoted else "refused", verdict.reason)
        failpoint("round.before_close")

        with context.interruption.deferred():
            manifest = None
            if verdict.promoted:
                context.heart.beat(state=ServiceState.PUBLISHING, message="writing the adapters")
                finished = publishing.Finished(
                    source, practice.team, practice.settings.profiles, training, verdict, reports, tasks
                )
                manifest = publishing.publish_team(context, round_, finished)
                ledger.record_task_exposures(round_.round_id, _exposures(practice, training))
            close(context, round_, verdict, training.summary(), manifest=manifest)


def _read_tasks(context: Context, asked: Reinforcement) -> None:
    """The recipe's task sets as their files are now."""

    def on_done(done: int, total: int) -> None:
        context.interruption.check()
        context.heart.beat(message=f"trying the tasks' references in the sandbox, {done:,} of {total:,}")

    settings, database = context.settings, context.first_books.ledger.database
    context.heart.beat(urgent=True, message="reading the tasks")
    folder.sync(database, settings, lambda: assessing.open_sandbox(settings), asked.task_sets, on_done)


def _check_alone(context: Context) -> None:
    if context.distribution.world > 1:
        raise ConfigurationError(
            f"recipe {context.recipe.name}: a round with objective=reinforcement runs in one process, here"
            f" are {context.distribution.world}: set NPROC_PER_NODE=1 and NNODES=1"
        )


# load


@contextmanager
def _practice(
    context: Context,
    round_: Round,
    source: model.Source,
    tasks: Mapping[ContentRole, list[StoredTask]],
    champion: Path | None,
) -> Iterator[Practice]:
    """The team as it is at the round's beginning, with the sandbox that its programs run in."""
    recipe, settings = context.recipe, section(context.recipe)
    with (
        assessing.open_sandbox(context.settings) as sandbox,
        Rewards(sandbox, settings.reward_type) as rewards,
    ):
        context.heart.beat(urgent=True, message="loading the model")
        tokenizer = model.load_tokenizer(source, context.token)
        base = model.load_base(recipe, source, context.token, context.distribution.loads_on)
        model.feel_pulse(base, context.pulse)
        randomness.seed(recipe.seed, round_.number)
        if champion is None:
            team = Team.fresh(base, tokenizer, recipe, settings.profiles)
        else:
            team = Team.load(base, tokenizer, recipe, settings.profiles, champion)
        about: tuple[Any, ...] = (team, settings.profiles, settings, recipe, rewards)
        rollouts, at_rest = Rollouts(*about), Rollouts(*about, backend=AtRest(team))
        yield Practice(context, round_, settings, source, team, rollouts, at_rest, tasks)


# assess and train


def _assess_before(practice: Practice, champion: Path | None) -> dict[Subject, Reports]:
    """Base and champion, before anything is trained."""
    folder = practice.context.folder(practice.round_)
    found = {Subject.BASE: kept(folder, Subject.BASE, lambda: _measured(practice, Subject.BASE))}
    if champion is not None:
        found[Subject.CHAMPION] = kept(
            folder, Subject.CHAMPION, lambda: _measured(practice, Subject.CHAMPION, champion)
        )
    for subject, reports in found.items():
        _record(practice, subject, reports)
    return found


def _assess(practice: Practice, subject: Subject) -> Reports:
    reports = _measured(practice, subject)
    _record(practice, subject, reports)
    return reports


def _measured(practice: Practice, subject: Subject, weights: Path | None = None) -> Reports:
    """Of the team as it stands; of the base with its adapters off. All are asked with the same draws."""
    context, recipe = practice.context, practice.context.recipe

    def on_done(standing: Standing) -> None:
        context.interruption.check()
        context.heart.beat(
            state=ServiceState.EVALUATING,
            message=measuring(f"{subject} on held-out tasks", standing),
            tokens_per_s=standing.tokens_per_s,
        )

    report = evaluating.evaluate(
        practice.at_rest if subject is Subject.BASE else practice.rollouts,
        practice.of(ContentRole.HELD_OUT),
        practice.settings.eval_samples,
        draw("held out", recipe.seed).randrange(2**31),
        on_done,
    )
    others = evaluating.ability(context, practice.source, practice.team, subject, weights)
    return {evaluating.SUITE: report, **others}


def _record(practice: Practice, subject: Subject, reports: Reports) -> None:
    ledger = practice.context.first_books.ledger
    ledger.record_suites(practice.round_.round_id, subject, reports.values())


def _train(practice: Practice) -> Training:
    """The best state is in the team afterwards. A training that is finished is taken from disk."""
    context, round_, recipe = practice.context, practice.round_, practice.context.recipe
    with context.interruption.deferred():
        prepared = loop.Setup(
            team=practice.team,
            optimizers=Optimizers(practice.team, recipe),
            rollouts=practice.rollouts,
            tasks_train=practice.of(ContentRole.TRAIN),
            tasks_validation=practice.of(ContentRole.VALIDATION),
            recipe=recipe,
            folder=context.folder(round_),
            round_number=round_.number,
        )
        reporter = Reporter(context, round_, {})
        try:
            training = loop.train(prepared, _hooks(practice, reporter))
        finally:
            reporter.close()
    _write_summary(context, round_, training)
    return training


def _hooks(practice: Practice, reporter: Reporter) -> Hooks:
    trained = {stored.task.key: stored for stored in practice.tasks[ContentRole.TRAIN]}

    def on_iteration(iteration: Iteration) -> None:
        reporter.on_log("train", iteration.step, reporting.of_iteration(iteration))

    def on_evaluation(evaluation: Evaluation) -> None:
        reporter.on_log("eval", evaluation.step, reporting.of_evaluation(evaluation))

    def on_episodes(step: int, episodes: Sequence[Episode]) -> None:
        keeping.keep(practice.context, practice.round_, step, episodes, trained)

    return Hooks(
        on_iteration=on_iteration,
        on_evaluation=on_evaluation,
        on_episodes=on_episodes,
        beat=reporter.on_progress,
        check=practice.context.interruption.check,
    )


def _write_summary(context: Context, round_: Round, training: Training) -> None:
    """Beside TensorBoard's events, where it stays when the round is closed, and among the checkpoints."""
    text = json.dumps(training.summary(), indent=1, allow_nan=False)
    beside_events = context.settings.logs_dir / "tensorboard" / context.recipe.name / round_.name
    for place in (context.folder(round_), beside_events):
        place.mkdir(parents=True, exist_ok=True)
        unfinished = place / f".{SUMMARY}"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(place / SUMMARY)


# gate and publish


def _verdict(practice: Practice, training: Training, reports: Mapping[Subject, Reports]) -> gate.Verdict:
    practice.context.heart.beat(urgent=True, message="the gate decides")
    history = gate.History(practice.context.first_books.ledger.history())
    return evaluating.verdict(practice.context.recipe, reports, history, evaluating.notes(training))


def _exposures(practice: Practice, training: Training) -> list[TaskExposure]:
    """How often each task was practised by what is published."""
    found = [(each, training.exposures.get(each.task.key)) for each in practice.tasks[ContentRole.TRAIN]]
    return [
        TaskExposure(stored.task_id, seen.episodes, seen.solved, seen.tokens)
        for stored, seen in found
        if seen is not None
    ]
