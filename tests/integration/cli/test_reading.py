"""`ratchet rounds|round|adapters|rejections|train|status|alerts` on a database with some history."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.champions import adapters
from services.cli.corpus import rejections
from services.cli.environment import Environment
from services.cli.operating import status
from services.cli.training import one_round, rounds, waiting
from services.core import db
from services.core.errors import ConfigurationError
from services.core.target import Target
from tests.conftest import administer
from tests.integration.cli.conftest import variables
from tests.integration.metrics import rows


@pytest.fixture(scope="module")
def kept(server: Target, template: str) -> Iterator[Target]:
    """One database with a history for all tests that only read it."""
    administer(server, f"CREATE DATABASE read_by_commands TEMPLATE {template} STRATEGY file_copy")
    login = server.model_copy(update={"dbname": "read_by_commands"})
    pool = db.Database(login, application="test")
    rows.fill(pool, contents=60)
    pool.close()
    yield login
    administer(server, "DROP DATABASE read_by_commands WITH (FORCE)")


@pytest.fixture
def here(kept: Target, tmp_path: Path) -> Environment:
    """A command's environment on it; the trainer's heartbeat is fresh."""
    pool = db.Database(kept, application="test")
    write(pool, "UPDATE heartbeats SET beat_at = now()")
    pool.close()
    return environment.read(variables(kept, tmp_path / "ingest", tmp_path / "home"), project=tmp_path)


@pytest.fixture
def history(database) -> None:
    """The same in a database of one's own, to be changed."""
    rows.fill(database, contents=20)


def write(database, statement: str, *values) -> None:
    with database.transaction() as tx:
        tx._cursor.execute(statement, values)


def shown(capsys) -> str:
    return str(capsys.readouterr().out)


# rounds


def test_rounds_come_newest_first_with_how_each_ended(here: Environment, capsys) -> None:
    rounds.run(here, None, most=2, as_json=False)
    head, running, refused, *_ = shown(capsys).splitlines()
    assert head.split() == ["track", "round", "state", "began", "took", "tokens", "gain", "why"]
    assert running.split()[:3] == ["demo", "3", "open"]
    assert re.search(r"demo +2  refused .* \+0.19 %  0.2 % fewer bits", refused)


def test_rounds_as_json_are_one_document(here: Environment, capsys) -> None:
    rounds.run(here, "demo", most=20, as_json=True)
    told = json.loads(shown(capsys))["rounds"]
    assert [(row["number"], row["state"]) for row in told] == [(3, "open"), (2, "refused"), (1, "promoted")]


def test_without_rounds_it_says_what_to_do(settings: Environment, capsys) -> None:
    rounds.run(settings, None, most=20, as_json=False)
    assert "no round yet: `ratchet train`" in shown(capsys)


def test_a_track_that_is_none_is_an_error_with_those_there_are(here: Environment) -> None:
    with pytest.raises(ConfigurationError, match="no track is called 'demmo', there is demo"):
        rounds.run(here, "demmo", most=20, as_json=False)
    with pytest.raises(ConfigurationError, match="no track is called"):
        adapters.run(here, "x\x1b[2J", most=20, as_json=False)


# one round


def test_a_round_says_what_it_learned_from_how_and_why_it_was_judged_so(here: Environment, capsys) -> None:
    one_round.run(here, 1, None, as_json=False)
    said = shown(capsys)
    for words in (
        "demo, round 1: promoted",
        "from       the base model",
        "28 new, 2 held out",
        "languages  python ",
        "240 steps, 1.92k samples",
        "1.980 → 1.045",
        "verdict    promoted (+7.41 %): 7.4 % fewer bits",
        "the track's first round",
    ):
        assert words in said, words


def test_a_round_names_what_of_its_recipe_is_new(history, database, settings: Environment, capsys) -> None:
    write(database, "UPDATE rounds SET recipe = recipe || '{\"learning_rate\": 0.001}' WHERE number = 2")
    one_round.run(settings, 2, "demo", as_json=False)
    assert "recipe     learning_rate: 0.001 (round 1: 0.0002)" in shown(capsys)
    one_round.run(settings, 2, "demo", as_json=True)
    told = json.loads(shown(capsys))
    assert told["changed"] == [{"field": "learning_rate", "before": "0.0002", "after": "0.001"}]


def test_without_a_number_it_is_the_newest_and_shows_how_far_it_is(here: Environment, capsys) -> None:
    one_round.run(here, None, None, as_json=False)
    said = shown(capsys)
    assert "demo, round 3: open" in said
    assert "step 84/240" in said
    assert "verdict    none yet" in said


def test_a_round_that_never_was_is_an_error(here: Environment) -> None:
    with pytest.raises(ConfigurationError, match="demo has no round 9: its newest is 3"):
        one_round.run(here, 9, None, as_json=False)


def test_losses_that_are_not_finite_leave_gaps_and_valid_json(
    history, database, settings: Environment, capsys
) -> None:
    write(database, "UPDATE progress SET metrics = '{\"loss\": null}' WHERE step %% 2 = 0 AND kind = 'train'")
    one_round.run(settings, 1, None, as_json=True)
    assert "NaN" not in json.dumps(json.loads(shown(capsys))["curves"])
    one_round.run(settings, 1, None, as_json=False)
    assert "→" in shown(capsys)


# adapters


def test_adapters_name_the_champion_and_whether_its_files_are_here(here: Environment, capsys) -> None:
    adapters.run(here, None, most=20, as_json=False)
    assert re.search(r"demo/round-0001 .* \+7.41 % .* base +champion, its files are not here", shown(capsys))


def test_a_pinned_champion_and_a_rejected_adapter_are_told(
    history, database, settings: Environment, tmp_path: Path, capsys
) -> None:
    write(
        database,
        "INSERT INTO promotions (track, adapter_id, reason, kind, actor)"
        " SELECT track, id, 'so', unnest(ARRAY['pinned', 'rejected']), 'me' FROM adapters",
    )
    adapters.run(settings, "demo", most=20, as_json=True)
    (told,) = json.loads(shown(capsys))["adapters"]
    assert (told["champion"], told["pinned"], told["rejected"]) == (True, True, True)
    assert adapters.state(told).startswith("champion, pinned, rejected")


# rejections


def test_rejections_come_page_by_page(here: Environment, capsys) -> None:
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        rejections.run(here, reason=None, source=None, most=4, after=after, as_json=True)
        page = json.loads(shown(capsys))
        seen += [row["path"] for row in page["rejections"]]
        after = page["next_after"]
    assert seen == [f"no/{number}" for number in range(15)]


def test_a_reason_is_explained_where_it_first_stands(here: Environment, capsys) -> None:
    rejections.run(here, reason="too_short", source="werkzeug", most=2, after=0, as_json=False)
    first, why, second, more = shown(capsys).splitlines()
    assert first == "werkzeug/no/0: too_short"
    assert why.strip() == "too_short: too few characters to complete"
    assert second == "werkzeug/no/7: too_short"
    assert more.startswith("there are more: add --after ")


def test_a_reason_or_source_that_is_none_is_an_error(here: Environment) -> None:
    with pytest.raises(ConfigurationError, match=r"too_shrt.*expected too_short"):
        rejections.run(here, reason="too_shrt", source=None, most=5, after=0, as_json=False)
    with pytest.raises(ConfigurationError, match="no source is called 'flask'"):
        rejections.run(here, reason=None, source="flask", most=5, after=0, as_json=False)
    with pytest.raises(ConfigurationError, match="'werkzeg', expected werkzeug: `ratchet sources`"):
        rejections.run(here, reason=None, source="werkzeg", most=5, after=0, as_json=False)


# what the next round waits for


def test_train_says_what_the_next_round_waits_for(database, settings: Environment, capsys) -> None:
    """By the trainer's own MIN_NEW_FILES, which may not be that of this shell."""
    rows.fill(database, contents=60, running=False)
    waiting.run(settings, None, as_json=False)
    counted, hint = shown(capsys).splitlines()
    assert re.fullmatch(r"demo: \d+ new contents score 70 or more; a round starts by itself at 200", counted)
    assert hint == "`ratchet train --now` starts one with what there is"


def test_train_says_that_a_track_is_paused(history, database, settings: Environment, capsys) -> None:
    write(database, "UPDATE tracks SET paused_at = now(), paused_by = 'me', pause_reason = 'lunch'")
    waiting.run(settings, None, as_json=False)
    assert "by me (lunch): `ratchet resume` ends it" in shown(capsys)


# status


def test_status_of_a_database_that_is_named_needs_no_password_kept_here(here: Environment, capsys) -> None:
    """As in a container: then it reads as whom the environment names."""
    status.run(here, as_json=False)
    said = shown(capsys)
    assert re.search("^database +well: answers", said, re.MULTILINE)
    assert "step 84/240" in said


def test_watching_prints_what_changes_until_ctrl_c(here: Environment, capsys, monkeypatch) -> None:
    looks = iter([None, KeyboardInterrupt])

    def sleep(_seconds: float) -> None:
        if (stop := next(looks)) is not None:
            raise stop

    monkeypatch.setattr(status.time, "sleep", sleep)
    status.watch(here, as_json=True)
    told = [json.loads(line) for line in shown(capsys).splitlines()]
    assert [each["running_round"]["number"] for each in told] == [3, 3]
