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
    assert answer["assumed"]["items"] == 10


def test_the_answer_says_what_was_assumed(small: list[str]) -> None:
    told = CliRunner().invoke(app, [*small, "--effect", "0.001"]).stdout
    assert "assumed, not measured" in told.replace("\n", " ")
    assert "Too few files to see 0.1% reliably" in told.replace("\n", " ")


def test_a_recipe_of_reinforcement_is_judged_by_tasks() -> None:
    """As many tries of each as it says."""
    asked = [
        "gate",
        "simulate",
        "--recipe",
        "demo-marl",
        "--tracks",
        "10",
        "--rounds",
        "2",
        "--files",
        "12",
        "--json",
    ]
    answer = json.loads(CliRunner().invoke(app, asked).stdout)
    assert answer["judged_by"] == "tasks"
    assert answer["assumed"]["items"] == 12
    assert answer["assumed"]["samples"] >= 1
