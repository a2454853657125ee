"""What a team's training says of itself, as points of curves: for the ledger, W&B and TensorBoard."""

import math
from typing import Any

from services.core.models import Json
from services.trainer.reinforcement.figures import Evaluation, Iteration

OF_A_ROLE = "/"  # between a figure's name and the role's that it is of, as in kl_reference/coder
NAMES = {"policy_loss": "loss", "tokens_per_s": "tokens_per_second"}  # of the loop → of a curve
LEFT_OUT = ("step", "total_steps")


def of_iteration(iteration: Iteration) -> Json:
    """The whole team's figures by name, each role's below `roles`; what is not finite is left out."""
    team: Json = {}
    roles: dict[str, Json] = {}
    for name, value in iteration.as_json().items():
        figure, _, role = name.partition(OF_A_ROLE)
        if _is_finite(value) and figure not in LEFT_OUT:
            (roles.setdefault(role, {}) if role else team)[NAMES.get(figure, figure)] = value
    return {**team, "roles": roles} if roles else team


def of_evaluation(evaluation: Evaluation) -> Json:
    """Of the validation tasks: share of the samples that passed, mean reward."""
    found = {
        "solved": evaluation.pass_rate,
        "reward": evaluation.reward,
        "episodes": evaluation.episodes,
        "seconds": evaluation.seconds,
    }
    return {name: value for name, value in found.items() if _is_finite(value)}


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
