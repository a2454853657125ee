"""One round, top to bottom, in every process that torchrun has started for it.

Select and snapshot, make samples, measure what is there, train, measure again, pass the gate, publish.
Killed anywhere, it is taken up again from what is on disk and in the ledger.
"""

import datetime
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from services.core import log as logs
from services.core.models import Json, ServiceState, Subject
from services.core.process import failpoint
from services.trainer import (
    architecture,
    canary_suite,
    evaluate,
    gate,
    lineage,
    model,
    planning,
    publish,
    shown_samples,
)
from services.trainer.assessing import Assessment, Assessments, Assessor, check, judge
from services.trainer.closing import close
from services.trainer.context import Context
from services.trainer.engine import loop, setup
from services.trainer.engine.compute import Compute
from services.trainer.engine.feed import Order
from services.trainer.engine.sharing import sharing
from services.trainer.evaluate import ContentLoss
from services.trainer.ledger import Round
from services.trainer.measuring import kept, measure
from services.trainer.plan import Plan
from services.trainer.planted import trained_on
from services.trainer.planted.probing import probe
from services.trainer.predictions import predict
from services.trainer.receipts import exposure
from services.trainer.receipts import writing as receipt
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement import round as reinforcement
from services.trainer.reporting import Reporter
from services.trainer.rows import Rows, lacking, make_rows, mean_document_tokens
from services.trainer.suites import judging

log = logging.getLogger(__name__)
NOTHING_YET = "nothing to train on yet: what is new is held out, or more than its sources' share of a round"


@dataclass(frozen=True)
class Trainee:
    """The model of the round, ready to be measured and trained."""

    source: model.Source
    tokenizer: Any
    trained: Any
    compute: Compute
    plan: Plan


def run(context: Context) -> None:
    """The round from its snapshot to its verdict; returns without one when there is nothing to train on."""
    round_ = context.distribution.agree(lambda: _open(context))
    if round_ is None:
        is_practice = context.recipe.objective == "reinforcement"
        context.heart.beat(urgent=True, message=reinforcement.NOTHING_NEW if is_practice else NOTHING_YET)
        return
    recipe = round_.recipe  # a round ends with the recipe it began with
    shared = sharing(recipe, context.distribution, context.settings.load_timeout)
    context = replace(context, recipe=recipe, distribution=shared)
    context.heart.beat(
        urgent=True, message="getting the base model ready",
        round_id=round_.round_id, round=round_.number, attempt=round_.attempt,
    )  # fmt: skip
    logs.bind(track=recipe.name, round=round_.number)
    about = {"round_id": round_.round_id}  # what is logged from here on is of this round
    log.info("%s of %s, attempt %d", round_.name, recipe.name, round_.attempt, extra=about)
    if recipe.objective == "reinforcement":
        reinforcement.run(context, round_)
    else:
        _fine_tune(context, round_)


def _fine_tune(context: Context, round_: Round) -> None:
    recipe, shared = context.recipe, context.distribution
    champion = None if round_.parent is None else context.track_dir / round_.parent.directory
    if champion is not None:
        lineage.check_champion(recipe, publish.verify(champion))
    source = model.locate(
        recipe.base_model, lineage.revision(context, round_.parent), context.settings.cache_dir
    )
    tokenizer = model.load_tokenizer(source, context.token)
    check(recipe, context.settings, shared)
    rows = context.distribution.agree(lambda: _rows(context, round_, tokenizer))
    failpoint("round.after_samples")
    if (reason := lacking(rows)) is not None:
        close(context, round_, gate.refuse(reason, Subject.BASE))
        return
    shown_samples.keep(context, round_, rows, tokenizer)

    trainee = _load(context, round_, source, tokenizer, rows, champion)
    failpoint("round.after_load")
    assessments = _assess_before(context, round_, trainee, rows, champion)
    training = _train(context, round_, trainee, rows)
    failpoint("round.after_train")
    assessments[Subject.CANDIDATE] = _assess_candidate(context, round_, trainee, rows)
    verdict = _verdict(context, round_, rows, training, assessments)
    log.info("%s: %s", "promoted" if verdict.promoted else "refused", verdict.reason)
    failpoint("round.before_close")

    with context.interruption.deferred():
        manifest = None
        if verdict.promoted:
            manifest = _publish(context, round_, trainee, rows, training, verdict, assessments)
        losses = {subject: each.losses for subject, each in assessments.items()}
        close(context, round_, verdict, training, losses, manifest)


# select and load


def _open(context: Context) -> Round | None:
    settings, books = context.settings, context.first_books
    if books.ledger.open_round() is None:  # a round keeps the recipe it is opened with: only one that fits
        architecture.require(context.recipe, settings.cache_dir, context.token)
        if context.recipe.objective == "reinforcement":
            return reinforcement.begin(context)
    return books.ledger.open_or_resume(
        books.lease,
        context.recipe,
        settings.quality_threshold,
        settings.max_dataset_size,
        fewest=min(settings.min_new_files, context.recipe.max_contents or settings.max_dataset_size),
        barred=judging.digests(context.recipe, settings.benchmarks_dir),
    )


def _rows(context: Context, round_: Round, tokenizer: Any) -> Rows:
    ledger = context.first_books.ledger
    snapshot, solved = ledger.snapshot(round_.round_id), ledger.solutions(round_.round_id)
    return make_rows(context, snapshot, tokenizer, round_.number, solved)


def _load(
    context: Context, round_: Round, source: model.Source, tokenizer: Any, rows: Rows, champion: Path | None
) -> Trainee:
    context.heart.beat(urgent=True, message="loading the model")
    recipe, distribution = context.recipe, context.distribution
    hardware = planning.hardware(distribution.world)
    base = model.load_base(recipe, source, context.token, distribution.loads_on)
    plan = planning.plan(base.config, recipe, hardware, mean_document_tokens(rows.train))
    opened = model.for_training(base, recipe, champion, context.folder(round_), distribution)
    trained = distribution.prepare(opened)
    compute = planning.compute(trained, plan)
    model.feel_pulse(trained, context.pulse)
    return Trainee(source, tokenizer, trained, compute, plan)


# assess and train


def _assess_before(
    context: Context, round_: Round, trainee: Trainee, rows: Rows, champion: Path | None
) -> dict[Subject, Assessment]:
    """Base and champion, before anything is trained; leaves the champion's weights in the model."""
    folder = context.folder(round_)
    found = {}
    with model.as_base(trainee.trained, has_champion=champion is not None):
        found[Subject.BASE] = _assess(context, round_, trainee, rows, Subject.BASE, None, folder)
    if champion is not None:
        model.begin_from(trainee.trained, champion, context.distribution)
        trainee.compute.weights_changed()
        found[Subject.CHAMPION] = _assess(context, round_, trainee, rows, Subject.CHAMPION, champion, folder)
    return found


def _assess_candidate(context: Context, round_: Round, trainee: Trainee, rows: Rows) -> Assessment:
    model.settle(trainee.trained, context.distribution)
    trainee.compute.weights_changed()
    weights: Mapping[str, Any] | str = f"{round_.snapshot_hash}, attempt {round_.attempt}"
    if not context.distribution.splits:  # each process has a part of them
        weights = context.distribution.trainable(trainee.trained)
    return _assess(context, round_, trainee, rows, Subject.CANDIDATE, weights, None)


def _assess(
    context: Context, round_: Round, trainee: Trainee, rows: Rows, subject: Subject,
    weights: Path | Mapping[str, Any] | str | None, folder: Path | None,
) -> Assessment:  # fmt: skip
    """The model as it stands, with these `weights` beside the base; `folder` keeps what will not change."""
    compute, tokenizer = trainee.compute, trainee.tokenizer

    def measured() -> list[ContentLoss]:
        return measure(context, compute, rows.held_out, tokenizer.pad_token_id, what=subject)

    losses = measured() if folder is None else kept(context, folder, subject, measured)
    contents = rows.held_out_contents
    assessor = Assessor(context, trainee.source, tokenizer, trainee.trained, compute, contents)
    reports = assessor.reports(subject, weights)
    extractions = probe(context, trainee.trained, tokenizer, compute, rows.planted, subject)
    if context.distribution.is_first:
        context.first_books.ledger.record_suites(round_.round_id, subject, reports.values())
    return Assessment(losses, reports, extractions)


def _train(context: Context, round_: Round, trainee: Trainee, rows: Rows) -> Json:
    """The figures of the training; the best state is in the model. A finished one is taken from disk."""
    recipe, compute, pad_id = context.recipe, trainee.compute, trainee.tokenizer.pad_token_id

    def evaluate_now(_step: int) -> tuple[float, float]:
        items = measure(context, compute, rows.validation, pad_id, what="validation part")
        return evaluate.nats_per_token(items), evaluate.bits_per_byte(items)

    def predict_now() -> Sequence[Any]:
        most = 0 if context.distribution.splits else recipe.logged_predictions
        return predict(trainee.trained, trainee.tokenizer, rows.validation, most)

    with context.interruption.deferred():
        prepared = setup.prepare(
            compute,
            rows.train,
            recipe,
            context.folder(round_),
            pad_id=pad_id,
            round_number=round_.number,
            micro_batch=trainee.plan.micro_batch,
            distribution=context.distribution,
            speed=planning.speed(trainee.plan),
        )
        reporter = Reporter(context, round_, planning.summary(trainee.plan))
        try:
            return loop.train(prepared, reporter.hooks(evaluate_now, predict_now)).as_json()
        finally:
            reporter.close()


# gate and publish


def _verdict(
    context: Context, round_: Round, rows: Rows, training: Json, assessments: Assessments
) -> gate.Verdict:
    context.heart.beat(urgent=True, message="the gate decides")
    history = context.distribution.agree(lambda: gate.History(context.first_books.ledger.history()))
    notes = [] if round_.held_out is None else [f"held out {round_.held_out.words}"]
    planted = trained_on(rows.planted, _exposed(context.recipe, round_, rows, training).exposures)
    return judge(context.recipe, assessments, rows.held_out_contents, history, notes, planted)


def _publish(
    context: Context, round_: Round, trainee: Trainee, rows: Rows, training: Json, verdict: gate.Verdict,
    assessments: Assessments,
) -> Json | None:  # fmt: skip
    context.heart.beat(state=ServiceState.PUBLISHING, message="writing the adapter")
    trained, distribution = trainee.trained, context.distribution
    nats = canary_suite.measure(trainee.compute, trainee.tokenizer, context.recipe, distribution)
    weights: Mapping[str, Any] = {}
    if model.kind(context.recipe) == "model":
        weights = distribution.whole_weights(trained, model.PUBLISHED_DTYPE)  # takes every process
    if not distribution.is_first:
        return None

    manifest = {
        "track": context.recipe.name,
        "round": round_.number,
        "kind": model.kind(context.recipe),
        "recipe": context.recipe.model_dump(mode="json"),
        "base_model": context.recipe.base_model,
        "base_revision": getattr(trained.config, "_commit_hash", None) or trainee.source.revision,
        "parent": None if round_.parent is None else round_.parent.directory,
        "snapshot_hash": round_.snapshot_hash,
        "metrics": {
            "training": training,
            "verdict": verdict.as_json(),
            "assessments": {str(subject): each.figures() for subject, each in assessments.items()},
        },
        "canary": nats,
        "greedy": None if distribution.splits else canary_suite.greedy(trained, trainee.tokenizer),
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    ledger, beat = context.first_books.ledger, context.heart.beat
    parent = None if round_.parent is None else context.track_dir / round_.parent.directory
    exposures: list[tuple[int, int, int]] = []
    exposed = _exposed(context.recipe, round_, rows, training)

    def write(folder: Path) -> None:
        model.save(trained, folder, weights, context.folder(round_), beat)
        trainee.tokenizer.save_pretrained(folder)
        model.drop_code(folder)
        exposures[:] = receipt.write(folder, ledger, round_, manifest, parent, exposed, beat)

    published = publish.publish(context.track_dir, round_.name, write, manifest, beat)
    ledger.record_exposures(round_.round_id, exposures)
    ledger.record_solutions_seen(round_.round_id, receipt.solutions_seen(exposed.exposures))
    return published


def _exposed(recipe: Recipe, round_: Round, rows: Rows, training: Json) -> receipt.Training:
    """How often each content was in the steps behind the weights."""

    def order_of(world: int) -> Order:
        return setup.order_of(rows.train, recipe, round_.number, world)

    taken = exposure.batches(training, order_of)
    return receipt.Training(
        steps=training["weights_step"],
        is_counted=exposure.is_counted(training),
        exposures=exposure.count(rows.train, taken),
        planted={each.content_id: each.line for each in rows.planted},
    )
