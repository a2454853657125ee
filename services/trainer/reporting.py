"""Who hears of a running training: the heartbeat, the log, the ledger, W&B and TensorBoard."""

import logging
import math
from collections.abc import Callable, Sequence

from services.core.errors import DatabaseUnavailableError
from services.core.models import Json, ServiceState
from services.trainer.context import Context
from services.trainer.engine.figures import Hooks, Progress
from services.trainer.ledger import Round
from services.trainer.predictions import Prediction
from services.trainer.tracking import Named, Trackers

log = logging.getLogger(__name__)
BEATEN = (  # of what is logged
    "learning_rate", "grad_norm", "mfu", "memory_bytes", "input_stall",
    "gpu_utilisation", "gpu_memory_bytes", "gpu_memory_size_bytes",
)  # fmt: skip
FIRST_STEP = {"cuda": "taking the first step, in which layers are compiled"}  # by device
FIRST_STEP_ELSEWHERE = "taking the first step"
Evaluate = Callable[[int], tuple[float, float]]
Predict = Callable[[], Sequence[Prediction]]


class Reporter:
    """Passes on what the loop says; the processes but the first only count."""

    def __init__(self, context: Context, round_: Round, plan: Json) -> None:
        self._context = context
        self._round = round_
        self._trackers: Trackers | None = None
        if context.distribution.is_first:
            parent = None if round_.parent is None else round_.parent.directory
            config = {
                **context.recipe.model_dump(mode="json"),
                "round": round_.number,
                "snapshot_hash": round_.snapshot_hash,
                "parent": parent,
                "plan": plan,
            }
            named = Named(context.recipe.name, round_.name, config, context.folder(round_))
            self._trackers = Trackers(context.settings, named)

    def hooks(self, evaluate: Evaluate, predict: Predict) -> Hooks:
        def evaluate_and_show(step: int) -> tuple[float, float]:
            found = evaluate(step)
            self._show(predict, step)
            return found

        requested = self._context.interruption
        return Hooks(self.on_progress, self.on_log, lambda: requested.requested, evaluate_and_show)

    def on_progress(self, progress: Progress) -> None:
        starts = progress.state is None and not progress.tokens_per_s
        first_step = FIRST_STEP.get(self._context.distribution.device.type, FIRST_STEP_ELSEWHERE)
        doing = first_step if starts else progress.doing
        self._context.heart.beat(
            state=ServiceState.STARTING if starts else progress.state or ServiceState.TRAINING,
            step=progress.step,
            total_steps=progress.total_steps,
            loss=progress.loss if progress.loss is not None and math.isfinite(progress.loss) else None,
            tokens_per_s=progress.tokens_per_s or None,
            eta_s=progress.eta_s,
            message=progress.message or doing,
            urgent=progress.message is not None,
        )

    def on_log(self, kind: str, step: int, metrics: Json) -> None:
        if self._trackers is None:
            return
        numbers = flat(metrics)
        figures = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        log.info("%s step %d: %s", kind, step, figures)
        self._context.heart.beat(**{name: metrics[name] for name in BEATEN if name in metrics})
        self._trackers.log({f"{kind}/{name}": value for name, value in numbers.items()}, step)
        try:
            self._context.first_books.ledger.record_progress(self._round.round_id, kind, step, metrics)
        except DatabaseUnavailableError as exc:
            log.warning("a point of the loss curve is not recorded: %s", exc)

    def _show(self, predict: Predict, step: int) -> None:
        if self._trackers is None or not self._trackers.shows_tables:
            return
        try:
            predictions = predict()
        except Exception as exc:  # something to look at must not stop what is looked at
            log.warning("no predictions are shown (%s: %s)", type(exc).__name__, exc)
            return
        self._trackers.table(predictions, step)

    def close(self) -> None:
        if self._trackers is not None:
            self._trackers.close()


def flat(metrics: Json) -> dict[str, float]:
    """The figures by name; of those below `roles` with the role's name before it, as `coder/entropy`."""
    roles = metrics.get("roles", {})
    own = {name: value for name, value in metrics.items() if name != "roles"}
    return own | {f"{role}/{name}": value for role, each in roles.items() for name, value in each.items()}
