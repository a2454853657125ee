"""Experiments: read, refused with a reason, split into trials."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.experiments import files
from services.trainer.experiments.experiment import Variant
from services.trainer.experiments.folds import folds
from services.trainer.experiments.trials import ALL, CHECK, stages, trials

SMALL = """\
recipe: demo
overrides: {max_length: 768}
arms:
  control: {train: plain}
  experiment: {train: annotated, prompts: [plain, annotated]}
"""
NAMES = st.integers(2, 60).flatmap(
    lambda n: st.tuples(st.just([f"HumanEval/{number}" for number in range(n)]), st.integers(2, n))
)


@pytest.fixture
def written(tmp_path: Path):
    def write(lines: str = "", base: str = SMALL) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(base + lines, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("path", files.available(), ids=lambda path: path.stem)
def test_every_experiment_that_ships_is_valid(path: Path) -> None:
    loaded = files.load(path)
    assert loaded.experiment.name == path.stem
    assert loaded.experiment.description.endswith(".")
    assert len(loaded.experiment.seeds) >= 3


def test_a_recipe_is_taken_with_its_overrides(written) -> None:
    loaded = files.load(written("name: other\n"), {"lora_r": 4})
    assert loaded.experiment.name == "other"
    assert (loaded.recipe.name, loaded.recipe.max_length, loaded.recipe.lora_r) == ("demo", 768, 4)
    assert len(loaded.problems) == 164


def test_without_a_recipe_the_overrides_are_one(written) -> None:
    path = written(base=SMALL.replace("recipe: demo\n", "").replace("{max", "{base_model: ./m, max"))
    assert files.load(path).recipe.base_model == "./m"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("fold: 3\n", "fold is not a field: did you mean folds?"),
        ("seeds: [1, 2]\n", "seeds=[1, 2]: must have at least 3 of them"),
        ("seeds: [1, 2, 2]\n", "has a value twice"),
        ("samples: none\n", "samples='none': must be a whole number"),
        ("temperature: 0\n", "temperature=0: must be above 0"),
        ("k: [5]\nsamples: 2\n", "k=5 needs as many samples"),
        ("folds: 200\n", "folds=200 of 164 problems"),
        ("comparisons: [{of: control, against: control/plain}]\n", "'control' is none of control/plain"),
        ("comparisons: [{of: control/plain, vs: x}]\n", "is not a field"),
        ("annotations: [algoritm]\n", "no problem has @algoritm: did you mean algorithm?"),
        ("metadata: mine.json\n", "mine.json cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(written, lines: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        files.load(written(lines))
    assert said in str(caught.value)


def test_a_wrong_form_is_told_the_right_ones(written) -> None:
    with pytest.raises(ConfigurationError, match=r"arms.control.train='plan'.*did you mean plain\?"):
        files.load(written(base=SMALL.replace("train: plain", "train: plan")))


def test_one_variant_alone_is_nothing_to_compare(written) -> None:
    with pytest.raises(ConfigurationError, match="nothing to compare"):
        files.load(written(base="recipe: demo\narms: {control: {train: plain}}\n"))


def test_full_fine_tuning_is_no_experiment(written) -> None:
    with pytest.raises(ConfigurationError, match="trains adapters"):
        files.load(written(base=SMALL.replace("demo", "qwen7b-full")))


def test_an_unknown_experiment_is_told_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean humaneval-metadata"):
        files.find("humaneval-metadat")


def test_the_first_variant_is_what_the_others_are_compared_with(written) -> None:
    experiment = files.read(written())
    control, plain, annotated = experiment.variants
    assert control == Variant("control", "plain")
    assert experiment.compared == ((plain, control), (annotated, control))


def test_what_only_the_report_depends_on_does_not_change_the_identity(written) -> None:
    before = files.load(written()).identity
    assert files.load(written("k: [1, 5]\nseeds: [1, 2, 3, 4]\nconfidence: 0.9\n")).identity == before


@pytest.mark.parametrize(
    ("lines", "name"), [("folds: 5\n", "folds"), ("temperature: 0.2\n", "temperature"), ("", "recipe.lora_r")]
)
def test_what_results_depend_on_changes_the_identity(written, lines: str, name: str) -> None:
    before = files.load(written()).identity
    after = files.load(written(lines), {} if lines else {"lora_r": 2}).identity
    assert [said.split(" from ")[0] for said in files.changed(before, after)] == [name]


def test_other_metadata_is_another_experiment(written, tmp_path: Path) -> None:
    path = written("metadata: told.json\n")
    names = [task.name for task in files.problems(path, files.read(path))]
    identities = []
    for time in ("O(1)", "O(n)"):
        told = {name: {"timeComplexity": time} for name in names}
        (tmp_path / "told.json").write_text(json.dumps(told), encoding="utf-8")
        identities.append(files.load(path).identity)
    (said,) = files.changed(*identities)
    assert said.startswith("metadata from told.json ")


# folds and trials


@given(NAMES)
def test_every_problem_is_in_exactly_one_fold(given_: tuple[list[str], int]) -> None:
    names, number = given_
    parts = folds(names, number)
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_folds_do_not_depend_on_the_order() -> None:
    names = [f"HumanEval/{number}" for number in range(20)]
    assert [set(part) for part in folds(names, 4)] == [set(part) for part in folds(names[::-1], 4)]


def test_there_are_no_more_folds_than_problems() -> None:
    with pytest.raises(ValueError, match="expected 2 to 3"):
        folds(["a", "b", "c"], 4)


def test_no_trial_is_scored_on_what_it_has_trained_on(written) -> None:
    loaded = files.load(written())
    names = [task.name for task in loaded.problems]
    for stage in stages(loaded.experiment, names):
        for trial in trials(loaded.experiment, stage):
            assert not set(trial.trained_on) & set(trial.scored_on)
            assert set(trial.trained_on) | set(trial.scored_on) == set(stage.problems)


def test_every_arm_is_scored_once_a_seed_on_every_problem(written) -> None:
    loaded = files.load(written(base=SMALL + "  base: {train: nothing}\n"))
    (stage,) = [
        one for one in stages(loaded.experiment, [t.name for t in loaded.problems]) if one.name == ALL
    ]
    made = trials(loaded.experiment, stage)
    for arm in loaded.experiment.arms:
        for seed in loaded.experiment.seeds:
            scored = [name for one in made if (one.arm, one.seed) == (arm, seed) for name in one.scored_on]
            assert sorted(scored) == sorted(stage.problems)
    assert len({trial.folder for trial in made}) == len(made)


def test_the_check_takes_five_problems_of_one_seed(written) -> None:
    loaded = files.load(written())
    check, whole = stages(loaded.experiment, [task.name for task in loaded.problems])
    assert (check.name, len(check.problems), check.seeds, check.samples) == (CHECK, 5, (1,), 2)
    assert (whole.name, len(whole.problems), whole.seeds, whole.samples) == (ALL, 164, (1, 2, 3), 20)
    assert [one.name for one in stages(files.read(written("check_samples: 0\n")), check.problems)] == [ALL]
