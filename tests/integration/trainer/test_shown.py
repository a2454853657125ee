# ruff: noqa: F811  # `here` is another module's fixture
"""What a round keeps for its page, on a real PostgreSQL: bounded, redacted, and gone when it is forgotten."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg2
import pytest

from services.core.db import Database
from services.core.settings import REDACTED, Settings
from services.core.target import Target
from services.trainer import round_log
from services.trainer.round_log import LINE_CHARACTERS, LINES, RoundLog
from services.trainer.shown_samples import Run, ShownSample
from tests.integration.metrics.server import wait_until
from tests.integration.trainer.test_forget import (  # noqa: F401
    Here,
    content_of,
    here,
    tables_with,
)
from tests.integration.trainer.test_round import rows

QUOTED = "a line that nobody else wrote"


def sample(*contents: int) -> ShownSample:
    return ShownSample(
        contents, "file", 9, 8, (Run("<s>", special=True), Run(QUOTED, learned=True, left_out=7))
    )


def kept(database: Database) -> list[Any]:
    return rows(database, "SELECT * FROM round_samples ORDER BY round_id, number")


def test_a_sample_is_kept_as_it_was_seen(here: Here) -> None:
    """Once: a round that is taken up again keeps what it had."""
    for _ in range(2):
        here.life.ledger.record_samples(1, [sample(1), sample(2, 3)])
    first, second = kept(here.database)
    assert first.runs == [{"text": "<s>", "special": True}, {"text": QUOTED, "learned": True, "left_out": 7}]
    assert (second.contents, second.tokens, second.learned) == ([2, 3], 9, 8)


def test_a_sample_goes_when_any_of_what_it_quotes_is_forgotten(here: Here) -> None:
    """Of every round that showed it; others stay."""
    path = here.path_of_round(1)
    gone = content_of(here.database, path).id
    other = next(
        row.id for row in rows(here.database, "SELECT id FROM contents ORDER BY id") if row.id != gone
    )
    here.life.ledger.record_samples(1, [sample(*sorted((gone, other))), sample(other)])
    here.life.ledger.record_samples(2, [sample(gone)])
    here.forget(path)
    assert [(row.round_id, row.number, row.contents) for row in kept(here.database)] == [(1, 2, [other])]


def test_no_table_holds_what_only_a_sample_showed(here: Here) -> None:
    path = here.path_of_round(1)
    here.life.ledger.record_samples(1, [sample(content_of(here.database, path).id)])
    assert tables_with(here.database, QUOTED) == ["round_samples.runs"]
    here.forget(path)
    assert tables_with(here.database, QUOTED) == []


def test_a_sample_of_what_was_forgotten_is_not_kept(here: Here) -> None:
    """A round that runs has its samples in memory: what is forgotten meanwhile does not come back."""
    path = here.path_of_round(1)
    gone = content_of(here.database, path).id
    here.forget(path)
    here.life.ledger.record_samples(2, [sample(gone)])
    assert kept(here.database) == []


def test_a_sample_and_a_forgetting_at_once_leave_no_sample(here: Here, target: Target) -> None:
    """The text is being erased while the sample is stored: it waits, and is not kept."""
    with closing(psycopg2.connect(**_login(target))) as eraser, eraser.cursor() as cursor:
        cursor.execute("UPDATE contents SET text = '', live = false WHERE id = 1")
        storing = threading.Thread(target=here.life.ledger.record_samples, args=(1, [sample(1)]))
        storing.start()
        waiting = (
            "SELECT FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO round_samples%'"
        )
        wait_until(lambda: bool(rows(here.database, waiting)))
        eraser.commit()
        storing.join()
    assert kept(here.database) == []


def _login(target: Target) -> dict[str, Any]:
    return {
        "host": target.host, "port": target.port, "dbname": target.dbname, "user": target.user,
        "password": target.password.get_secret_value(),
    }  # fmt: skip


def alone(handler: logging.Handler) -> logging.Logger:
    """A logger that tells this handler and nobody else."""
    log = logging.getLogger("a round")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    return log


@pytest.fixture
def logger(here: Here, target: Target) -> Iterator[Callable[..., None]]:
    """Logs through a handler of its own that writes at once; all is written when the test ends it."""
    database = Database(target, application="round log", min_conn=0, max_conn=1)
    handler = RoundLog(database, ["hunter2"], period=0.01)
    log = alone(handler)

    def say(*lines: str, end: bool = False, **extra: Any) -> None:
        for line in lines:
            log.info(line, extra=extra)
        if end:
            handler.close()

    yield say
    handler.close()
    log.removeHandler(handler)


def written(database: Database) -> list[Any]:
    return rows(database, "SELECT * FROM round_log ORDER BY id")


def test_lines_of_a_round_are_kept_also_those_before_it_had_a_number(
    here: Here,
    logger: Callable[..., None],
) -> None:
    logger("it begins")
    logger("round-0001", round_id=1)
    logger("it ends", end=True)
    assert [(row.round_id, row.line) for row in written(here.database)] == [
        (1, "it begins"), (1, "round-0001"), (1, "it ends"),
    ]  # fmt: skip


def test_only_the_end_of_a_long_log_is_kept(here: Here, logger: Callable[..., None]) -> None:
    """The last 200 lines, however they were written; a long line without its middle."""
    logger("first", round_id=1)
    wait_until(lambda: len(written(here.database)) == 1)
    logger(*[f"line {number}" for number in range(150)])
    wait_until(lambda: len(written(here.database)) == 151)
    logger(*[f"again {number}" for number in range(99)], "x" * 5000, end=True)
    lines = [row.line for row in written(here.database)]
    assert len(lines) == LINES
    assert lines[0] == "line 50"
    assert len(lines[-1]) == LINE_CHARACTERS


def test_no_secret_and_no_control_is_in_it(here: Here, logger: Callable[..., None]) -> None:
    logger("password hunter2 for postgresql://me:other@host/db\x00\x1b[31m", end=True, round_id=1)
    (row,) = written(here.database)
    assert row.line == rf"password {REDACTED} for postgresql://me:{REDACTED}@host/db\x00\x1b[31m"


def test_a_database_that_is_away_costs_lines_and_nothing_else(here: Here) -> None:
    """No error, no waiting beyond a moment; what came before is written when it is back."""

    class Away:
        is_back = False

        def transaction(self) -> Any:
            if not self.is_back:
                raise ConnectionError("away")
            return here.database.transaction()

        def close(self) -> None:
            pass

    away: Any = Away()
    handler = RoundLog(away, (), period=0.01)
    log = alone(handler)
    for number in range(LINES + 50):
        log.info("line %d", number, extra={"round_id": 1})
    away.is_back = True
    handler.close()
    log.removeHandler(handler)
    assert [row.line for row in written(here.database)] == [f"line {number}" for number in range(50, 250)]


def test_what_is_stored_is_bounded_whoever_stores_it(here: Here) -> None:
    """By the tables themselves: 8 samples of 4 kB, lines of 1,000 characters."""
    too_much = [
        "INSERT INTO round_samples VALUES (1, 9, '{1}', 'file', 1, 1, '[]')",
        "INSERT INTO round_samples VALUES (1, 1, '{1}', 'file', 1, 1, to_jsonb(repeat('x', 4096)))",
        "INSERT INTO round_samples VALUES (1, 1, '{}', 'file', 1, 1, '[]')",
        "INSERT INTO round_log (round_id, at, level, line) VALUES (1, now(), 'INFO', repeat('x', 1001))",
    ]
    for statement in too_much:
        with pytest.raises(psycopg2.errors.CheckViolation), here.database.transaction() as tx:
            tx._cursor.execute(statement)


def test_a_process_keeps_its_log_beside_where_it_went(target: Target) -> None:
    login = "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**_login(target))
    root = logging.getLogger()
    before = root.handlers[:]
    round_log.keep(Settings.model_validate({"database_url": login}))
    added = [handler for handler in root.handlers if handler not in before]
    for handler in added:
        root.removeHandler(handler)
    assert [type(handler) for handler in added] == [RoundLog]
    assert set(before) <= {*root.handlers}
