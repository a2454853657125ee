"""`ratchet promote|reject|rollback|pin|unpin` as a person runs them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.champions import promotions
from services.cli.environment import Environment
from services.core.db import Database
from services.core.errors import ConfigurationError, PromotionError
from services.core.target import Target
from tests.integration.cli.conftest import variables
from tests.integration.trainer.test_ledger import texts
from tests.integration.trainer.test_promotions import Life, rot
from tests.integration.trainer.test_round import rows

CLOSED = (
    "round 3 was under way and is closed: it continued from another champion; what it trained on waits for"
    " the next"
)


@pytest.fixture
def here(target: Target, tmp_path: Path) -> Environment:
    named = {**variables(target, tmp_path / "ingest", tmp_path / "home"), "ADAPTERS_DIR": str(tmp_path)}
    return environment.read(named, project=tmp_path)


@pytest.fixture
def life(database: Database, store: Callable[[list[str]], None], tmp_path: Path) -> Life:
    store(texts(40))
    life = Life(database, tmp_path, "demo")  # the track that RECIPE names
    life.round()
    life.round()
    return life


def test_a_rollback_says_what_it_did_and_how_long_it_took(
    here: Environment, life: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = promotions.rollback(here, None, None, "slower since")
    assert answer["seconds"] > 0
    assert (answer["before"], answer["champion"], life.current) == ("round-0002", "round-0001", "round-0001")
    assert life.trained() == {1}
    promotions.show(answer, as_json=False)
    assert "demo: round-0001 is the champion again" in capsys.readouterr().out
    promotions.show(answer, as_json=True)
    assert json.loads(capsys.readouterr().out)["reason"] == "slower since"
    (*_, row) = rows(life.database, "SELECT actor, reason FROM promotions ORDER BY id")
    assert row.reason == "slower since"
    assert row.actor


def test_every_move_is_told_in_words(here: Environment, life: Life) -> None:
    life.open()
    told = [
        promotions.pin(here, "demo", "round-0001", None),
        promotions.unpin(here, "demo", None),
        promotions.promote(here, "demo", "round-0002", None),
        promotions.reject(here, "demo", "round-0002", None),
    ]
    assert [line for answer in told for line in promotions.lines(answer) if "current" not in line] == [
        "demo: round-0001 is the champion now",
        "demo: round-0001 stays the champion whatever rounds bring: `ratchet unpin` ends it",
        CLOSED,
        "demo: round-0001 stays the champion until a round is better",
        "demo: round-0002 is the champion now",
        "demo: round-0001 is the champion again",
        "demo: round-0002 can never be the champion again",
    ]


def test_what_cannot_be_says_what_can(here: Environment, life: Life) -> None:
    with pytest.raises(PromotionError, match="has no adapter round-0009: did you mean round-000"):
        promotions.promote(here, None, "round-0009", None)
    with pytest.raises(ConfigurationError, match="there is no track other; tracks: demo"):
        promotions.rollback(here, "other", "base", None)


def test_a_rollback_to_files_that_rotted_goes_on_to_the_next(here: Environment, life: Life) -> None:
    """What `current` had moved to is read through, found damaged and left."""
    rot(life.dir / "round-0001")
    answer = promotions.rollback(here, None, None, None)
    assert (answer["champion"], answer["damaged"], life.current) == (None, ["round-0001"], None)
    assert promotions.lines(answer)[1] == (
        "round-0001 is damaged, and can never be the champion again: the base model is now"
    )
    assert life.trained() == set()
