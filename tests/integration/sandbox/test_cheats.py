"""No cheat passes, by name; and the honest program does, in each style."""

import pytest

from services.core.sandbox import Outcome, Sandbox
from tests import cheats

PROGRAMS = {program.key: program for program in cheats.programs()}


@pytest.fixture(scope="module")
def outcomes(sandbox: Sandbox) -> dict[str, Outcome]:
    return {outcome.key: outcome for outcome in sandbox.run(list(PROGRAMS.values()))}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_cheat_fails(outcomes, name):
    assert not outcomes[name].passed
    assert outcomes[name].result.startswith(("failed: ", "timed out"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_cheat_wins_no_single_test(outcomes, name):
    assert not outcomes[name].tests_passed


@pytest.mark.parametrize("style", cheats.TESTS)
def test_the_honest_program_passes(sandbox, style):
    (outcome,) = sandbox.run([cheats.program("honest", cheats.HONEST, style)])
    assert outcome.result == "passed"
    assert outcome.tests_passed == outcome.tests


def test_a_flood_does_not_outlast_its_time(outcomes):
    """Its output goes nowhere; what it sends is refused by length."""
    assert outcomes["floods its output"].seconds < cheats.TIMEOUT + 10
    assert "no answer" in outcomes["announces a huge answer"].result
