"""The recommendation, rule by rule."""

from dataclasses import replace
from itertools import product

import pytest

from services.trainer.verdict.advice import Elsewhere, Evidence, recommend
from services.trainer.verdict.answers import COMPARED, Arm, Difference, Figures

NOISE, BETTER, WORSE = (
    Difference(0.0, -0.02, 0.02),
    Difference(0.1, 0.05, 0.15),
    Difference(-0.1, -0.15, -0.05),
)
B, R, A, AR = Arm.BASE, Arm.RETRIEVAL, Arm.ADAPTER, Arm.BOTH
FIGURES = Figures(0.2, 0.6, 1.0, 2.0, 500.0, 20.0, 0.1)


def evidence(better=(), worse=(), **others):
    found = {pair: BETTER if pair in better else WORSE if pair in worse else NOISE for pair in COMPARED}
    figures = {B: FIGURES, R: replace(FIGURES, device_seconds=0.3), A: FIGURES, AR: FIGURES}
    fine = Elsewhere("humaneval-loss", "nats", 0.001, -0.004, 0.02)
    return Evidence(found, figures, **{"files": 30, "training_seconds": 100.0, "elsewhere": fine, **others})


def said(made):
    return " ".join(recommend(made).reasons)


@pytest.mark.parametrize(
    ("better", "action"),
    [
        ((), "do not train"),
        (((A, R), (AR, R)), "do not train"),  # better than a retrieval that harms, not than the base
        (((R, B), (A, B)), "use retrieval"),
        (((R, B),), "use retrieval"),
        (((R, B), (A, B), (AR, B), (AR, A)), "use retrieval"),
        (((A, B), (A, R)), "use the adapter"),
        (((A, B),), "use the adapter"),
        (((R, B), (A, B), (A, R)), "use the adapter"),
        (((R, B), (A, B), (AR, B), (AR, A), (AR, R)), "use both"),
        (((A, B), (AR, B), (AR, A), (AR, R), (A, R)), "use both"),
        (((AR, B),), "use both"),
        (((A, B), (AR, B), (AR, A)), "use both"),
        (((R, B), (AR, B), (AR, R)), "use both"),
    ],
)
def test_what_is_recommended(better, action):
    assert recommend(evidence(better)).action == action


def every_outcome():
    for outcomes in product((NOISE, BETTER, WORSE), repeat=6):
        yield replace(evidence(), differences=dict(zip(COMPARED, outcomes, strict=True)))


def test_what_is_recommended_always_beats_the_base():
    arms = {"use retrieval": R, "use the adapter": A, "use both": AR}
    for made in every_outcome():
        arm = arms.get(recommend(made).action)
        assert arm is None or made.differences[arm, B].is_better


def test_training_is_never_recommended_where_retrieval_alone_does_as_well():
    for made in every_outcome():
        over = made.differences
        if over[R, B].is_better and not (over[A, R].is_better or over[AR, R].is_better):
            assert recommend(made).action == "use retrieval"


def test_not_training_is_recommended_exactly_where_nothing_beats_the_base():
    for made in every_outcome():
        nothing = not any(made.differences[arm, B].is_better for arm in (R, A, AR))
        assert (recommend(made).action == "do not train") == nothing


def test_few_files_make_no_recommendation():
    assert recommend(evidence(COMPARED, files=4)).action == "add more code first"


def test_an_adapter_that_does_harm_is_called_worse():
    assert "Adapter is worse than base: -10.0 points" in said(evidence(worse=((A, B),)))


def test_a_gain_that_too_few_items_cannot_rule_out_is_named():
    made = evidence()
    wide = {**made.differences, (AR, B): Difference(0.03, -0.01, 0.07)}
    assert "rule out a gain of +7.0 points by adapter + retrieval" in said(replace(made, differences=wide))
    assert "rule out" not in said(made)


def test_a_loss_elsewhere_is_said_with_what_the_recipe_accepts():
    lost = Elsewhere("humaneval", "rate", -0.012, -0.019, 0.02)
    assert (
        "Elsewhere it is worse: humaneval -1.20 points, at worst -1.90; the recipe accepts -2.00."
    ) in said(evidence(((A, B),), elsewhere=lost))


def test_no_loss_elsewhere_is_said_too():
    assert "Elsewhere it is no worse: humaneval-loss +0.10 %" in said(evidence(((A, B),)))


def test_it_is_said_when_nobody_measured_elsewhere():
    assert "Nobody measured" in said(evidence(((A, B),), elsewhere=None))


def test_training_is_earned_back_by_shorter_prompts():
    assert "100 s of the device, which 500 completions" in said(evidence(((A, B),)))


def test_training_is_not_earned_back_where_the_adapter_is_slower():
    made = evidence(((A, B),))
    slow = {**made.figures, A: replace(FIGURES, device_seconds=0.5)}
    assert "costs no less" in said(replace(made, figures=slow))
