"""Training one candidate: transformers' Trainer over packed rows, stopped early, resumable."""

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from services.core.errors import RoundError
from services.core.models import Json
from services.core.process import failpoint
from services.trainer import checkpoints
from services.trainer.packing import Row, collate
from services.trainer.recipe import Recipe

CHECKPOINTS_KEPT = 2  # the newest and the best
LOGS_PER_ROUND = 200  # at most; a point of the loss curve each


@dataclass(frozen=True)
class Evaluation:
    """Held back from training, for early stopping."""

    loss: float  # nats a token
    bits_per_byte: float


@dataclass(frozen=True)
class Training:
    """What the finished training measured."""

    train_loss: float  # nats a completion token, mean over the last tenth of the steps
    eval_loss: float  # of the best step
    bits_per_byte: float
    steps: int
    total_steps: int
    best_step: int
    samples: int
    tokens: int
    seconds: float
    tokens_per_s: float
    stopped_early: bool

    def as_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Hooks:
    """What the round wants to hear of, and how it says stop."""

    on_step: Callable[[int, int, float | None, float, float], None]  # step, total, loss, tokens/s, ETA in s
    on_log: Callable[[str, int, Json], None]  # "train" or "eval", step, metrics
    stop_requested: Callable[[], bool]
    evaluate: Callable[[Any], Evaluation]  # of the model as it stands


def train(
    model: Any,
    rows: Sequence[Row],
    recipe: Recipe,
    folder: Path,
    pad_id: int,
    hooks: Hooks,
    *,
    flatten: bool = False,
) -> Training:
    """Train the adapter in `model` and leave the best of its states in it.

    Resumes from the newest valid checkpoint below `folder`. When `hooks.stop_requested` turns true it
    saves a checkpoint and returns early: the caller knows, since it asked. Raises RoundError when the
    loss is not finite.
    """
    on_gpu = torch.cuda.is_available()
    arguments = _arguments(recipe, folder, len(rows), on_gpu)
    watch = _Watch(hooks, arguments)
    trainer = _Trainer(
        hooks=hooks,
        watch=watch,
        model=model,
        args=arguments,
        train_dataset=_Rows(rows),
        eval_dataset=_Rows(rows[:1]),  # only its presence counts: hooks.evaluate knows what to evaluate on
        data_collator=functools.partial(collate, pad_id=pad_id, flatten=flatten),
        callbacks=[
            EarlyStoppingCallback(recipe.early_stopping_patience, recipe.early_stopping_threshold),
            watch,  # after early stopping: it forces the last evaluation
        ],
    )
    trainer.remove_callback(PrinterCallback)  # the round logs what it hears
    resume = checkpoints.newest_valid(folder)
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    return _summary(trainer, watch, rows)


def _arguments(recipe: Recipe, folder: Path, rows: int, on_gpu: bool) -> TrainingArguments:
    processes = int(torch.distributed.get_world_size()) if torch.distributed.is_initialized() else 1
    per_step = recipe.batch_size * recipe.gradient_accumulation_steps * processes
    steps = max(1, math.ceil(rows / per_step * recipe.epochs))
    evaluations = max(1, round(steps / recipe.eval_steps))
    every = max(1, math.ceil(steps / evaluations))
    bf16 = on_gpu and torch.cuda.is_bf16_supported()
    return TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=recipe.batch_size,
        gradient_accumulation_steps=recipe.gradient_accumulation_steps,
        max_steps=steps,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type=recipe.lr_schedule,
        warmup_steps=math.ceil(recipe.warmup_share * steps),
        weight_decay=recipe.weight_decay,
        optim="adamw_8bit" if on_gpu else "adamw_torch",
        bf16=bf16,
        fp16=on_gpu and not bf16,
        tf32=True if on_gpu else None,
        use_cpu=not on_gpu,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=CHECKPOINTS_KEPT,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        restore_callback_states_from_checkpoint=True,  # else a resumed run forgets its patience
        logging_steps=max(1, steps // LOGS_PER_ROUND),
        logging_nan_inf_filter=False,  # a loss that is not finite must be seen
        dataloader_num_workers=recipe.dataloader_num_workers,
        dataloader_pin_memory=on_gpu,
        ddp_find_unused_parameters=False,
        remove_unused_columns=False,
        label_names=["labels"],
        seed=recipe.seed,
        data_seed=recipe.seed,
        disable_tqdm=True,
        report_to="none",
    )


class _Rows(torch.utils.data.Dataset[Row]):
    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Row:
        return self._rows[index]


class _Trainer(Trainer):
    """transformers' Trainer that evaluates as the gate does and tells of every micro-batch."""

    def __init__(self, *, hooks: Hooks, watch: "_Watch", **options: Any) -> None:
        super().__init__(**options)
        self._hooks = hooks
        self._watch = watch

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        loss = super().training_step(model, inputs, num_items_in_batch)
        self._watch.tokens += inputs["input_ids"].numel()
        return loss

    def evaluate(self, *_: Any, metric_key_prefix: str = "eval", **__: Any) -> dict[str, float]:
        result = self._hooks.evaluate(self.model)
        metrics = {
            f"{metric_key_prefix}_loss": result.loss,
            f"{metric_key_prefix}_bits_per_byte": result.bits_per_byte,
        }
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)  # type: ignore[has-type]
        return metrics


class _Watch(TrainerCallback):
    """Reports steps and figures, seals checkpoints, stops on request or when the loss is not finite."""

    def __init__(self, hooks: Hooks, arguments: TrainingArguments) -> None:
        self.tokens = 0
        self.diverged: str | None = None
        self._hooks = hooks
        self._arguments = arguments
        self._started = time.monotonic()
        self._first_step = 0
        self._loss: float | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / max(self.seconds, 1e-9)

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self._started = time.monotonic()
        self._first_step = state.global_step
        self._report(state)

    def on_substep_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self._report(state)
        if self._hooks.stop_requested():
            self._save_and_stop(state, control)

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        failpoint("train.after_step")
        self._report(state)
        if state.global_step >= state.max_steps:
            control.should_evaluate = control.should_save = True
        if self._hooks.stop_requested():
            self._save_and_stop(state, control)

    def on_log(
        self, args: Any, state: TrainerState, control: TrainerControl, logs: Any = None, **kwargs: Any
    ) -> None:
        logs = dict(logs or {})
        if "eval_loss" in logs:
            metrics = {"eval_loss": logs["eval_loss"], "bits_per_byte": logs["eval_bits_per_byte"]}
            self._hooks.on_log("eval", state.global_step, metrics)
        elif "loss" in logs:
            self._loss = float(logs["loss"])
            names = ("loss", "learning_rate", "grad_norm", "epoch")
            metrics = {name: float(logs[name]) for name in names if name in logs}
            self._hooks.on_log("train", state.global_step, {**metrics, "tokens_per_s": self.tokens_per_s})
            if not math.isfinite(self._loss):
                self.diverged = f"the training loss is {self._loss} at step {state.global_step}"
                control.should_training_stop = True

    def on_save(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        failpoint("train.before_seal")
        if state.is_world_process_zero:
            checkpoints.seal(Path(args.output_dir) / f"checkpoint-{state.global_step}")
        failpoint("train.after_checkpoint")

    def _save_and_stop(self, state: TrainerState, control: TrainerControl) -> None:
        """The Trainer leaves its loop at once, also within a step, and saves the last whole step."""
        control.should_training_stop = True
        control.should_save = state.global_step > 0

    def _report(self, state: TrainerState) -> None:
        done = state.global_step - self._first_step
        left = state.max_steps - state.global_step
        eta = self.seconds / done * left if done else math.nan
        self._hooks.on_step(state.global_step, state.max_steps, self._loss, self.tokens_per_s, eta)


def _summary(trainer: _Trainer, watch: _Watch, rows: Sequence[Row]) -> Training:
    if watch.diverged:
        raise RoundError(f"{watch.diverged}: lower the recipe's learning_rate")
    state = trainer.state
    evaluations = [entry for entry in state.log_history if "eval_loss" in entry]
    best: dict[str, Any] = min(evaluations, key=lambda entry: entry["eval_loss"], default={})
    train_losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
    last = train_losses[-max(1, len(train_losses) // 10) :]
    return Training(
        train_loss=sum(last) / len(last) if last else math.nan,
        eval_loss=best.get("eval_loss", math.nan),
        bits_per_byte=best.get("eval_bits_per_byte", math.nan),
        steps=state.global_step,
        total_steps=state.max_steps,
        best_step=int(best.get("step", 0)),
        samples=sum(len(row.samples) for row in rows),
        tokens=watch.tokens,
        seconds=watch.seconds,
        tokens_per_s=watch.tokens_per_s,
        stopped_early=state.global_step < state.max_steps,
    )
