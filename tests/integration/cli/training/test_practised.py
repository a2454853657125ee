"""`ratchet rounds|round|adapters|status` of a track in which a team practises, on a believable history."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.champions import adapters
from services.cli.environment import Environment
from services.cli.operating import status
from services.cli.training import one_round, rounds
from services.core.target import Target
from tests.integration.cli.conftest import variables
from tests.metrics_history import TEAM


@pytest.fixture
def here(history_as: Callable[[str], Target], tmp_path: Path) -> Environment:
    target = history_as("ratchet_metrics")
    return environment.read(variables(target, tmp_path / "ingest", tmp_path / "home"), project=tmp_path)


def test_one_round_says_who_practised_what_and_how_it_went(
    here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    one_round.run(here, 1, TEAM, as_json=False)
    said = capsys.readouterr().out
    for words in (
        "demo-marl, round 1: promoted", "team       analyzer, coder (writes the program)",
        "tasks      36 to practise, 4 for early stopping, 24 held out", "task sets  easy 64",
        "60 iterations, 480 episodes", "reward     ", "KL to base ", "pass rate  ",
        "held out   base 25.0 %, candidate 50.0 % of 24 tasks solved", "verdict    promoted (+25.0 pts):",
    ):  # fmt: skip
        assert words in said, words
    assert "bits per byte" not in said
    assert "languages" not in said


def test_as_json_it_has_the_figures_of_every_agent(
    here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    one_round.run(here, 1, TEAM, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert [agent["role"] for agent in told["team"]] == ["analyzer", "coder"]
    assert set(told["curves"]["train"][0]["roles"]) == {"analyzer", "coder"}
    assert told["practice"]["solved"] < told["practice"]["practised"]


def test_lists_tell_its_gain_in_points(here: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    rounds.run(here, TEAM, most=5, as_json=False)
    said = capsys.readouterr().out
    assert re.search(r"demo-marl +1  promoted .*\+25\.0 pts", said)
    assert "points of pass rate more, on held-out tasks" in said
    adapters.run(here, TEAM, most=5, as_json=False)
    listed = capsys.readouterr().out
    assert re.search(r"demo-marl/round-0001 .*\+25\.0 pts +50\.0 % .*a team: analyzer, coder", listed)


def test_status_names_the_champion_of_each_track(
    here: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    status.run(here, as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"champion of demo-marl round 1: .* of the held-out tasks solved", said)
