"""`ratchet gate simulate`."""

import json

import pytest
from typer.testing import CliRunner

from services.cli.main import app


@pytest.fixture
def small() -> list[str]:
    return ["gate", "simulate", "--recipe", "demo", "--tracks", "10", "--rounds", "3", "--files", "10"]


def test_the_answer_is_json(small: list[str]) -> None:
    answer = json.loads(CliRunner().invoke(app, [*small, "--json"]).stdout)
    assert 0 <= answer["false_promotion"] <= 1
    assert 0 <= answer["power"] <= 1
    assert (answer["recipe"], answer["tracks"], answer["rounds"]) == ("demo", 10, 3)
    assert answer["assumed"]["files"] == 10


def test_the_answer_says_what_was_assumed(small: list[str]) -> None:
    told = CliRunner().invoke(app, [*small, "--effect", "0.001"]).stdout
    assert "assumed of your code, not measured" in told.replace("\n", " ")
    assert "Too few files to see 0.1% reliably" in told.replace("\n", " ")
