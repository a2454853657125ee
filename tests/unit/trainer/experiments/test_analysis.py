"""Figures, differences and words of a report, from results made up for it."""

import math
import random
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from services.trainer.experiments import analysis, chart, conclusion
from services.trainer.experiments.experiment import Variant
from services.trainer.experiments.findings import Report
from services.trainer.experiments.publish import finite, html, markdown
from services.trainer.experiments.store import Scored
from services.trainer.experiments.trials import ALL, CHECK, Stage
from tests.unit.trainer.experiments.stand_ins import loaded

CONTROL, PLAIN, ANNOTATED = (
    Variant("control", "plain"), Variant("experiment", "plain"), Variant("experiment", "annotated")
)  # fmt: skip
TRAINED = [{"steps": 10, "seconds": 5.0, "train_loss": 1.0, "eval_loss": 2.0}]


@pytest.fixture
def report(tmp_path: Path):
    """A report of passes by variant, problem and seed: `passed(variant, problem, seed)` of four samples."""

    def made(passed, problems: int = 30, *, greedy=None, stage: str = ALL, lines: str = "") -> Report:
        experiment = loaded(tmp_path, problems, lines)
        names = tuple(task.name for task in experiment.problems)
        scored = [
            Scored(
                variant=variant,
                seed=seed,
                problem=name,
                programs=4,
                passed=passed(variant, number, seed),
                truncated=0,
                greedy=None if greedy is None else greedy(variant, number, seed),
                nats=math.log(2) * (10 - passed(variant, number, seed)),
                bytes=10,
            )
            for variant in experiment.experiment.variants
            for number, name in enumerate(names)
            for seed in (1, 2, 3)
        ]
        return analysis.analyse(experiment, Stage(stage, names, (1, 2, 3), 2, 4), scored, TRAINED)

    return made


def test_pass_at_k_is_the_mean_of_each_seeds_estimate(report) -> None:
    """0, 2 and 4 of 4 at three seeds: pass@1 is 1/2; pass@2 is (0 + 5/6 + 1) / 3; pooled it would be more."""
    found = report(lambda _variant, _problem, seed: (0, 2, 4)[seed - 1])
    assert dict(found.variants[0].curve)[1] == pytest.approx(0.5)
    assert dict(found.variants[0].curve)[2] == pytest.approx((0 + 5 / 6 + 1) / 3)
    assert found.variants[0].by_seed == {1: 0.0, 2: 0.5, 3: 1.0}
    assert found.variants[0].seed_deviation == pytest.approx(0.5)


def test_a_difference_is_of_problems_not_of_programs(report) -> None:
    """Three of thirty problems go from 0 to 4 of 4: ten points, and an interval as of 30 units."""
    found = report(lambda variant, problem, _seed: 4 * (variant == PLAIN and problem < 3))
    first = found.differences[0]
    assert (first.of, first.against, first.k) == ("experiment/plain", "control/plain", 1)
    assert first.difference == pytest.approx(0.1)
    assert 0 <= first.low < 0.05
    assert 0.15 < first.high < 0.3
    assert first.p == 2 / 2**3  # three problems that differ: eight patterns of signs


def test_holm_is_over_all_tests_of_the_report(report) -> None:
    """Two comparisons at k = 1 and 4, each with McNemar's: six tests."""
    found = report(lambda variant, problem, _: 4 * (variant == PLAIN and problem < 6), greedy=lambda *_: True)
    assert len(found.differences) + len(found.greedy) == 6
    least = found.differences[0]
    assert least.p == 2 / 2**6
    assert least.p_adjusted == pytest.approx(6 * 2 / 2**6)
    assert not least.shown


def test_greedy_programs_are_decided_by_most_seeds(report) -> None:
    """Passed by two of three seeds counts, by one of three does not."""
    found = report(
        lambda *_: 0,
        greedy=lambda variant, problem, seed: seed <= (2 if variant == PLAIN and problem < 8 else 1),
    )
    (plain, _) = found.greedy
    assert (plain.only_of, plain.only_against, plain.p) == (8, 0, 2 / 2**8)
    assert [one.greedy for one in found.variants] == [0.0, pytest.approx(8 / 30), 0.0]


def test_without_greedy_programs_there_is_no_mcnemar(report) -> None:
    found = report(lambda *_: 1, lines="greedy: false")
    assert found.greedy == ()
    assert found.variants[0].greedy is None


def test_bits_per_byte_are_of_all_solutions(report) -> None:
    found = report(lambda variant, *_: 2 * (variant == ANNOTATED))
    assert [one.bits_per_byte for one in found.variants] == pytest.approx([1.0, 1.0, 0.8])
    assert [one.difference for one in found.losses] == pytest.approx([0.0, -0.2])


def test_equal_arms_are_rarely_told_apart(tmp_path: Path, report) -> None:
    """Forty reports without any effect: with Holm's correction at most a few say one was shown."""
    draw = random.Random(1)
    wrong = sum(
        any(one.shown for one in report(lambda *_: draw.randint(0, 4), 20).differences) for _ in range(40)
    )
    assert wrong <= 5


def test_a_large_effect_is_shown(report) -> None:
    draw = random.Random(1)
    found = report(lambda variant, *_: draw.randint(0, 2) + 2 * (variant == PLAIN))
    assert found.conclusions[0].startswith("experiment is better than control: +4")
    plain, annotated = (one for one in found.differences if one.k == 1)
    assert plain.shown
    assert not annotated.shown


def test_a_worse_arm_is_called_worse(report) -> None:
    draw = random.Random(1)
    found = report(lambda variant, *_: draw.randint(0, 2) + 2 * (variant == CONTROL))
    assert found.conclusions[0].startswith("experiment is worse than control: -")


def test_seeds_that_disagree_are_named(report) -> None:
    found = report(lambda variant, _problem, seed: 2 + (variant == PLAIN) * (1, -1, 1)[seed - 1])
    assert any(
        line == "The seeds disagree on experiment against control: +25.0, -25.0, +25.0 points of pass@1."
        for line in found.cautions
    )


def test_a_report_says_what_was_not_measured_and_what_a_hint_is(report) -> None:
    said = " ".join(report(lambda *_: 1).cautions)
    assert "pass@10 needs 10 programs a problem and training; there are 4: not measured" in said
    assert "metadata is guessed from the syntax" in said
    assert "30 problems are few" in said
    assert "do not cover the choice of seeds" in said


def test_a_check_concludes_nothing(report) -> None:
    found = report(lambda variant, *_: 4 * (variant == PLAIN), stage=CHECK)
    assert found.conclusions == ("A check of the plumbing with 30 problems: its figures mean nothing.",)
    assert found.cautions == ()


@pytest.mark.parametrize("passes", [0, 2, 4])
def test_pictures_are_whole_svg_within_their_frame(report, passes: int) -> None:
    found = report(lambda variant, problem, _: passes if variant == CONTROL else problem % 5)
    for picture in (chart.curves(found), chart.differences(found)):
        root = ET.fromstring(picture)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for element in root.iter():
            for name, most in (("x1", width), ("x2", width), ("cx", width), ("y1", height), ("cy", height)):
                assert 0 <= float(element.get(name, 0)) <= most
        assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_texts_of_an_experiment_are_escaped(report) -> None:
    found = report(lambda *_: 1, lines='description: "<script>alert(1)</script> & more."')
    page = html(found, ["<svg/>", "<svg/>"])
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_markdown_table_has_one_width(report) -> None:
    for table in markdown(report(lambda *_: 1)).split("\n\n"):
        if table.startswith("|"):
            assert len({line.count("|") for line in table.splitlines()}) == 1


def test_json_has_no_nan() -> None:
    assert finite({1: math.nan, "a": (math.inf, 2.0)}) == {"1": None, "a": [None, 2.0]}


@pytest.mark.parametrize(
    ("p", "shown"), [(0.25, "0.250"), (0.001, "0.001"), (0.00004, "4e-05"), (1, "1.000")]
)
def test_p_values_are_short(p: float, shown: str) -> None:
    assert conclusion.p_value(p) == shown
