"""Points of a team's curves."""

import math

from services.trainer.reinforcement.figures import Evaluation, Iteration
from services.trainer.reinforcement.reporting import of_evaluation, of_iteration
from services.trainer.reporting import flat

UPDATE = {
    "policy_loss": 0.5, "policy_loss/coder": 0.7, "kl_reference": 0.1, "kl_reference/coder": 0.1,
    "kl_reference/analyzer": 0.05, "value_loss": math.nan,
}  # fmt: skip
ITERATION = Iteration(
    step=3, total_steps=10, episodes=8, reward=0.25, solved=0.125, tokens=100, rollout_seconds=3.0,
    update_seconds=1.0, learning_rate=1e-3, update=UPDATE,
)  # fmt: skip


def test_an_iteration_has_the_teams_figures_and_each_roles() -> None:
    told = of_iteration(ITERATION)
    assert (told["loss"], told["reward"], told["solved"], told["kl_reference"]) == (0.5, 0.25, 0.125, 0.1)
    assert told["tokens_per_second"] == 25.0
    assert told["roles"] == {"coder": {"loss": 0.7, "kl_reference": 0.1}, "analyzer": {"kl_reference": 0.05}}


def test_what_is_not_finite_is_left_out() -> None:
    assert "value_loss" not in of_iteration(ITERATION)


def test_where_it_is_is_no_curve() -> None:
    assert {"step", "total_steps"}.isdisjoint(of_iteration(ITERATION))


def test_trackers_hear_of_a_role_by_its_name() -> None:
    told = flat(of_iteration(ITERATION))
    assert told["coder/kl_reference"] == 0.1
    assert "roles" not in told


def test_an_evaluation_is_what_was_solved() -> None:
    told = of_evaluation(Evaluation(step=0, pass_rate=0.5, reward=0.6, episodes=4, seconds=2.0))
    assert told == {"solved": 0.5, "reward": 0.6, "episodes": 4, "seconds": 2.0}
