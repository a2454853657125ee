"""What a model is worth: its held-out loss, and how it does on the recipe's suites.

Losses on this code and the suites of base and champion are measured before anything is trained: what cannot
be measured is known before hours were spent. Suites' results are kept by weights and item, so that base and
champion are measured once in a track's life.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.core.models import ServiceState, Subject
from services.core.sandbox import Sandbox
from services.core.settings import Settings
from services.trainer import evaluate, gate
from services.trainer.context import Context
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import Distribution
from services.trainer.evaluate import ContentLoss
from services.trainer.extraction import Extraction
from services.trainer.model import Source
from services.trainer.planted import Planted, evidence
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import SampleSource
from services.trainer.suites import cache, likelihood, run
from services.trainer.suites.suite import Report

log = logging.getLogger(__name__)
MOST_ON_CPU = 48  # tasks of a benchmark, spread over it: HumanEval's 164 cost two cores a minute a model


@dataclass(frozen=True)
class Assessment:
    """One model's results."""

    losses: Sequence[ContentLoss]
    reports: Mapping[str, Report] = field(default_factory=dict)  # by suite
    extractions: Sequence[Extraction] = ()  # of the round's planted secrets

    def figures(self) -> dict[str, Any]:
        """What a person compares: of this code, and of every suite."""
        code = {
            "bits_per_byte": evaluate.bits_per_byte(self.losses),
            "perplexity": evaluate.perplexity(self.losses),
            "token_accuracy": evaluate.token_accuracy(self.losses),
        }
        return {"code": code, **{name: dict(report.figures) for name, report in self.reports.items()}}


Assessments = Mapping[Subject, Assessment]
Reports = Mapping[Subject, Mapping[str, Report]]  # of each model, by suite


@dataclass(frozen=True)
class Assessor:
    """The round's model as it stands, and all that measuring it by suites takes."""

    context: Context
    source: Source
    tokenizer: Any
    trained: Any
    compute: Compute
    contents: Sequence[SampleSource]  # held out

    def reports(self, subject: Subject, trained: Path | Mapping[str, Any] | str | None) -> dict[str, Report]:
        """Every suite's report of the weights that are in the model now, in every process the same.

        trained: what they are beside the base: a published folder, tensors by name, or a name of their own.
        """
        suites = wanted(self.context.recipe, self.context.distribution)
        if self.context.distribution.splits:
            return self._measured(suites, subject, trained)  # a pass takes every process
        return self.context.distribution.agree(lambda: self._measured(suites, subject, trained))

    def _measured(
        self, suites: Sequence[str], subject: Subject, trained: Path | Mapping[str, Any] | str | None
    ) -> dict[str, Report]:
        context = self.context
        if not suites:
            return {}
        base = self.compute.model
        dtype = base.get_input_embeddings().weight.dtype
        identity = cache.base_identity(
            self.source,
            numbers=f"{context.recipe.method} {dtype}",
            commit=getattr(base.config, "_commit_hash", None),
        )
        if isinstance(trained, str):
            identity, trained = f"{identity} {trained}", None
        weights = cache.weights_of(identity, trained)

        def on_done(what: str, done: int, total: int) -> None:
            context.interruption.check()
            context.heart.beat(state=ServiceState.EVALUATING, message=f"{subject}: {what} {done}/{total}")

        bench = run.Bench(
            recipe=context.recipe,
            cache_dir=context.settings.cache_dir,
            benchmarks_dir=context.settings.benchmarks_dir,
            contents=self.contents,
            sandbox=lambda: open_sandbox(context.settings),
            compute=self.compute,
            most=None if context.distribution.device.type == "cuda" else MOST_ON_CPU,
            on_done=on_done,
        )
        found = {}
        for suite in suites:
            found[suite] = run.measure(suite, self.trained, self.tokenizer, weights=weights, bench=bench)
            shown = ", ".join(f"{name} {value:.4g}" for name, value in found[suite].figures.items())
            log.info("%s, %s: %s (%.1f s)", subject, suite, shown or "no items", found[suite].seconds)
        return found


def open_sandbox(settings: Settings) -> Sandbox:
    return Sandbox.open(settings.sandbox_socket, allow_unsandboxed=settings.allow_unsandboxed)


def wanted(recipe: Recipe, distribution: Distribution) -> list[str]:
    """The suites of a round, each once; a model split over devices writes nothing, so only losses then."""
    named = [recipe.general_suite] if recipe.general_suite is not None else []
    named += recipe.suites
    if recipe.completion_items:
        named.append(run.COMPLETION)
    suites = list(dict.fromkeys(named))
    return [suite for suite in suites if is_loss(suite)] if distribution.splits else suites


def check(recipe: Recipe, settings: Settings, distribution: Distribution) -> None:
    """Raises ConfigurationError for a suite that is not there, or that the gate could never see measured."""
    for suite in wanted(recipe, distribution):
        run.check(suite, settings.benchmarks_dir)
    general = recipe.general_suite
    if general is not None and distribution.splits and not is_loss(general):
        raise ConfigurationError(
            f"general_suite={general} is written by the model, which distributed={recipe.distributed} splits"
            f" over {distribution.world} devices: set it to {general}{likelihood.SUFFIX}"
        )


def is_loss(suite: str) -> bool:
    """Whether a suite is measured without anything being written."""
    return suite.endswith(likelihood.SUFFIX)


def judge(
    recipe: Recipe,
    assessments: Assessments,
    held_out: Sequence[SampleSource],
    history: gate.History,
    notes: Sequence[str] = (),
    planted: Sequence[Planted] = (),
) -> gate.Verdict:
    """The gate's verdict on the candidate, with everyone's bits per byte.

    held_out: the contents that the losses are of; near-duplicates among them count as one observation.
    """
    clusters = {content.content_id: content.cluster_id for content in held_out}
    against = Subject.CHAMPION if Subject.CHAMPION in assessments else Subject.BASE
    before, after = assessments[against].losses, assessments[Subject.CANDIDATE].losses
    code = [
        gate.Paired(str(clusters[new.content_id]), old.nats, new.nats, new.bytes)
        for old, new in zip(before, after, strict=True)
    ]
    given_up = evidence(
        planted, *(assessments[subject].extractions for subject in (Subject.BASE, Subject.CANDIDATE))
    )
    general = general_evidence(recipe, {subject: each.reports for subject, each in assessments.items()})
    told = gate.Evidence(code, against, general, history, tuple(notes), given_up)
    bits = {
        str(subject): evaluate.bits_per_byte(assessments[subject].losses) if subject in assessments else None
        for subject in Subject
    }
    return replace(gate.decide(told, rule_of(recipe)), bits_per_byte=bits)


def rule_of(recipe: Recipe) -> gate.Rule:
    """The recipe's part of a decision."""
    return gate.Rule(
        min_improvement=recipe.min_improvement,
        confidence=recipe.confidence,
        expected_improvement=recipe.expected_improvement,
        general_suite=recipe.general_suite,
        general_margin=recipe.general_margin,
        seed=recipe.seed,
    )


def general_evidence(recipe: Recipe, reports: Reports) -> gate.GeneralEvidence | None:
    """Ability elsewhere, base and candidate paired by item; None when either was not measured."""
    suite = recipe.general_suite
    if suite is None:
        return None
    before, after = (reports[subject].get(suite) for subject in (Subject.BASE, Subject.CANDIDATE))
    if before is None or after is None or before.version != after.version:
        return None
    metric: gate.Metric = "nats" if is_loss(suite) else "rate"
    return gate.GeneralEvidence(suite, metric, paired(before, after))


def paired(before: Report, after: Report) -> list[gate.Paired]:
    """The items that both were measured on."""
    values = {score.item: score.value for score in before.scores}
    return [
        gate.Paired(score.group, values[score.item], score.value, score.weight)
        for score in after.scores
        if score.item in values
    ]
