"""How far a rollout is, in words."""

import pytest

from services.trainer.reinforcement.standing import Standing, learning, measuring, practising, validating

WRITING = Standing(episodes=32, turns=1).begins("coder", 0, 32).wrote(12, 300).wrote(8, 100)
TESTED = WRITING.after(4.0, [1.0, 0.5, 0.0, 0.5], solved=1)
TESTING = TESTED.begins(None, 0, 32)


def test_who_writes_is_said_with_how_many_answers_there_are() -> None:
    assert practising(WRITING) == "coder writes, 20 of 32 answers"


def test_of_several_turns_the_turn_is_said() -> None:
    later = Standing(episodes=32, turns=3).begins("analyzer", 1, 20)
    assert practising(later) == "turn 2 of 3: analyzer writes, 0 of 20 answers"


def test_a_rollout_says_what_it_has_earned_so_far() -> None:
    assert practising(TESTED) == "coder writes, 20 of 32 answers, 4 tested, reward 0.50 so far"


def test_who_waits_for_the_sandbox_says_so() -> None:
    assert practising(TESTING) == "testing programs, 4 of 32 done, reward 0.50 so far"


def test_an_evaluation_says_of_whom_and_what_passes() -> None:
    assert measuring("base on held-out tasks", TESTED) == (
        "base on held-out tasks: coder writes, 20 of 32 answers, 1 of 4 tested pass"
    )
    assert measuring("base on held-out tasks", TESTING) == (
        "base on held-out tasks: testing programs, 4 of 32 done, 1 pass"
    )


@pytest.mark.parametrize(
    ("step", "said"), [(0, "before iteration 1: coder"), (4, "after iteration 4 of 8: coder")]
)
def test_a_validation_says_when_in_the_training_it_is(step: int, said: str) -> None:
    assert validating(step, 8, WRITING).startswith(f"validation tasks {said} writes")


def test_an_update_says_which_of_several_steps_it_takes() -> None:
    assert learning(2, 4, 16) == "learning from 16 episodes, step 2 of 4"
    assert learning(1, 1, 16) == "learning from 16 episodes"
    assert learning(0, 1, 16).startswith("reading 16 episodes with the base")


def test_speed_is_of_writing_and_unknown_before_anything_is_written() -> None:
    assert Standing(episodes=1, turns=1).tokens_per_s is None
    assert TESTING.tokens_per_s == 100.0
