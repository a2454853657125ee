"""The verdict as a document and as a page."""

import json
import random

import pytest

from services.trainer.verdict.advice import Elsewhere
from services.trainer.verdict.answers import Answer, Arm, Run
from services.trainer.verdict.report import Subject, against_base, document, page

RETRIEVAL = {"windows": 1200, "index_seconds": 0.4, "ms_p50": 0.8, "ms_p90": 1.1, "snippets": 3.0}
HOSTILE = "</pre><script>alert(1)</script>"


@pytest.fixture
def found():
    draw = random.Random(0)
    runs = []
    for gain, arm in enumerate(Arm):
        answers = tuple(
            Answer(f"f{at}.py:3", f"f{at}.py", 0.0, 0.2 * gain + 0.1 * draw.random(), 300, 20, HOSTILE)
            for at in range(20)
        )
        runs.append(Run(arm, answers, (1.0, 2.0), 3.0))
    items = [
        {"name": f"f{at}.py:3", "kind": "block", "before": "def f():", "wanted": HOSTILE} for at in range(20)
    ]
    elsewhere = Elsewhere("humaneval-loss", "nats", 0.0, -0.01, 0.02)
    subject = Subject("demo", "round-0001", "model", "cpu", "cluster", 50.0, elsewhere)
    return document(subject, runs, RETRIEVAL, items)


def test_it_is_json(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_it_recommends_from_its_own_figures(found):
    assert found["recommendation"]["action"] == "use both"
    assert against_base(found, Arm.BOTH, "edit_similarity").mean == pytest.approx(0.6, abs=0.05)
    assert against_base(found, Arm.BASE, "edit_similarity") is None


def test_training_is_spread_over_completions(found):
    assert found["training_seconds_per_completion"] == pytest.approx(50 / found["amortised_over"])


def test_the_page_escapes_what_models_wrote(found):
    made = page(found)
    assert "<script" not in made
    assert "&lt;script&gt;" in made


def test_the_page_says_what_is_recommended(found):
    assert "Use both." in page(found)
