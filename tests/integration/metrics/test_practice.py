"""The pages of a round in which a team practises, on a believable history, as the role of production."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from services.core.target import Target
from services.metrics.pages import curves
from tests.integration.metrics.test_rounds import client_of, read
from tests.metrics_history import TEAM
from tests.metrics_history.practice import HOSTILE_TEXT, ITERATIONS

ROUND = f"/rounds/{TEAM}/1"


@pytest.fixture(scope="module")
def client(shown_history: Target) -> Iterator[FlaskClient]:
    with client_of(shown_history) as client:
        yield client


def test_the_verdict_is_told_in_points_of_pass_rate(client: FlaskClient) -> None:
    text = read(client, ROUND)
    for said in (
        "✓ passed Solves more of the held-out tasks", "Pass rate gained over the base: +25.00 points",
        "Tasks solved by the base model 25.0 %", "Tasks solved by the candidate 50.0 %",
        f"Iterations {ITERATIONS} of {ITERATIONS}",
    ):  # fmt: skip
        assert said in text
    assert "bits per byte" not in text


def test_it_is_made_of_tasks_not_of_code(client: FlaskClient) -> None:
    text = read(client, ROUND)
    assert "What it practises 36 practised 24 held out 4 validation" in text
    assert "Tasks by task set" in text
    assert "36 tasks were practised in 468 episodes" in text
    assert "By language" not in text


@pytest.mark.parametrize("figure", ["reward", "passed", "kl", "entropy", "value", "written", "policy"])
def test_what_a_team_logs_is_drawn(client: FlaskClient, figure: str) -> None:
    page = client.get(ROUND).text
    told = client.get(f"{ROUND}/chart.json?figure={figure}").get_json()
    assert curves.BY_NAME[figure].title in page
    assert len(told["x"]) == len(told["series"][0]["points"]) > 2


@pytest.mark.parametrize("figure", ["kl", "entropy", "written"])
def test_each_agent_has_a_line_of_its_own(client: FlaskClient, figure: str) -> None:
    told = client.get(f"{ROUND}/chart.json?figure={figure}").get_json()
    assert [line["name"] for line in told["series"]] == ["analyzer", "coder"]


def test_what_the_agents_wrote_is_shown_and_does_nothing(client: FlaskClient) -> None:
    """Of the latest iteration first; characters that turn text are spelled out, markup is text."""
    page = client.get(ROUND).text
    assert page.index(f"Iteration {ITERATIONS}") < page.index("<h3>Iteration 1</h3>")
    assert "<script>document" not in page
    assert "\u202e" in HOSTILE_TEXT
    assert "\u202e" not in page
    assert 'Ignore the tests.<mark class="escape">\\u202e</mark>&lt;script&gt;' in page
    text = read(client, ROUND)
    assert "Keep the numbers above the limit" in text
    assert "What the tests said: wrong answer" in text


def test_its_team_is_told_on_the_pages_of_round_and_adapter(client: FlaskClient) -> None:
    for path in (ROUND, f"/adapters/{TEAM}/round-0001"):
        text = read(client, path)
        assert "The team analyzer Say in one sentence how to solve the task." in text
        assert "coder writes the program" in text
    assert "Roles analyzer , coder : one adapter each" in read(client, f"/adapters/{TEAM}/round-0001")


def test_a_release_of_a_team_has_a_receipt_of_tasks(client: FlaskClient) -> None:
    text = read(client, f"/adapters/{TEAM}/round-0001")
    assert "a line for each of 64 tasks" in text
    assert "Kind team" in text


def test_lists_tell_what_a_team_gained_in_its_own_unit(client: FlaskClient) -> None:
    assert "25.0 % → 50.0 % solved +25.0 points" in read(client, "/rounds", track=TEAM)
    listed = read(client, "/adapters", track=TEAM)
    assert "a team: analyzer, coder" in listed
    assert "+25.0 points against the base model" in listed
    assert "50.0 % of the held-out tasks solved" in listed


def test_the_overview_tells_what_the_team_gained(client: FlaskClient) -> None:
    assert "+25.0 points more of the tasks solved than by the base model" in read(client, "/")
