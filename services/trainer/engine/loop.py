"""The training loop: evaluate, checkpoint, stop?, step, log. Reads downward, in `train`.

One process or several, through `Distribution`. Everything random in a step follows from seed, round, step
and rank, so that an interrupted training goes on bit for bit from its last whole step.
"""

import logging
import math
import time
from dataclasses import replace

import torch

from services.core.errors import RoundError
from services.core.models import Json
from services.core.process import failpoint
from services.trainer.engine import optimizer as optimizers
from services.trainer.engine import randomness
from services.trainer.engine.distributed import through
from services.trainer.engine.figures import Hooks, Progress, Training
from services.trainer.engine.meter import Meter, peak_memory
from services.trainer.engine.saving import Saving
from services.trainer.engine.schedule import learning_rate
from services.trainer.engine.setup import Setup
from services.trainer.engine.state import TrainingState
from services.trainer.interruption import Interrupted

log = logging.getLogger(__name__)
POINTS = 200  # of a round's loss curve, at most
MOST_HALVINGS = 3  # of the micro-batch, when memory runs out


class _FaultError(Exception):
    """Something that must not count, and the number of the batch to blame for it."""

    def __init__(self, reason: str, batch: int) -> None:
        super().__init__(reason)
        self.batch = batch


def train(setup: Setup, hooks: Hooks) -> Training:
    """Train what `setup` holds and leave the best of its states in it.

    Resumes from the newest valid checkpoint. Asked to stop, in the middle of whatever it does, it saves
    the last whole step and raises Interrupted. Raises RoundError after more faults than the recipe allows.
    """
    loop = _Loop(setup, hooks)
    try:
        loop.begin()
        while True:
            try:
                if loop.is_evaluation_due():
                    loop.evaluate()
                    loop.save()
                if loop.is_over():
                    break
                loop.step()
            except _FaultError as fault:
                loop.roll_back(str(fault), fault.batch)
                continue
            loop.log()
        loop.load_best()
        return loop.summary()
    except Interrupted:
        loop.save()
        raise
    finally:
        setup.feed.close()


class _Loop:
    def __init__(self, setup: Setup, hooks: Hooks) -> None:
        self._setup = setup
        self._hooks = hooks
        self._recipe = setup.recipe
        self._compute = setup.compute
        self._distribution = setup.distribution
        self._steps = setup.steps
        self._saving = Saving(setup.folder, setup.parameters, setup.optimizer, setup.distribution)
        self._meter = Meter(setup.speed)
        self._state = TrainingState(micro_batch=setup.micro_batch)
        self._saved: TrainingState | None = None
        self._weights_step = 0
        self._gradient_norm = math.nan
        evaluations = max(1, round(self._steps / self._recipe.eval_steps))
        self._evaluate_every = math.ceil(self._steps / evaluations)
        self._log_every = max(1, self._steps // POINTS)

    # begin, evaluate, save

    def begin(self) -> None:
        """From the newest checkpoint; without one, from here, which becomes the first."""
        restored = self._saving.restore_newest()
        if restored is None:
            self._state = self._state.shared_by(self._distribution.world)
            self.save()  # what a fault goes back to, and proof that there is room
        else:
            self._take(restored)
            if not self.is_over():
                self._state = self._state.shared_by(self._distribution.world)
            log.info("going on after step %d of %d", self._state.step, self._steps)
        planned, state = self._setup.micro_batch, self._state
        fits = min(planned, state.micro_batch) if state.ran_out_of_memory else planned
        self._state = replace(state, micro_batch=fits)
        self._compute.model.train()
        if self._setup.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._setup.device)  # loading is not what was planned
        self._tell()

    def is_evaluation_due(self) -> bool:
        step = self._state.step
        due = step == self._steps or (step > 0 and step % self._evaluate_every == 0)
        return due and not self._state.evaluated

    def evaluate(self) -> None:
        began = time.monotonic()
        loss, bits_per_byte = self._hooks.evaluate(self._state.step)
        self._meter.evaluation(time.monotonic() - began)
        self._hooks.on_log("eval", self._state.step, {"eval_loss": loss, "bits_per_byte": bits_per_byte})
        if not math.isfinite(loss):
            last = self._state.faults.batch_of(self._state.step - 1)
            raise _FaultError(f"the validation loss is {loss} at step {self._state.step}", last)
        threshold = self._recipe.early_stopping_threshold
        self._state = self._state.after_evaluation(loss, bits_per_byte, threshold)

    def save(self) -> None:
        if self._state == self._saved:
            return
        self._saving.save(self._state)
        self._saved = self._state
        if self._state.step:
            failpoint("train.after_checkpoint")

    def is_over(self) -> bool:
        stop = self._state.stopper.should_stop(self._recipe.early_stopping_patience)
        return self._state.step >= self._steps or stop

    # step

    def step(self) -> None:
        state, setup = self._state, self._setup
        self._leave_if_asked()
        began, waited = time.monotonic(), setup.feed.seconds_waited
        nats, tokens, learned = self._accumulate_somehow()
        loss = nats / max(1.0, learned)
        self._gradient_norm = self._distribution.clip_gradients(
            setup.parameters.values(), self._recipe.max_grad_norm
        )
        fault = state.faults.of(loss, self._gradient_norm, self._recipe.spike_factor)
        if fault is not None:
            raise _FaultError(f"{fault} at step {state.step + 1}", state.faults.batch_of(state.step))
        rate = learning_rate(state.step, self._steps, self._recipe)
        optimizers.set_learning_rate(setup.optimizer, rate)
        setup.optimizer.step()
        setup.optimizer.zero_grad()
        self._compute.weights_changed()
        seconds, waited = time.monotonic() - began, setup.feed.seconds_waited - waited
        if setup.device.type == "cuda" and not self._meter.tokens_per_s:
            log.info("the first step took %.1f s: layers are compiled in it, or come from the cache", seconds)
        self._meter.step(int(tokens), seconds, waited)
        self._state = self._state.after_step(loss, int(tokens), seconds, waited)
        failpoint("train.after_step")
        self._tell()

    def _accumulate_somehow(self) -> tuple[float, float, float]:
        """As `_accumulate`, with smaller micro-batches when memory does not suffice for the planned ones."""
        while True:
            done = self._accumulate()
            if done is not None:
                return done
            self._setup.optimizer.zero_grad()
            if self._setup.device.type == "cuda":
                torch.cuda.empty_cache()
            self._halve()

    def _accumulate(self) -> tuple[float, float, float] | None:
        """Gradients of a whole step; its nats, tokens and learned tokens. None: out of memory."""
        state, setup = self._state, self._setup
        number = state.faults.batch_of(state.step)
        batches = setup.feed.batches(number, state.micro_batch)
        tokens, learned = self._distribution.sum(
            sum(batch.tokens for batch in batches), sum(batch.learned for batch in batches)
        )
        randomness.seed(self._recipe.seed, setup.round_number, state.step, self._distribution.rank)
        nats = torch.zeros((), device=setup.device)
        for batch in batches:
            short_of_memory = False
            try:
                loss = through(self._compute.model, self._compute.loss, batch.to(setup.device))
                (loss / max(1.0, learned)).backward()
                nats += loss.detach()
            except torch.OutOfMemoryError:
                if self._distribution.whole_passes:
                    raise
                short_of_memory = True
            if self._distribution.any(short_of_memory):
                return None
            self._tell()
            self._leave_if_asked()
        self._distribution.reduce_gradients(setup.parameters.values())
        (total,) = self._distribution.sum(float(nats))
        return total, tokens, learned

    def _halve(self) -> None:
        """The effective batch stays as it is: more micro-batches of fewer rows."""
        rows, times = self._state.micro_batch, self._state.ran_out_of_memory + 1
        if times > MOST_HALVINGS or rows == 1:
            raise RoundError(
                f"out of memory with a micro-batch of {rows} × {self._recipe.max_length} tokens"
                f" after {times - 1} smaller tries: set MAX_LENGTH lower or recomputation to full"
            )
        self._state = replace(self._state, micro_batch=rows // 2, ran_out_of_memory=times)
        message = (
            f"out of memory with {rows} rows at once: going on with {rows // 2}, the same effective batch"
        )
        log.warning("%s", message)
        self._meter = Meter(self._setup.speed)  # another width: what is compiled is compiled anew
        self._tell(message)

    def _leave_if_asked(self) -> None:
        if self._distribution.any(self._hooks.stop_requested()):
            raise Interrupted

    # faults

    def roll_back(self, reason: str, batch: int) -> None:
        """To the last good checkpoint, leaving out the batch to blame."""
        faults = self._state.faults
        if faults.rollbacks >= self._recipe.max_rollbacks:
            raise RoundError(
                f"{reason}, after going back {faults.rollbacks} times: lower the recipe's learning_rate"
            )
        self._setup.optimizer.zero_grad()
        restored = self._saving.restore_newest()
        if restored is None:
            raise RoundError(f"{reason}, and no good checkpoint is left to go back to")
        self._take(restored)
        self._state = replace(restored, faults=faults.after_rollback(batch, restored.faults)).shared_by(
            self._distribution.world
        )
        message = f"{reason}: back to step {self._state.step}, batch {batch} left out"
        log.warning("%s", message)
        self._tell(message)

    # the end

    def load_best(self) -> None:
        self._weights_step, best = self._state.step, self._state.stopper.best_step
        if best != self._state.step and self._state.evaluations:
            if self._saving.restore_weights(best):
                self._weights_step = best
            self._compute.weights_changed()

    def summary(self) -> Training:
        state, stopper = self._state, self._state.stopper
        best = min(state.evaluations, key=lambda one: one.loss)
        losses = [*state.losses, *state.stretch[-1:]]
        last = losses[-max(1, len(losses) // 10) :]
        return Training(
            train_loss=sum(last) / len(last),
            eval_loss=best.loss,
            bits_per_byte=best.bits_per_byte,
            steps=state.step,
            total_steps=self._steps,
            best_step=stopper.best_step,
            weights_step=self._weights_step,
            samples=self._setup.samples,
            tokens=state.tokens,
            seconds=state.seconds,
            tokens_per_s=state.tokens / max(state.seconds, 1e-9),
            stopped_early=state.step < self._steps,
            micro_batch=state.micro_batch,
            ran_out_of_memory=state.ran_out_of_memory,
            rollbacks=state.faults.rollbacks,
            skipped_batches=len(state.faults.skipped),
            left_out=state.faults.skipped,
            processes=state.processes,
            input_stall=state.seconds_waiting / max(state.seconds, 1e-9),
            peak_memory_bytes=peak_memory(self._setup.device),
        )

    # telling

    def log(self) -> None:
        """A point of the curve when its stretch of steps is full."""
        if len(self._state.stretch) < self._log_every:
            return
        self._state = self._state.after_stretch()
        step = self._state.step
        metrics: Json = {
            "loss": self._state.losses[-1],
            "learning_rate": learning_rate(step - 1, self._steps, self._recipe),
            "grad_norm": self._gradient_norm,
            "epoch": step / self._steps * self._recipe.epochs,
            "micro_batch": self._state.micro_batch,
            **self._meter.metrics(self._setup.device),
        }
        self._hooks.on_log("train", step, metrics)

    def _tell(self, message: str | None = None) -> None:
        state = self._state
        evaluations = (self._steps - state.step) // self._evaluate_every
        self._hooks.on_progress(
            Progress(
                step=state.step,
                total_steps=self._steps,
                loss=state.faults.recent[-1] if state.faults.recent else None,
                tokens_per_s=self._meter.tokens_per_s,
                eta_s=self._meter.seconds_left(self._steps - state.step, evaluations),
                message=message,
            )
        )

    def _take(self, restored: TrainingState) -> None:
        self._state = self._saved = restored
        self._compute.weights_changed()
        self._compute.model.train()
