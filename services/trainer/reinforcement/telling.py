"""What a training tells of itself while it runs, and where it is told to stop: for heartbeats."""

import time
from statistics import fmean

from services.core.models import ServiceState
from services.trainer.engine.figures import Progress
from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement import standing
from services.trainer.reinforcement.figures import Hooks
from services.trainer.reinforcement.standing import Standing
from services.trainer.reinforcement.state import State


class Telling:
    """Every method passes on where the training is, after it has asked whether to stop."""

    def __init__(self, hooks: Hooks, settings: Reinforcement) -> None:
        self._hooks = hooks
        self._settings = settings
        self._since = time.monotonic()  # when what is under way began

    def stands(self, state: State, tokens_per_s: float | None = None) -> None:
        """Something is done: the training begins, an evaluation or an iteration is over."""
        self._since = time.monotonic()
        self._tell(state, tokens_per_s)

    def validates(self, state: State, found: Standing) -> None:
        self._hooks.check()
        words = standing.validating(state.step, self._settings.iterations, found)
        self._tell(state, found.tokens_per_s, words, ServiceState.EVALUATING)

    def practises(self, state: State, found: Standing) -> None:
        self._hooks.check()
        self._tell(state, found.tokens_per_s, standing.practising(found))

    def learns(self, state: State, step: int, steps: int, episodes: int) -> None:
        """step: the optimizer step that is taken; 0: the base is asked."""
        self._hooks.check()
        self._tell(state, None, standing.learning(step, steps, episodes))

    def _tell(
        self,
        state: State,
        tokens_per_s: float | None,
        doing: str | None = None,
        service_state: ServiceState = ServiceState.TRAINING,
    ) -> None:
        elapsed = time.monotonic() - self._since
        self._hooks.beat(
            Progress(
                step=state.step,
                total_steps=self._settings.iterations,
                loss=state.policy_loss,
                tokens_per_s=tokens_per_s or state.tokens / max(state.seconds, 1e-9),
                eta_s=seconds_left(
                    state, self._settings, elapsed, evaluates=service_state is ServiceState.EVALUATING
                ),
                message=state.collapsed_why,
                doing=doing,
                state=service_state,
            )
        )


def seconds_left(state: State, settings: Reinforcement, elapsed: float, *, evaluates: bool) -> float | None:
    """Of the training, if it is not stopped early, as fast as until now; None before the first iteration.

    elapsed: seconds since what is under way began; an evaluation counts as much as those before it took.
    """
    if not state.step:
        return None
    iteration = state.seconds / state.step
    evaluation = fmean(one.seconds for one in state.curve) if state.curve else 0.0
    ahead = range(state.step + 1, settings.iterations + 1)
    evaluations = sum(step % settings.eval_interval == 0 or step == settings.iterations for step in ahead)
    whole = iteration * len(ahead) + evaluation * (evaluations + evaluates)
    return max(0.0, whole - min(elapsed, evaluation if evaluates else iteration))
