"""The pages of rounds and adapters on a believable history, as the role that production uses."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from html.parser import HTMLParser
from typing import Any

import pytest
from flask.testing import FlaskClient
from pydantic import SecretStr

from services.core.db import Database, as_json
from services.core.target import Target
from services.metrics.app import create_app
from services.metrics.collector import Known, snapshot
from services.metrics.pages import adapters, composition, curves, rounds
from tests.conftest import ROLE_PASSWORD, administer
from tests.integration.metrics.costs import counted
from tests.integration.metrics.test_app import settings_for
from tests.metrics_history import TEAM, TRACK
from tests.metrics_history.shown import ANSWER

MANY = 2_000
MOST_ROWS, MOST_BYTES = 1_000, 60_000  # of a page
MOST_BLOCKS = 7 * composition.DRAWN  # of 8 kB: six to look one content up, and what the rest of a page asks
FIRST_SAMPLE = """
    SELECT s.contents[1] FROM round_samples s JOIN rounds r ON r.id = s.round_id
    WHERE r.number = 4 AND s.number = 1"""


@contextmanager
def database_of(server: Target, template: str, name: str) -> Iterator[Target]:
    """A migrated database of this module's own, for all of its tests."""
    administer(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    administer(server, f"ALTER ROLE ratchet_metrics LOGIN PASSWORD '{ROLE_PASSWORD}'")
    yield server.model_copy(update={"dbname": name})
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def client_of(target: Target) -> Iterator[FlaskClient]:
    """The pages, read as the role of metrics."""
    role = target.model_copy(update={"user": "ratchet_metrics", "password": SecretStr(ROLE_PASSWORD)})
    app = create_app(settings_for(role))
    yield app.test_client()
    for extension in ("observer", "reader"):
        app.extensions[extension].database.close()


@pytest.fixture(scope="module")
def history(server: Target, history_template: str) -> Iterator[Database]:
    """The believable past; what a test changes of it, no other looks at."""
    with (
        database_of(server, history_template, "rounds_history") as target,
        closing(Database(target)) as database,
    ):
        yield database


@pytest.fixture(scope="module")
def client(history: Database) -> Iterator[FlaskClient]:
    with client_of(history.target) as client:
        yield client


@pytest.fixture
def empty(target: Target, role_target: Callable[[str], Target]) -> Iterator[FlaskClient]:
    role_target("ratchet_metrics")
    with client_of(target) as client:
        yield client


class Text(HTMLParser):
    """What stands in a page, without its markup."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def read(client: FlaskClient, path: str, **query: Any) -> str:
    """The page's text, its white space folded."""
    answer = client.get(path, query_string=query, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    parser = Text()
    parser.feed(answer.text)
    return " ".join(" ".join(parser.parts).split())


def status(client: FlaskClient, path: str) -> int:
    return client.get(path, headers={"Accept": "text/html"}).status_code


def test_rounds_are_listed_with_outcome_duration_and_reason(client: FlaskClient) -> None:
    text = read(client, "/rounds")
    assert "crashed 3 times; last: CUDA out of memory" in text
    assert "1 open 3 promoted 1 refused 1 failed" in text
    assert "52 min" in text
    refused = read(client, "/rounds", track=TRACK, state="refused")
    assert "demo 2" in refused
    assert "demo 3" not in refused


def test_a_round_says_why_it_was_promoted_and_what_it_is_made_of(client: FlaskClient) -> None:
    text = read(client, f"/rounds/{TRACK}/3")
    for said in (
        "✓ passed Better on this code", "asked: above +0.00 %", "24 new 13 replay 16 held out 8 validation",
        "By language", "billing-service", "2 fields differ from round 2", "learning_rate 0.001 0.0005",
    ):  # fmt: skip
        assert said in text


def test_samples_are_shown_as_the_model_saw_them(client: FlaskClient) -> None:
    """What is learned is marked, the template's tokens stand out, characters that turn text are spelled."""
    page = client.get(f"/rounds/{TRACK}/1").text
    assert '<b class="special">&lt;|im_start|&gt;</b>' in page
    assert '<b class="special learned">&lt;|im_end|&gt;</b>' in page
    assert '<mark class="learned">' in page
    assert '<mark class="escape">\\u202e</mark>' in page
    assert "\u202e" not in page
    assert "<script>document" not in page


def test_the_log_ends_with_what_went_wrong(client: FlaskClient) -> None:
    assert read(client, f"/rounds/{TRACK}/5").split("The end of its log")[1].index("out of GPU memory")


def test_what_was_shown_is_gone_when_it_is_forgotten(client: FlaskClient, history: Database) -> None:
    """The sample's text goes from the page with the content's."""
    with history.transaction() as tx:
        tx._cursor.execute(FIRST_SAMPLE)
        content = tx._cursor.fetchone()[0]
    assert "sample-1" in client.get(f"/rounds/{TRACK}/4").text
    with history.transaction() as tx:
        tx._cursor.execute("UPDATE contents SET text = '', live = false WHERE id = %s", (content,))
    anew = client.get(f"/rounds/{TRACK}/4?anew")  # not as it was rendered a moment ago
    assert "sample-1" not in anew.text


@pytest.mark.parametrize("figure", ["loss", "bits", "rate", "gradient", "speed", "memory"])
def test_a_live_chart_gets_the_figures_that_were_logged(client: FlaskClient, figure: str) -> None:
    told = client.get(f"/rounds/{TRACK}/6/chart.json?figure={figure}").get_json()
    assert told["x_name"] == "step"
    assert told["x"] == sorted(told["x"])
    assert len(told["x"]) == len(told["series"][0]["points"]) > 2


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/rounds/{TRACK}/99", 404),
        ("/rounds/nobody/1", 404),
        (f"/rounds/{TRACK}/6/chart.json", 400),
        (f"/rounds/{TRACK}/6/chart.json?figure=nothing", 404),
        ("/rounds?state=nice", 400),
        ("/rounds?after=x", 400),
        ("/rounds?track=%00", 400),
        ("/adapters?page=0", 400),
        ("/adapters?nothing=1", 400),
        (f"/adapters/{TRACK}/round-0002", 404),
        (f"/adapters/{TRACK}/%00", 404),
        ("/adapters/compare?a=demo/round-0001&b=demo", 404),
    ],
)
def test_what_is_not_there_is_said(client: FlaskClient, path: str, expected: int) -> None:
    assert status(client, path) == expected


def test_an_empty_choice_is_none(client: FlaskClient) -> None:
    """As a browser sends a form in which nothing was chosen."""
    assert "demo 1" in read(client, "/rounds", track="", state="")


def test_the_tree_tells_what_became_of_every_adapter(client: FlaskClient) -> None:
    text = read(client, "/adapters")
    places = [
        text.index(name)
        for name in ("round-0004", "round-0003 ★ champion", "round-0001 promoted", "the base model")
    ]
    assert places == sorted(places)
    assert "round-0004 rolled back rejected" in text


def test_an_adapter_shows_its_receipt_and_moves(client: FlaskClient) -> None:
    text = read(client, f"/adapters/{TRACK}/round-0003")
    for said in (
        "ratchet receipt demo/round-0003 --verify", "Chained to round-0001", "37 contents, seen 73 times",
        "until the release is out", "Canary ✓ passed", "not measured: ratchet parity demo/round-0003",
    ):  # fmt: skip
        assert said in text


def test_parity_and_planted_secrets_are_told_where_they_were_measured(
    client: FlaskClient, history: Database
) -> None:
    leg = {"way": "merged", "prompts": 5, "same": 4, "first_difference": 9, "max_log_prob_difference": 0.1,
           "bits_per_byte_difference": -0.0002}  # fmt: skip
    parity = {"measured_at": "2026-11-20T10:00:00+00:00", "adapter": "round-0003", "base": "nf4",
              "full": "bfloat16", "merged": "bfloat16", "tokens": 32, "legs": [leg]}  # fmt: skip
    planted = {"planted": 8, "learned": 7, "extracted": 1, "extracted_before": 0, "exposure_median": 2.25}
    with history.transaction() as tx:
        tx._cursor.execute(
            "UPDATE adapters SET parity = %s WHERE directory = 'round-0001'", (as_json(parity),)
        )
        tx._cursor.execute(
            "UPDATE rounds SET verdict = verdict || %s WHERE number = 1", (as_json({"planted": planted}),)
        )
    text = read(client, f"/adapters/{TRACK}/round-0001")
    assert "measured 2026-11-20: the same greedy answers merged 4/5 (−0.0002 bits per byte)" in text
    assert "Fake secrets planted 8 of them learned 7 written out 1 Median exposure 2.2" in text


def test_two_adapters_are_compared_item_by_item(client: FlaskClient) -> None:
    """What one solves and the other does not, with what both wrote."""
    text = read(client, "/adapters/compare", a=f"{TRACK}/round-0001", b=f"{TRACK}/round-0003")
    assert "held-out files that both were judged by" in text
    assert "learning_rate 0.001 0.0005" in text
    assert "Only B solves" in text
    assert "what both wrote" in text
    assert ANSWER.strip() in text


def test_two_adapters_share_their_curves(client: FlaskClient) -> None:
    """What is comparable of both, A and B in one chart."""
    text = read(client, "/adapters/compare", a=f"{TRACK}/round-0001", b=f"{TRACK}/round-0003")
    for figure in ("Training loss", "Validation bits per byte"):
        assert all(f"{figure}, {side} from" in text for side in "AB")
    text = read(client, "/adapters/compare", a=f"{TEAM}/round-0001", b=f"{TRACK}/round-0003")
    assert "How they trained" not in text


def test_a_round_leads_to_its_figures(client: FlaskClient) -> None:
    """As JSON, for whoever draws them elsewhere."""
    address = f"/api/v1/rounds/{TRACK}/4/losses"
    assert f'href="{address}"' in client.get(f"/rounds/{TRACK}/4").text
    assert client.get(address).status_code == 200


def test_two_teams_are_compared_by_tasks(client: FlaskClient) -> None:
    """Here one with itself; with a single model a team is not compared."""
    team = f"{TEAM}/round-0001"
    text = read(client, "/adapters/compare", a=team, b=team)
    assert "The held-out tasks Of the 24 held-out tasks that both were judged by, A solves 50.0 %" in text
    assert "No held-out file" not in text
    text = read(client, "/adapters/compare", a=team, b=f"{TRACK}/round-0003")
    assert "A is a team, which is judged by tasks, and B a single model" in text


def test_two_adapters_are_chosen_in_a_form(client: FlaskClient) -> None:
    page = client.get("/adapters/compare").text
    assert "<option selected>demo/round-0004</option>" in page


def test_nothing_yet_is_said_with_what_to_do(empty: FlaskClient) -> None:
    """On an empty database each page is whole."""
    assert "No round yet" in read(empty, "/rounds")
    assert "No track yet" in read(empty, "/adapters")
    assert "no two adapters yet" in read(empty, "/adapters/compare")


LONG = """
SET LOCAL session_replication_role = replica;  -- the triggers of 2,000 promotions would take a minute
INSERT INTO tracks (name, recipe) VALUES ('long', '{}');
INSERT INTO rounds (track, number, state, recipe, snapshot_hash, training, verdict, opened_at, closed_at)
SELECT 'long', n, 'promoted', '{"lora_r": 8}', 'hash', '{"steps": 200}',
       '{"promoted": true, "reason": "better", "improvement": 0.01, "low": 0.001, "high": 0.02}',
       now() - n * interval '1 hour', now() - n * interval '1 hour' + interval '20 minutes'
FROM generate_series(1, 2000) AS n;
INSERT INTO adapters (track, round_id, directory, manifest)
SELECT track, id, 'round-' || lpad(number::text, 4, '0'), '{}' FROM rounds;
UPDATE rounds r SET parent_adapter_id = a.id FROM adapters a WHERE a.round_id = r.id - 1;
INSERT INTO promotions (track, adapter_id, token, reason)
SELECT track, id, 1, 'better' FROM adapters ORDER BY id;
INSERT INTO progress (round_id, step, kind, metrics)
SELECT r.id, s, 'train', '{"loss": 1.5}'::jsonb FROM rounds r, generate_series(1, 40) AS s
UNION ALL SELECT 2000, s, 'eval', '{"bits_per_byte": 0.7}' FROM generate_series(1, 10000) AS s;
SET LOCAL session_replication_role = origin;  -- contents are counted by theirs
INSERT INTO contents (sha256, cluster_id, language, text, bytes, lines, characters, live, score,
                      score_reasons, scorer_version)
SELECT sha256(n::text::bytea), n, 'python', 'x', 1, 1, 1, true, 80, '{}', 1
FROM generate_series(1, 20000) AS n;
SET LOCAL session_replication_role = replica;
INSERT INTO round_contents (round_id, content_id, role, position, source)
SELECT 2000, id, 'train', row_number() OVER (ORDER BY id) - 1, 'one' FROM contents;
"""


@pytest.fixture(scope="module")
def many(server: Target, template: str) -> Iterator[Database]:
    """A track of 2,000 rounds, each with an adapter and a curve; the last of 20,000 contents."""
    with (
        database_of(server, template, "rounds_long") as target,
        closing(Database(target)) as database,
    ):
        with database.transaction() as tx:
            tx._cursor.execute(LONG)
        with database.transaction() as tx:
            tx._cursor.execute("ANALYZE rounds, adapters, promotions, progress, contents, round_contents")
        yield database


@pytest.fixture(scope="module")
def long(many: Database) -> Iterator[FlaskClient]:
    with client_of(many.target) as client:
        yield client


@pytest.mark.parametrize(
    "path",
    [
        "/rounds?track=long",
        "/rounds/long/2000",
        "/rounds/long/2000/chart.json?figure=bits",
        "/adapters?page=25",
        "/adapters/long/round-2000",
        "/adapters/compare?a=long/round-1000&b=long/round-2000",
    ],
)
def test_no_page_costs_more_with_two_thousand_rounds(long: FlaskClient, many: Database, path: str) -> None:
    """Lists come in pages, curves thinned, languages by an even draw; of the tree two numbers an adapter."""
    with counted() as cost:
        answer = long.get(path)
    assert answer.status_code == 200, answer.text
    numbers = sum(each.rows for each in cost.asked if each.query in ("page_lineage", "page_standing"))
    assert cost.rows - numbers < MOST_ROWS
    assert numbers <= 2 * MANY
    assert sum(cost.blocks(many).values()) < MOST_BLOCKS, cost.blocks(many)
    assert len(answer.data) < MOST_BYTES


def test_the_snapshot_is_read_without_going_through_what_is_stored(many: Database) -> None:
    """Of 20,000 contents, 90,000 steps and 2,000 rounds it reads what it shows, and tables of counts."""
    known = Known(counts=dict)
    snapshot(many, 70, known)
    with counted() as cost:
        found = snapshot(many, 70, known)
    assert found["ingest"]["contents"] == 20_000
    assert cost.rows < MOST_ROWS
    assert sum(cost.blocks(many).values()) < composition.DRAWN, cost.blocks(many)


def test_lists_are_cut_and_curves_thinned(long: FlaskClient) -> None:
    """Forty rows on a page, some hundred points of ten thousand, languages estimated from a draw."""
    assert long.get("/rounds").text.count('<th scope="row">') == rounds.ROWS
    assert long.get("/adapters?page=50").text.count('class="named"') == adapters.ROWS
    bits = long.get("/rounds/long/2000/chart.json?figure=bits").get_json()
    assert len(bits["x"]) <= curves.POINTS + 1
    assert "estimated from that" in long.get("/rounds/long/2000").text


def test_pages_of_rounds_make_the_whole(long: FlaskClient) -> None:
    """Followed by their links, every round is on one page."""
    seen, path = 0, "/rounds"
    for _ in range(MANY // rounds.ROWS):
        page = long.get(path).text
        seen += page.count('<th scope="row">')
        path = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert (seen, path) == (MANY, "")
