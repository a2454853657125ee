"""References are run once, what came of it is kept, and failures are left out with the reason."""

from contextlib import contextmanager

import pytest

from services.core.errors import SandboxError
from services.core.sandbox import Outcome
from services.trainer.suites.formats import Task
from services.trainer.tasks import vetting
from services.trainer.tasks.placed import PlacedTask
from services.trainer.tasks.vetting import Vetted


def placed(name, solution="    return x\n", excluded=None):
    prompt = f'def f(x):\n    """{name}"""\n'
    task = Task(
        name,
        prompt,
        None,
        prompt,
        solution,
        "def check(candidate):\n    assert candidate(1) == 1\n",
        "f",
        "check",
    )
    return PlacedTask(task, "train", name, "here", excluded)


class Sandbox:
    """Passes what returns x; remembers what it ran; breaks after so many where told."""

    def __init__(self, breaks_after=None):
        self.ran = []
        self.breaks_after = breaks_after

    @contextmanager
    def __call__(self):
        yield self

    def run(self, programs, on_done=None):
        outcomes = []
        for number, program in enumerate(programs):
            if number == self.breaks_after:
                raise SandboxError("it went away")
            self.ran.append(program.code)
            passed = "return x" in program.code
            outcomes.append(
                Outcome(program.key, passed, "passed" if passed else "failed: no module named pandas")
            )
            on_done(outcomes[-1])
        return outcomes


GOOD, BAD = placed("good"), placed("bad", "    import pandas\n")


def test_a_task_whose_own_reference_fails_is_left_out_with_the_reason(tmp_path):
    good, bad = vetting.vet([GOOD, BAD], Vetted(tmp_path / "set.json"), Sandbox())
    assert good == GOOD
    assert bad.excluded == "its own reference does not pass (failed: no module named pandas)"


def test_nothing_is_run_twice_also_by_another_process(tmp_path):
    vetting.vet([GOOD, BAD], Vetted(tmp_path / "set.json"), Sandbox())
    again = Sandbox()
    assert vetting.vet([GOOD, BAD], Vetted(tmp_path / "set.json"), again)[1].excluded
    assert again.ran == []


def test_failures_are_run_again_where_that_is_asked_for(tmp_path):
    vetting.vet([GOOD, BAD], Vetted(tmp_path / "set.json"), Sandbox())
    again = Sandbox()
    vetting.vet([GOOD, BAD], Vetted(tmp_path / "set.json"), again, again=True)
    assert again.ran == [BAD.task.reference]


def test_what_is_left_out_already_is_not_run(tmp_path):
    sandbox = Sandbox()
    vetting.vet([placed("bad", excluded="no test")], Vetted(tmp_path / "set.json"), sandbox)
    assert sandbox.ran == []


def test_what_was_found_out_before_the_sandbox_went_away_is_kept(tmp_path):
    path = tmp_path / "set.json"
    with pytest.raises(SandboxError):
        vetting.vet([GOOD, BAD], Vetted(path), Sandbox(breaks_after=1))
    assert vetting.unknown([GOOD, BAD], Vetted(path)) == 1


def test_a_damaged_file_of_results_is_as_none(tmp_path):
    (tmp_path / "set.json").write_text("[1")
    assert vetting.unknown([GOOD], Vetted(tmp_path / "set.json")) == 1


def test_progress_is_told_and_may_interrupt(tmp_path):
    told = []
    vetting.vet([GOOD, BAD], Vetted(tmp_path / "set.json"), Sandbox(), lambda *each: told.append(each))
    assert told == [(1, 2), (2, 2)]
