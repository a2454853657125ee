"""An experiment from start to report, with a model and a sandbox that only pretend."""

import json
import re
import shutil
from pathlib import Path

import pytest

from services.core.errors import ConfigurationError, RatchetError
from services.trainer.experiments import runner, store
from services.trainer.experiments.findings import Report
from services.trainer.experiments.publish import CURVES, DIFFERENCES, HTML, JSON, MARKDOWN
from services.trainer.experiments.runner import Runner
from tests.unit.trainer.experiments.stand_ins import Models, Sandbox, loaded

SOLVED = {"control": 1, "experiment": 3}


class Stop(Exception):  # noqa: N818  it stands for a kill
    pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "experiments" / "mine"


@pytest.fixture
def run(tmp_path: Path, root: Path):
    def start(models: Models | None = None, sandbox: Sandbox | None = None, **options) -> Report:
        experiment = loaded(tmp_path, **options)
        store.begin(root, experiment.identity, fresh=False)
        return Runner(experiment, root, models or Models(SOLVED), sandbox or Sandbox(), lambda _: None).run()

    return start


def contents(root: Path) -> dict[str, str]:
    """Every file but those of the time it took."""
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_an_experiment_ends_with_its_figures(run) -> None:
    """One and three of four samples pass, and every greedy program, which is the first sample."""
    report = run(number=12)
    control, plain, annotated = report.variants
    assert control.pass_at == {1: 0.25, 4: 1.0}
    assert plain.pass_at == annotated.pass_at == {1: 0.75, 4: 1.0}
    assert [one.greedy for one in report.variants] == [1.0, 1.0, 1.0]
    assert control.by_seed == {1: 0.25, 2: 0.25, 3: 0.25}
    assert control.seed_deviation == 0
    first, *_ = report.differences
    assert (first.difference, first.low, first.high, first.shown) == (0.5, 0.5, 0.5, True)
    assert report.not_measured == (10,)
    assert "experiment is better than control: +50.0 points of pass@1" in report.conclusions[0]


def test_no_difference_is_called_none(run) -> None:
    report = run(Models({"control": 2, "experiment": 2}))
    assert report.conclusions[0].startswith("No difference could be shown between experiment and control")
    assert not any(one.shown for one in report.differences)


def test_the_report_is_written_in_three_ways(run, root: Path) -> None:
    report = run()
    assert json.loads((root / JSON).read_text())["variants"][0]["pass_at"] == {"1": 0.25, "4": 1.0}
    assert report.conclusions[0] in (root / MARKDOWN).read_text()
    page = (root / HTML).read_text()
    assert page.count("<svg") == 2
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)|@import|<script", page)
    assert all((root / name).read_text().startswith("<svg") for name in (CURVES, DIFFERENCES))


def test_samples_and_results_are_human_evals(run, root: Path) -> None:
    run()
    folder = root / "all" / "control" / "seed-1" / "fold-1" / "plain"
    sample = json.loads((folder / "samples.jsonl").read_text().splitlines()[0])
    result = json.loads((folder / "samples.jsonl_results.jsonl").read_text().splitlines()[1])
    assert {"task_id", "completion"} <= sample.keys()
    assert (result["passed"], result["result"]) == (False, "failed: wrong")


def test_equal_programs_are_run_once(run) -> None:
    """Of four drawn samples of a problem two differ; the greedy one is in a file of its own."""
    sandbox = Sandbox()
    run(sandbox=sandbox, number=2, lines="check_samples: 0")
    files_of_samples, problems = 3 * 3, 2  # seeds times variants
    assert len(sandbox.programs) == problems + files_of_samples * problems * (2 + 1)


def test_what_is_done_is_not_done_again(run, root: Path) -> None:
    run()
    before, models, sandbox = contents(root), Models(SOLVED), Sandbox()
    run(models, sandbox)
    assert models.opened == sandbox.programs == []
    assert contents(root) == before


POINTS = tuple(
    f"experiment.{when}" for when in ("after_training", "while_writing", "after_writing", "after_trial")
)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("passed", [0, 3])
def test_broken_off_anywhere_it_ends_as_if_it_had_not_been(
    run, root: Path, monkeypatch: pytest.MonkeyPatch, point: str, passed: int
) -> None:
    run()
    whole = contents(root)
    shutil.rmtree(root)
    hits = 0

    def stop(name: str) -> None:
        nonlocal hits
        hits += name == point
        if name == point and hits > passed:
            raise Stop

    monkeypatch.setattr(runner, "failpoint", stop)
    with pytest.raises(Stop):
        run()
    monkeypatch.setattr(runner, "failpoint", lambda _: None)
    run()
    assert contents(root) == whole


def test_a_line_cut_off_by_a_kill_is_written_again(run, root: Path) -> None:
    run()
    whole = contents(root)
    folder = root / "all" / "control" / "seed-2" / "fold-1"
    for path in (folder / "done.json", folder / "plain" / "samples.jsonl_results.jsonl"):
        path.unlink()
    samples = folder / "plain" / "samples.jsonl"
    samples.write_bytes(samples.read_bytes()[:-20])
    run()
    found = contents(root)
    assert sorted(found) == sorted(whole)
    assert json.loads(found[JSON])["variants"] == json.loads(whole[JSON])["variants"]


def test_a_changed_experiment_does_not_go_on(run) -> None:
    run()
    with pytest.raises(ConfigurationError, match=r"max_new_tokens from 512 to 9.*--fresh"):
        run(lines="max_new_tokens: 9")


def test_fresh_moves_the_results_aside(run, root: Path, tmp_path: Path) -> None:
    run()
    before = contents(root)
    moved = store.begin(root, {**loaded(tmp_path).identity, "folds": 3}, fresh=True)
    assert moved is not None
    assert contents(moved) == before
    assert [path.name for path in root.iterdir()] == ["experiment.json"]


def test_one_more_seed_adds_its_trials_alone(run) -> None:
    run(lines="check_samples: 0")
    models = Models(SOLVED)
    report = run(models, lines="check_samples: 0\nseeds: [1, 2, 3, 4]")
    assert {trial.seed for trial in models.opened} == {4}
    assert report.seeds == (1, 2, 3, 4)


def test_problems_whose_solution_fails_end_it_at_once(run, root: Path) -> None:
    class Strict(Sandbox):
        def run(self, programs, on_done=None):
            return [type(one)(one.key, False, "timed out") for one in super().run(programs)]

    models = Models(SOLVED)
    with pytest.raises(
        RatchetError, match=r"solutions of 6 of 6 problems do not pass here: T/0 \(timed out\)"
    ):
        run(models, Strict())
    assert models.opened == []


def test_it_says_where_it_is_and_how_long_it_takes(tmp_path: Path, root: Path) -> None:
    said: list[str] = []
    experiment = loaded(tmp_path)
    Runner(experiment, root, Models(SOLVED), Sandbox(), said.append).run()
    assert any(line.startswith("[1/4] check: control, seed 1, fold 1 · training") for line in said)
    assert re.search(r"\[12/12\] all: experiment, seed 3, fold 2 · .* · \d+:\d\d left", said[-1])


def test_an_untrained_arm_is_scored_on_all_problems_at_once(run) -> None:
    models = Models({"control": 1, "experiment": 3, "base": 2})
    report = run(models, lines="check_samples: 0", arms="  base: {train: nothing}\n")
    base = [trial for trial in models.opened if trial.arm == "base"]
    assert [(trial.seed, trial.trained_on, len(trial.scored_on)) for trial in base] == [
        (1, (), 6), (2, (), 6), (3, (), 6)
    ]  # fmt: skip
    assert report.variants[-1].pass_at[1] == 0.5
