"""Rewards, with a runner that runs nothing: a program passes when it holds the word."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import SandboxError
from services.core.sandbox import Outcome, Program
from services.trainer.reinforcement.rewards import NO_CODE, Rewards, reward, said
from services.trainer.suites.formats import Task

TASK = Task("Mine/1", "", "Say it.", "", "", "assert f()", "f", "assert")
WORD = "right"


class FakeRunner:
    def __init__(self) -> None:
        self.ran: list[Program] = []
        self.goes = threading.Event()
        self.goes.set()
        self.broken = False

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        self.goes.wait()
        if self.broken:
            raise SandboxError("the sandbox has gone: start it")
        self.ran += programs
        return [Outcome(each.key, WORD in each.code, "passed", 1, 2) for each in programs]


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def rewards(runner: FakeRunner) -> Iterator[Rewards]:
    with Rewards(runner) as made:
        yield made
        runner.goes.set()


def test_a_program_is_run_with_its_tasks_test(rewards: Rewards, runner: FakeRunner) -> None:
    assert rewards.submit(TASK, WORD).result().passed
    (ran,) = runner.ran
    assert (ran.code, ran.test, ran.entry_point, ran.style) == (WORD, "assert f()", "f", "assert")


def test_who_submits_does_not_wait(rewards: Rewards, runner: FakeRunner) -> None:
    runner.goes.clear()
    pending = [rewards.submit(TASK, f"{number}") for number in range(5)]
    assert not any(each.done() for each in pending)
    runner.goes.set()
    assert [each.result().passed for each in pending] == [False] * 5


def test_equal_programs_of_a_test_are_run_once_even_while_the_first_still_runs(
    rewards: Rewards, runner: FakeRunner
) -> None:
    runner.goes.clear()
    pending = [rewards.submit(TASK, WORD) for _ in range(3)]
    runner.goes.set()
    assert all(each.result().passed for each in pending)
    assert rewards.submit(TASK, WORD).result().passed
    assert len(runner.ran) == 1
    assert (rewards.programs, rewards.repeated) == (4, 3)


@pytest.mark.parametrize("other", [{"test": "assert not f()"}, {"style": "check"}, {"entry_point": "g"}])
def test_the_same_code_to_another_test_is_run_again(
    rewards: Rewards, runner: FakeRunner, other: dict[str, str]
) -> None:
    rewards.submit(TASK, WORD).result()
    rewards.submit(replace(TASK, **other), WORD).result()
    assert len(runner.ran) == 2


def test_without_code_nothing_is_run(rewards: Rewards, runner: FakeRunner) -> None:
    outcome = rewards.submit(TASK, None).result()
    assert (outcome.passed, outcome.result) == (False, NO_CODE)
    assert rewards.reward(outcome) == 0.0
    assert not runner.ran


def test_a_sandbox_that_has_gone_is_said_and_not_kept(rewards: Rewards, runner: FakeRunner) -> None:
    runner.broken = True
    with pytest.raises(SandboxError, match="start it"):
        rewards.submit(TASK, WORD).result()
    runner.broken = False
    assert rewards.submit(TASK, WORD).result().passed


def test_what_waits_is_given_up_when_it_is_closed(runner: FakeRunner) -> None:
    with Rewards(runner) as rewards:
        runner.goes.clear()
        running, waiting = rewards.submit(TASK, "1"), rewards.submit(TASK, "2")
        while not running.running():
            pass
        threading.Timer(0.01, runner.goes.set).start()
    assert running.done()
    assert waiting.cancelled()


outcomes = st.builds(
    Outcome,
    key=st.just("one"),
    passed=st.booleans(),
    result=st.just(""),
    tests_passed=st.none() | st.integers(0, 9),
    tests=st.none() | st.integers(9, 20),
)


@given(outcomes)
def test_binary_is_all_or_nothing(outcome: Outcome) -> None:
    assert reward(outcome, "binary") == float(outcome.passed)


@given(outcomes)
def test_continuous_lies_between_and_is_whole_only_for_what_passes(outcome: Outcome) -> None:
    found = reward(outcome, "continuous")
    assert 0.0 <= found <= 1.0
    assert (found == 1.0) >= outcome.passed


def test_continuous_is_the_share_of_tests_that_pass() -> None:
    assert reward(Outcome("one", passed=False, result="", tests_passed=3, tests=4), "continuous") == 0.75


@pytest.mark.parametrize(
    ("result", "tests", "expected"),
    [
        ("failed: ", 4, "failed: an assertion does not hold (3 of 4 tests passed)"),
        ("failed: name 'y' is not defined", None, "failed: name 'y' is not defined"),
        ("timed out", 4, "timed out (3 of 4 tests passed)"),
    ],
)
def test_a_team_is_told_why_and_how_many(result: str, tests: int | None, expected: str) -> None:
    assert said(Outcome("one", passed=False, result=result, tests_passed=3, tests=tests)) == expected
