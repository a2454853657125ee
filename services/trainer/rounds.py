"""One round, top to bottom: the child process that the daemon starts through torchrun.

Select and snapshot, make samples, measure what is there, train, measure again, pass the gate, publish.
Killed anywhere, it is taken up again from what is on disk and in the ledger.
"""

import datetime
import json
import logging
import math
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from services.core import log as logs
from services.core.db import Database
from services.core.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    ModelNotFoundError,
    PublishError,
    RatchetError,
    is_disk_full,
)
from services.core.models import ContentRole, Json, RoundState, ServiceState, Subject
from services.core.process import die_with_parent, failpoint
from services.core.settings import Settings, from_environment
from services.trainer import evaluate, gate, model, publish, recipe, samples, train
from services.trainer.evaluate import ContentLoss
from services.trainer.heartbeat import Heart
from services.trainer.interruption import Interrupted, Interruption
from services.trainer.ledger import LEASE_VARIABLE, Adapter, Content, Lease, Ledger, Round
from services.trainer.packing import Row, pack
from services.trainer.recipe import Recipe
from services.trainer.tracking import Trackers

log = logging.getLogger(__name__)
CANDIDATE = "candidate"  # the finished training, kept until the round is closed
TRAINING = "training.json"  # written last into it
PERMANENT = (ConfigurationError, ModelNotFoundError, PublishError)  # trying again at once cures none
TORCHRUN_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")


@dataclass(frozen=True)
class Context:
    """What every stage of the round is given."""

    settings: Settings
    recipe: Recipe
    ledger: Ledger
    lease: Lease
    heart: Heart
    interruption: Interruption

    @property
    def track_dir(self) -> Path:
        return self.settings.adapters_dir / self.recipe.name

    def folder(self, round_: Round) -> Path:
        return self.settings.checkpoints_dir / self.recipe.name / round_.name


@dataclass(frozen=True)
class Rows:
    train: list[Row]
    validation: list[Row]
    held_out: list[Row]


def run(context: Context) -> None:
    """The round from its snapshot to its verdict; returns without one when there is nothing to train on."""
    round_ = _agreed(lambda: _open(context))
    if round_ is None:
        context.heart.beat(urgent=True, message="nothing to train on yet: what is new is held out")
        return
    context = replace(context, recipe=round_.recipe)  # a round ends with the recipe it began with
    context.heart.beat(round_id=round_.round_id, round=round_.number, attempt=round_.attempt)
    log.info("%s of %s, attempt %d", round_.name, context.recipe.name, round_.attempt)

    parent = None if round_.parent is None else context.track_dir / round_.parent.directory
    if parent is not None:
        _check_parent(context.recipe, publish.verify(parent))
    source = model.locate(
        context.recipe.base_model, _revision(context, round_.parent), context.settings.cache_dir
    )
    token = context.settings.hf_token.get_secret_value() if context.settings.hf_token else None
    tokenizer = model.load_tokenizer(source, token)
    snapshot = context.ledger.snapshot(round_.round_id)
    rows = _rows(context, snapshot, tokenizer)
    if (lacking := _lacking(rows)) is not None:
        _close(context, round_, gate.refuse(lacking, Subject.BASE), None, {})
        return

    context.heart.beat(urgent=True, message="loading the model")
    base = model.load_base(context.recipe, source, token)
    adapted = model.with_adapter(base, context.recipe, parent)
    model.feel_pulse(adapted, context.heart.beat)
    measured = partial(_measure, context, rows=rows.held_out, pad_id=tokenizer.pad_token_id)
    losses: dict[Subject, list[ContentLoss]] = {}
    with adapted.disable_adapter():
        losses[Subject.BASE] = measured(adapted, what="base")
    if parent is not None:
        losses[Subject.CHAMPION] = measured(adapted, what="champion")

    training = _train(context, round_, adapted, rows, tokenizer.pad_token_id)
    failpoint("round.after_train")
    losses[Subject.CANDIDATE] = measured(adapted, what="candidate")
    verdict = _verdict(context.recipe, losses)
    log.info("%s: %s", "promoted" if verdict.promoted else "refused", verdict.reason)
    failpoint("round.before_close")

    with context.interruption.deferred():
        manifest = None
        if verdict.promoted:
            manifest = _publish(context, round_, source, adapted, tokenizer, training, verdict)
        _close(context, round_, verdict, training, losses, manifest)


# select and snapshot


def _open(context: Context) -> Round | None:
    settings = context.settings
    return context.ledger.open_or_resume(
        context.lease, context.recipe, settings.quality_threshold, settings.max_dataset_size
    )


def _agreed(work: Any) -> Any:
    """What rank 0 gets from `work`, on every rank."""
    if not torch.distributed.is_initialized():
        return work()
    box = [work() if torch.distributed.get_rank() == 0 else None]
    torch.distributed.broadcast_object_list(box)
    return box[0]


def _check_parent(recipe_: Recipe, manifest: Mapping[str, Any]) -> None:
    """Raises ConfigurationError when the champion belongs to another base model."""
    if manifest["base_model"] != recipe_.base_model:
        raise ConfigurationError(
            f"the champion of {recipe_.name} was trained on {manifest['base_model']}, the recipe now says"
            f" base_model {recipe_.base_model}: give it a new name, which begins a track of its own"
        )
    if manifest["recipe"]["lora_r"] != recipe_.lora_r:
        log.warning(
            "going on from the champion's adapter of rank %d: lora_r %d applies to a new track only",
            manifest["recipe"]["lora_r"],
            recipe_.lora_r,
        )


def _revision(context: Context, parent: Adapter | None) -> str | None:
    """The hub commit: the recipe's, or the one the track began with."""
    return context.recipe.revision or (parent.manifest.get("base_revision") if parent else None)


# samples


def _rows(context: Context, snapshot: Mapping[ContentRole, Sequence[Content]], tokenizer: Any) -> Rows:
    rows: dict[ContentRole, list[Row]] = {}
    for role, contents in snapshot.items():
        made: list[samples.Sample] = []
        for number, content in enumerate(contents, 1):
            made += samples.completion_pairs(
                content.content_id, content.text, content.language, tokenizer, context.recipe.max_length
            )
            context.heart.beat(message=f"making samples: {role} {number}/{len(contents)}")
        if role is not ContentRole.TRAIN:
            made = evaluate.first_pairs(made, context.recipe.held_out_pairs)
        rows[role] = pack(made, context.recipe.max_length)
        log.info(
            "%s: %d contents, %d samples, %d rows, %d tokens, %d cut off",
            role,
            len(contents),
            len(made),
            len(rows[role]),
            sum(row.tokens for row in rows[role]),
            sum(sample.truncated_tokens for sample in made),
        )
    return Rows(rows[ContentRole.TRAIN], rows[ContentRole.VALIDATION], rows[ContentRole.HELD_OUT])


def _lacking(rows: Rows) -> str | None:
    """Why this snapshot cannot be trained on and judged, or None."""
    held_out = len({sample.content_id for row in rows.held_out for sample in row.samples})
    if held_out < gate.MIN_ITEMS:
        return gate.too_few(held_out)
    if not rows.validation:  # the gate's own files are no substitute
        return "no file is left for early stopping to look at: add more code"
    return None if rows.train else "no content is long enough to make a sample of: add more code"


# measure


def _measure(
    context: Context,
    adapted: Any,
    *,
    rows: Sequence[Row],
    pad_id: int,
    what: str,
) -> list[ContentLoss]:
    def on_batch(done: int, total: int) -> None:
        if context.interruption.requested:
            raise Interrupted
        context.heart.beat(
            state=ServiceState.EVALUATING, message=f"held-out loss of the {what}: {done}/{total} rows"
        )

    items = evaluate.losses(
        adapted,
        rows,
        batch_size=context.recipe.batch_size,
        pad_id=pad_id,
        flatten=model.wants_flat_rows(adapted),
        on_batch=on_batch,
    )
    log.info("%s: %.4f bits per byte over %d contents", what, evaluate.bits_per_byte(items), len(items))
    return items


# train


def _train(context: Context, round_: Round, adapted: Any, rows: Rows, pad_id: int) -> Json:
    """The figures of the training; the best state is in `adapted`. A finished one is taken from disk."""
    folder = context.folder(round_)
    finished = folder / CANDIDATE
    if (finished / TRAINING).is_file():
        log.info("the training of %s is finished already", round_.name)
        adapted.load_adapter(str(finished), adapted.active_adapter, is_trainable=False)
        return dict(json.loads((finished / TRAINING).read_text(encoding="utf-8")))
    trackers = None
    if _is_first_rank():
        config = {**context.recipe.model_dump(mode="json"), "round": round_.number}
        trackers = Trackers(context.settings, context.recipe.name, round_.name, config)
    try:
        with context.interruption.deferred():
            hooks = _hooks(context, round_, trackers, rows, pad_id)
            flat = model.wants_flat_rows(adapted)
            result = train.train(adapted, rows.train, context.recipe, folder, pad_id, hooks, flatten=flat)
    finally:
        if trackers is not None:
            trackers.close()
    if _is_first_rank():
        adapted.save_pretrained(finished)
        unfinished = finished / f".{TRAINING}"
        unfinished.write_text(json.dumps(result.as_json()), encoding="utf-8")
        unfinished.replace(finished / TRAINING)
    return result.as_json()


def _hooks(
    context: Context, round_: Round, trackers: Trackers | None, rows: Rows, pad_id: int
) -> train.Hooks:
    heart = context.heart

    def on_step(step: int, total: int, loss: float | None, tokens_per_s: float, eta_s: float) -> None:
        heart.beat(
            state=ServiceState.TRAINING,
            step=step,
            total_steps=total,
            loss=loss if loss is not None and math.isfinite(loss) else None,
            tokens_per_s=tokens_per_s,
            eta_s=eta_s if math.isfinite(eta_s) else None,
            message=None,
        )

    def on_log(kind: str, step: int, metrics: Json) -> None:
        if not _is_first_rank():
            return
        log.info(
            "%s step %d: %s", kind, step, ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        )
        if trackers is not None:
            trackers.log({f"{kind}/{name}": value for name, value in metrics.items()}, step)
        try:
            context.ledger.record_progress(round_.round_id, kind, step, metrics)
        except DatabaseUnavailableError as exc:
            log.warning("a point of the loss curve is not recorded: %s", exc)

    def on_evaluation(adapted: Any) -> train.Evaluation:
        items = _measure(context, adapted, rows=rows.validation, pad_id=pad_id, what="validation part")
        return train.Evaluation(evaluate.nats_per_token(items), evaluate.bits_per_byte(items))

    return train.Hooks(on_step, on_log, lambda: context.interruption.requested, on_evaluation)


# gate and publish


def _verdict(recipe_: Recipe, losses: Mapping[Subject, Sequence[ContentLoss]]) -> gate.Verdict:
    against = Subject.CHAMPION if Subject.CHAMPION in losses else Subject.BASE
    items = [
        gate.Item(before.nats, after.nats, after.bytes)
        for before, after in zip(losses[against], losses[Subject.CANDIDATE], strict=True)
    ]
    verdict = gate.decide(
        items,
        against=against,
        min_improvement=recipe_.min_improvement,
        confidence=recipe_.confidence,
        seed=recipe_.seed,
    )
    bits = {
        str(subject): evaluate.bits_per_byte(losses[subject]) if subject in losses else None
        for subject in Subject
    }
    return replace(verdict, bits_per_byte=bits)


def _publish(
    context: Context,
    round_: Round,
    source: model.Source,
    adapted: Any,
    tokenizer: Any,
    training: Json,
    verdict: gate.Verdict,
) -> Json | None:
    if not _is_first_rank():
        return None
    context.heart.beat(state=ServiceState.PUBLISHING, message="writing the adapter")

    def write(folder: Path) -> None:
        adapted.save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    manifest = {
        "track": context.recipe.name,
        "round": round_.number,
        "recipe": context.recipe.model_dump(mode="json"),
        "base_model": context.recipe.base_model,
        "base_revision": getattr(adapted.config, "_commit_hash", None) or source.revision,
        "parent": None if round_.parent is None else round_.parent.directory,
        "snapshot_hash": round_.snapshot_hash,
        "metrics": {"training": training, "verdict": verdict.as_json()},
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    return publish.publish(context.track_dir, round_.name, write, manifest)


def _close(
    context: Context,
    round_: Round,
    verdict: gate.Verdict,
    training: Json | None,
    losses: Mapping[Subject, Sequence[ContentLoss]],
    manifest: Json | None = None,
) -> None:
    """Commit, then move `current`, then tidy: in this order a crash leaves nothing half published."""
    if not _is_first_rank():
        return
    context.ledger.close(
        context.lease,
        round_,
        state=RoundState.PROMOTED if verdict.promoted else RoundState.REFUSED,
        training=training,
        verdict=verdict.as_json(),
        losses=losses,
        manifest=manifest,
    )
    failpoint("publish.after_commit")
    if verdict.promoted:
        publish.point_current(context.track_dir, round_.name)
    shutil.rmtree(context.folder(round_), ignore_errors=True)
    context.heart.beat(urgent=True, message=verdict.reason)


# the process


def _is_first_rank() -> bool:
    return not torch.distributed.is_initialized() or bool(torch.distributed.get_rank() == 0)


def _join_ranks() -> None:
    """Several processes form a group; a single one forgets that torchrun started it, which spares DDP."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        for name in TORCHRUN_VARIABLES:
            os.environ.pop(name, None)
        return
    if model.has_gpu():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl" if model.has_gpu() else "gloo")


def main() -> int:
    """Exit status 0: the round is closed, or nothing was to do; 1: it failed; 143: it was interrupted."""
    die_with_parent(os.getppid(), signal.SIGKILL)  # torchrun passes SIGTERM on; without it nobody would
    settings = from_environment()
    logs.setup("trainer.round", settings.log_level, settings.secrets())
    interruption = Interruption()
    first = os.environ.get("RANK", "0") == "0"
    resolved = recipe.load(settings.recipe, settings.recipe_overrides)
    heart = Heart(settings.checkpoints_dir / resolved.name if first else None)
    database = Database(
        settings.database(),
        application="ratchet round",
        min_conn=settings.db_pool_min_conn,
        max_conn=settings.db_pool_max_conn,
    )
    ledger = Ledger(database, resolved.name)
    lease = Lease(resolved.name, int(os.environ[LEASE_VARIABLE]))
    try:
        _join_ranks()
        run(Context(settings, resolved, ledger, lease, heart, interruption))
    except Interrupted:
        log.info("interrupted; the round goes on when the trainer is back")
        return 128 + 15
    except RatchetError as exc:
        log.error("%s", exc)
        heart.beat(urgent=True, message=str(exc), permanent=isinstance(exc, PERMANENT))
        return 1
    except torch.OutOfMemoryError as exc:
        message = f"out of GPU memory: set BATCH_SIZE or MAX_LENGTH lower ({str(exc).splitlines()[0]})"
        log.error("%s", message)
        heart.beat(urgent=True, message=message)
        return 1
    except Exception as exc:
        log.exception("the round failed")
        full = is_disk_full(exc)
        message = f"{settings.checkpoints_dir.absolute()} is full: make room" if full else str(exc)
        heart.beat(urgent=True, message=f"{type(exc).__name__}: {message}", permanent=full)
        return 1
    finally:
        database.close()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
