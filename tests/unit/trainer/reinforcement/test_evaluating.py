"""What a team is worth: pass rates of tasks, ability elsewhere, and the verdict on both."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.core.models import Subject
from services.trainer import gate
from services.trainer.reinforcement import evaluating, loop
from services.trainer.reinforcement.figures import Hooks
from services.trainer.suites.suite import Report, Score
from tests.unit.trainer.reinforcement.fakes import FakeTeam, FakeUpdate, episode, recipe, setup, tasks


class Solving:
    """Rollouts of which so many episodes of each task are solved."""

    def __init__(self, solved: dict[str, list[bool]]) -> None:
        self.solved = solved
        self.asked: list[dict[str, Any]] = []

    def collect(self, asked: Any, **options: Any) -> list[Any]:
        self.asked.append(options)
        return [episode(task, solved) for task in asked for solved in self.solved[task.name]]


def test_a_tasks_value_is_the_share_of_its_episodes_that_solved_it() -> None:
    found = evaluating.evaluate(
        Solving({"task0": [True, False, False, False], "task1": [True] * 4}), tasks(2), 4, 1
    )
    assert [(score.name, score.value) for score in found.scores] == [("task0", 0.25), ("task1", 1.0)]
    assert found.scores[0].detail["passed"] == 1
    assert found.scores[0].detail["said"] == {"coder": "text"}


def test_pass_at_k_is_of_all_samples_too() -> None:
    found = evaluating.evaluate(
        Solving({"task0": [True, False, False, False], "task1": [False] * 4}), tasks(2), 4, 1
    )
    assert found.figures == pytest.approx({"pass@1": 0.125, "pass@4": 0.5})
    assert found.suite == "tasks"


def test_one_sample_is_written_greedily_and_several_are_drawn() -> None:
    rollouts = Solving({"task0": [True]})
    evaluating.evaluate(rollouts, tasks(1), 1, 5)
    rollouts.solved = {"task0": [True] * 3}
    evaluating.evaluate(rollouts, tasks(1), 3, 5)
    assert [(each["greedy"], each["samples"], each["seed"]) for each in rollouts.asked] == [
        (True, 1, 5),
        (False, 3, 5),
    ]


def test_an_episode_too_few_is_an_error() -> None:
    with pytest.raises(ValueError, match="task0 has 3 episodes: expected 4"):
        evaluating.evaluate(Solving({"task0": [True] * 3}), tasks(1), 4, 1)


def test_other_numbers_of_samples_are_another_version() -> None:
    """Their pass rates are not to be paired."""
    two, four = (evaluating.evaluate(Solving({"task0": [True] * n}), tasks(1), n, 1).version for n in (2, 4))
    assert two != four


# the verdict


def test_a_candidate_that_is_what_it_began_as_is_said_to_be(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(loop, "update", FakeUpdate())
    worse = loop.train(setup(tmp_path / "worse", judged=[0.5, 0.25]), Hooks())
    better = loop.train(setup(tmp_path / "better", judged=[0.25, 0.5]), Hooks())
    (said,) = evaluating.notes(worse)
    assert said.startswith("none of the 8 iterations solved more of the validation tasks")
    assert evaluating.notes(better) == []


def report(rates: list[float], samples: int = 4, suite: str = "tasks", version: str = "1") -> Report:
    scores = tuple(
        Score(f"{n}", f"{n}", f"{n}", "pass@1", rate, detail={"samples": samples})
        for n, rate in enumerate(rates)
    )
    return Report(suite, version, scores, 0.0, figures={"pass@1": sum(rates) / len(rates)})


def judged(before: list[float], after: list[float], **others: Any) -> gate.Verdict:
    reports = {Subject.BASE: {"tasks": report(before)}, Subject.CANDIDATE: {"tasks": report(after)}, **others}
    return evaluating.verdict(recipe(), reports, gate.History())


def test_more_tasks_solved_is_promoted_in_points() -> None:
    found = judged([0.25] * 24, [0.75] * 12 + [0.5] * 12)
    assert found.promoted
    assert found.improvement == pytest.approx(0.375)
    assert found.pass_rates == {"base": 0.25, "candidate": pytest.approx(0.625)}
    assert (found.metric, found.held_out_tasks, found.held_out_files) == ("rate", 24, 0)


def test_the_champion_is_what_counts_where_there_is_one() -> None:
    champion = {Subject.CHAMPION: {"tasks": report([0.75] * 24)}}
    found = judged([0.0] * 24, [0.75] * 24, **champion)
    assert not found.promoted
    assert (found.against, found.improvement) == ("champion", 0.0)


def test_other_tasks_are_not_compared() -> None:
    reports = {
        Subject.BASE: {"tasks": report([0.0] * 9)},
        Subject.CANDIDATE: {"tasks": report([1.0] * 9, version="2")},
    }
    assert "other tasks" in evaluating.verdict(recipe(), reports, gate.History()).reason


def test_a_coder_that_forgot_the_rest_is_refused() -> None:
    """However many tasks the team solves."""
    chosen = recipe().model_copy(update={"general_suite": "humaneval"})
    reports = {
        Subject.BASE: {"tasks": report([0.0] * 48), "humaneval": report([1.0] * 100, 1, "humaneval")},
        Subject.CANDIDATE: {
            "tasks": report([1.0] * 48), "humaneval": report([0.5] * 50 + [1.0] * 50, 1, "humaneval"),
        },
    }  # fmt: skip
    found = evaluating.verdict(chosen, reports, gate.History())
    assert [(check.name, check.passed) for check in found.checks] == [("tasks", True), ("general", False)]


def test_figures_are_of_every_model_and_suite() -> None:
    found = evaluating.figures({Subject.BASE: {"tasks": report([0.5, 1.0])}})
    assert found == {"base": {"tasks": {"pass@1": 0.75}}}


# ability elsewhere


class Acting(FakeTeam):
    """Who acts, as it is asked."""

    roles = ("analyzer", "coder")
    tokenizer = None

    def __init__(self) -> None:
        super().__init__()
        self.who: str | None = None
        layers = SimpleNamespace(layers=[])
        embeddings = SimpleNamespace(weight=SimpleNamespace(dtype="float32"))
        self.model = SimpleNamespace(base_model=layers, get_input_embeddings=lambda: embeddings)

    @contextmanager
    def acting(self, role: str) -> Any:
        self.who = role
        yield
        self.who = None

    @contextmanager
    def at_rest(self) -> Any:
        self.who = "nobody"
        yield
        self.who = None

    def parameters_of(self, role: str) -> dict[str, str]:
        return {"weights of": role}


@pytest.mark.parametrize(
    ("subject", "weights", "who", "measured"),
    [
        (Subject.BASE, None, "nobody", None),
        (Subject.CHAMPION, Path("round-0001"), "coder", Path("round-0001/coder")),
        (Subject.CANDIDATE, None, "coder", {"weights of": "coder"}),
    ],
)
def test_ability_elsewhere_is_the_answering_roles(
    monkeypatch: pytest.MonkeyPatch, subject: Subject, weights: Path | None, who: str, measured: Any
) -> None:
    """Beside the bare base's."""
    team, seen = Acting(), []
    monkeypatch.setattr(
        evaluating.Assessor, "reports", lambda self, subject, trained: seen.append((team.who, trained)) or {}
    )
    context: Any = evaluating.Context(None, recipe(), None, None, None, None)  # type: ignore[arg-type]
    evaluating.ability(context, None, team, subject, weights)  # type: ignore[arg-type]
    assert seen == [(who, measured)]
