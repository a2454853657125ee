"""Figures of arms and the intervals of their differences."""

import random

import pytest

from services.trainer.verdict.answers import COMPARED, Answer, Arm, Run, difference, differences, figures


def run(arm, values, *, files=None, latencies=(1.0,), seconds=10.0):
    """One answer a value, so many to a file."""
    group = files or (lambda at: at)
    answers = tuple(
        Answer(f"{at}", f"{group(at)}", float(value == 1), value, 100, 10) for at, value in enumerate(values)
    )
    return Run(arm, answers, tuple(latencies), seconds)


def test_figures_are_means_of_a_completion():
    found = figures(run(Arm.BASE, [1.0, 0.5], latencies=[1.0, 2.0, 3.0], seconds=4.0))
    assert (found.exact_match, found.edit_similarity, found.device_seconds) == (0.5, 0.75, 2.0)
    assert (found.latency_p50, found.latency_p90) == (2.0, pytest.approx(2.8))


def test_an_arm_without_answers_has_no_figures():
    with pytest.raises(ValueError, match="no answer"):
        figures(run(Arm.BASE, []))


def test_a_constant_gain_has_no_width():
    found = difference(run(Arm.BASE, [0.1, 0.5]), run(Arm.ADAPTER, [0.3, 0.7]), "edit_similarity")
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, 0.2, 0.2))


def test_no_gain_is_neither_better_nor_worse():
    draw = random.Random(1)
    values = [draw.random() for _ in range(60)]
    others = [draw.random() for _ in range(60)]
    found = difference(run(Arm.BASE, values), run(Arm.ADAPTER, others), "edit_similarity")
    assert found.low < found.mean < found.high
    assert not found.is_better
    assert not found.is_worse


def test_completions_of_one_file_count_as_one_observation():
    """Sixty completions in six files that rise and fall together say less than sixty in sixty."""
    gains = [0.3 if at // 10 % 2 else -0.1 for at in range(60)]
    base, adapter = [0.4] * 60, [0.4 + gain for gain in gains]

    def width(files):
        found = difference(
            run(Arm.BASE, base, files=files), run(Arm.ADAPTER, adapter, files=files), "edit_similarity"
        )
        return found.high - found.low

    assert width(lambda at: at // 10) > 2 * width(lambda at: at)


def test_runs_of_other_items_are_not_compared():
    with pytest.raises(ValueError, match="same items"):
        difference(run(Arm.BASE, [1.0]), run(Arm.ADAPTER, [1.0, 0.0]), "exact_match")


def test_under_no_effect_hardly_any_interval_leaves_zero_out():
    """1 - CONFIDENCE is 0.8 %: of 60 hardly ever more than 3."""
    draw = random.Random(7)
    missed = 0
    for seed in range(60):
        values = [draw.gauss(0.5, 0.2) for _ in range(20)]
        others = [draw.gauss(0.5, 0.2) for _ in range(20)]
        found = difference(run(Arm.BASE, values), run(Arm.BOTH, others), "edit_similarity", seed=seed)
        missed += found.is_better or found.is_worse
    assert missed <= 3


def test_one_file_alone_says_nothing():
    one = run(Arm.BASE, [0.1, 0.2], files=lambda at: 0), run(Arm.BOTH, [0.9, 0.9], files=lambda at: 0)
    found = difference(*one, "edit_similarity")
    assert (found.low, found.high) == (-1.0, 1.0)


def test_no_exact_match_anywhere_does_not_prove_that_there_never_is_one():
    found = difference(run(Arm.BASE, [0.1] * 20), run(Arm.BOTH, [0.1] * 20), "exact_match")
    assert found.low < 0 < found.high


def test_every_pair_of_arms_is_compared_once():
    assert len({frozenset(pair) for pair in COMPARED}) == 6
    runs = [run(arm, [0.1 * number]) for number, arm in enumerate(Arm)]
    assert differences(runs, "edit_similarity")[Arm.BOTH, Arm.BASE].mean == pytest.approx(0.3)


def test_a_run_survives_json():
    made = run(Arm.BOTH, [0.5, 1.0])
    assert Run.from_json(made.as_json()) == made
