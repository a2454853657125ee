"""`ratchet verdict` as a person sees it; what the process with the model does is in tests/integration."""

import io
import json

import pytest
from rich.console import Console

from services.cli import environment
from services.cli.judging import verdict
from services.trainer.recipes.recipe import Recipe
from services.trainer.verdict.answers import Answer, Arm, Run
from services.trainer.verdict.evidence import Champion
from services.trainer.verdict.report import Subject, document


@pytest.fixture
def found():
    runs = [
        Run(
            arm,
            tuple(Answer(f"f{at}.py:3", f"f{at}.py", 0.0, 0.1 * gain, 300, 20) for at in range(10)),
            (1.0, 2.0),
            3.0,
        )
        for gain, arm in enumerate(Arm)
    ]
    items = [{"name": f"f{at}.py:3", "kind": "line", "before": "", "wanted": ""} for at in range(10)]
    retrieval = {"windows": 1200, "index_seconds": 0.4, "ms_p50": 0.8, "ms_p90": 1.1, "snippets": 3.0}
    return document(Subject("demo", "round-0001", "m", "cpu", "time", 50.0, None), runs, retrieval, items)


@pytest.fixture
def champion(tmp_path):
    return Champion(tmp_path, Recipe(name="demo", base_model="./model"), {"round": 1})


def printed(renderable):
    out = io.StringIO()
    Console(file=out, width=160).print(renderable)
    return out.getvalue()


def test_the_table_has_a_row_an_arm_with_its_gain(found):
    rows = printed(verdict.table(found)).splitlines()
    assert rows[1].startswith(" base ")
    assert "30.0 % (+30.0 to +30.0)" in rows[4]


def test_the_words_are_the_recommendation_with_what_it_rests_on(found):
    said = printed(verdict.words(found))
    assert "10 completions of 10 held-out files, split by time" in said
    assert "Training: 50 s, 0.0050 s a completion over 10,000." in said
    assert "\nUse both.\n" in said


def test_page_and_json_are_kept(found, tmp_path):
    page = verdict.keep(found, tmp_path / "reports" / "demo")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(page.with_suffix(".json").read_text(encoding="utf-8")) == found
    assert sorted(path.name for path in page.parent.iterdir()) == ["verdict.html", "verdict.json"]


def test_the_process_is_sent_what_was_read_and_how_many_items(champion, monkeypatch, tmp_path):
    monkeypatch.setattr(verdict.modelprocess, "ask", lambda _environment, _module, sent: sent)
    sent = verdict.measured(environment.read({}, project=tmp_path), champion, {"rows": [1]}, 10)
    assert (sent["items"], sent["rows"]) == (10, [1])
    assert sent["recipe"]["name"] == "demo"
