"""The loop with a team of three numbers: order, seeds, checkpoints, when it stops, what is left."""

import logging
from types import SimpleNamespace

import pytest
import torch

from services.trainer import checkpoints
from services.trainer.interruption import Interrupted
from services.trainer.reinforcement import loop
from services.trainer.reinforcement.figures import Hooks
from tests.unit.trainer.reinforcement.fakes import FakeUpdate, setup


@pytest.fixture
def update(monkeypatch):
    fake = FakeUpdate()
    monkeypatch.setattr(loop, "update", fake)
    return fake


def stopping_after(step):
    """Hooks that ask to stop in the middle of the rollout after an iteration."""
    seen = SimpleNamespace(step=0)

    def check():
        if seen.step == step:
            raise Interrupted

    return Hooks(on_iteration=lambda figures: setattr(seen, "step", figures.step), check=check)


def interrupted(tmp_path, step, **options):
    with pytest.raises(Interrupted):
        loop.train(setup(tmp_path, **options), stopping_after(step))


def test_all_iterations_are_done_and_nothing_stopped_them(update, tmp_path):
    training = loop.train(setup(tmp_path), Hooks())
    assert (training.steps, training.total_steps, training.stopped_why) == (8, 8, None)


def test_evaluations_come_before_the_first_iteration_every_interval_and_at_the_end(update, tmp_path):
    training = loop.train(setup(tmp_path, eval_interval=3), Hooks())
    assert [one.step for one in training.curve] == [0, 3, 6, 8]


def test_evaluations_are_drawn_alike(update, tmp_path):
    made = setup(tmp_path)
    loop.train(made, Hooks())
    assert len({seed for is_evaluation, seed, _ in made.rollouts.asked if is_evaluation}) == 1


def test_rollouts_are_drawn_differently(update, tmp_path):
    made = setup(tmp_path)
    loop.train(made, Hooks())
    assert len({seed for is_evaluation, seed, _ in made.rollouts.asked if not is_evaluation}) == 8


def test_a_rollout_has_as_many_tasks_as_groups(update, tmp_path):
    made = setup(tmp_path, n_rollout_threads=8, episode_length=2, group_size=4)
    loop.train(made, Hooks())
    assert {len(names) for is_evaluation, _, names in made.rollouts.asked if not is_evaluation} == {4}


def test_an_update_hears_how_much_of_the_training_is_done(update, tmp_path):
    loop.train(setup(tmp_path, iterations=4), Hooks())
    assert update.progress == [0, 0.25, 0.5, 0.75]


def test_the_best_weights_are_left_in_the_team(update, tmp_path):
    made = setup(tmp_path, judged=[0.25, 0.5, 0.75, 0.5, 0.5], iterations=8)
    training = loop.train(made, Hooks())
    expected = loop.Saving(tmp_path, made.team, made.optimizers)
    assert (training.best_step, training.weights_step, training.pass_rate) == (4, 4, 0.75)
    kept = made.team.weight.clone()
    assert expected.restore_weights(4)
    assert torch.equal(kept, made.team.weight)


def test_a_team_that_only_gets_worse_stays_what_it_was(update, tmp_path):
    made = setup(tmp_path, judged=[0.5, 0.25])
    training = loop.train(made, Hooks())
    assert training.weights_step == 0
    assert not made.team.weight.any()


def test_of_equal_evaluations_the_first_counts(update, tmp_path):
    assert loop.train(setup(tmp_path, judged=[0.25, 0.5, 0.5]), Hooks()).best_step == 2


def test_evaluations_without_improvement_end_it(update, tmp_path):
    training = loop.train(setup(tmp_path, judged=[0.25, 0.5, 0.25], early_stopping_patience=2), Hooks())
    assert training.steps == 6
    assert training.stopped_why == "no better than 0.500 of the validation's samples in 2 evaluations"


def test_without_validation_the_last_weights_stay(update, tmp_path):
    made = setup(tmp_path)
    training = loop.train(loop.replace(made, tasks_validation=[]), Hooks())
    assert (training.curve, training.weights_step, training.best_step) == ((), 8, 8)


@pytest.mark.parametrize("step", [1, 3, 4, 7])
def test_an_interrupted_training_ends_with_the_weights_of_one_that_was_not(update, tmp_path, step):
    whole = setup(tmp_path / "whole", save_interval=3, eval_interval=4)
    expected = loop.train(whole, Hooks())
    interrupted(tmp_path / "parted", step, save_interval=3, eval_interval=4)
    resumed = setup(tmp_path / "parted", save_interval=3, eval_interval=4)
    resumed.rollouts.asked = []
    found = loop.train(resumed, Hooks())
    assert torch.equal(resumed.team.weight, whole.team.weight)
    assert (found.rewards, found.exposures) == (expected.rewards, expected.exposures)


def test_an_interruption_saves_the_last_whole_iteration(update, tmp_path):
    interrupted(tmp_path, 5, save_interval=100, eval_interval=100)
    assert checkpoints.is_valid(checkpoints.path_of(tmp_path, 5))


def test_half_an_update_is_never_saved(update, monkeypatch, tmp_path):
    def broken_off(team, *_):
        team.weight += 1
        raise Interrupted

    made = setup(tmp_path)
    monkeypatch.setattr(loop, "update", broken_off)
    with pytest.raises(Interrupted):
        loop.train(made, Hooks())
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-0"]


def test_of_a_damaged_newest_checkpoint_the_one_before_is_taken(update, tmp_path, caplog):
    whole = setup(tmp_path / "whole")
    loop.train(whole, Hooks())
    interrupted(tmp_path / "parted", 5)
    (checkpoints.path_of(tmp_path / "parted", 5) / "coder" / "weight.safetensors").write_bytes(b"damaged")
    resumed = setup(tmp_path / "parted")
    with caplog.at_level(logging.INFO):
        loop.train(resumed, Hooks())
    assert "checkpoint-5 is damaged: the one before is taken" in caplog.text
    assert "going on after iteration 4 of 8" in caplog.text
    assert torch.equal(resumed.team.weight, whole.team.weight)


def test_where_the_best_checkpoint_is_damaged_the_last_weights_stay(update, tmp_path, caplog):
    made = setup(tmp_path, judged=[0.25, 0.5, 0.25], iterations=4)

    def damage(figures):
        if figures.step == 4:
            (checkpoints.path_of(tmp_path, 2) / "coder" / "weight.safetensors").write_bytes(b"damaged")

    training = loop.train(made, Hooks(on_evaluation=damage))
    assert (training.best_step, training.weights_step) == (2, 4)
    assert "the last state is the candidate" in caplog.text


def test_a_training_that_is_over_is_not_gone_on_with(update, tmp_path):
    first = loop.train(setup(tmp_path), Hooks())
    again = setup(tmp_path)
    assert loop.train(again, Hooks()).rewards == first.rewards
    assert again.rollouts.asked == []


def test_a_team_far_from_its_base_is_stopped_with_advice(update, tmp_path):
    update.kl = {5: 1.5}
    training = loop.train(setup(tmp_path, judged=[0.25, 0.5]), Hooks())
    assert training.collapsed
    assert training.steps == 5
    assert training.stopped_why == (
        "collapsed at iteration 5: the KL to the base is 1.5 nats a token, above max_reference_kl 1; lower"
        " learning_rate (it is 2e-05) or raise kl_coef (it is 0.02), which holds the team near its base"
    )


def test_after_a_collapse_the_best_weights_are_left(update, tmp_path):
    update.kl = {5: 1.5}
    assert loop.train(setup(tmp_path, judged=[0.25, 0.5]), Hooks()).weights_step == 2


def test_a_collapsed_training_is_not_gone_on_with(update, tmp_path):
    update.kl = {5: 1.5}
    first = loop.train(setup(tmp_path), Hooks())
    assert loop.train(setup(tmp_path), Hooks()).stopped_why == first.stopped_why


def test_tasks_are_counted_each_time_they_are_trained_on(update, tmp_path):
    made = setup(tmp_path, rates=[1.0], judged=[0.0, 0.25, 0.5, 0.75, 1.0], n_rollout_threads=5)
    training = loop.train(made, Hooks())
    assert {key: (one.episodes, one.solved, one.tokens) for key, one in training.exposures.items()} == {
        task.key: (8, 8, 24) for task in made.tasks_train
    }


def test_tasks_seen_after_the_best_iteration_are_not_told(update, tmp_path):
    made = setup(tmp_path, judged=[0.25, 0.5, 0.25], n_rollout_threads=5)
    training = loop.train(made, Hooks())
    assert training.weights_step == 2
    assert {one.episodes for one in training.exposures.values()} == {2}


def test_the_summary_is_plain(update, tmp_path):
    summary = loop.train(setup(tmp_path, judged=[0.0, 0.25, 0.5, 0.75, 1.0]), Hooks()).summary()
    assert (summary["steps"], summary["pass_rate"], summary["tasks"]) == (8, 1.0, 5)


def test_a_progress_is_told_of_every_iteration(update, tmp_path):
    told = []
    loop.train(setup(tmp_path), Hooks(beat=told.append))
    assert sorted({one.step for one in told}) == list(range(9))
