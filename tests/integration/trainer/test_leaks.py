"""What selection asks of the ledger: when lines were written, and which units stand elsewhere too."""

from collections.abc import Callable, Sequence

import pytest

from services.core.db import Database, as_json
from tests.integration.trainer.corpus import run


@pytest.fixture
def contents(store: Callable[[list[str]], None], database: Database) -> list[int]:
    """Six of them."""
    store([f"text {number}\n" * 9 for number in range(6)])
    with database.transaction() as tx:
        return [row.id for row in run(tx, "SELECT id FROM contents ORDER BY id")]


def put_unit(database: Database, content_id: int, ordinal: int, fingerprint: int | None) -> None:
    with database.transaction() as tx:
        run(
            tx, "INSERT INTO units VALUES (%(id)s, %(at)s, 'function', 'f', %(at)s, 40, 1, 6, 0, %(print)s)",
            id=content_id, at=ordinal, print=fingerprint,
        )  # fmt: skip


def put_round(database: Database, track: str, number: int, contents: Sequence[int], role: str) -> None:
    with database.transaction() as tx:
        run(tx, "INSERT INTO tracks (name, recipe) VALUES (%(t)s, '{}') ON CONFLICT DO NOTHING", t=track)
        ((round_id,),) = run(
            tx, "INSERT INTO rounds (track, number, recipe, snapshot_hash, state, closed_at)"
            " VALUES (%(track)s, %(number)s, '{}', 'x', 'refused', now()) RETURNING id",
            track=track, number=number,
        )  # fmt: skip
        if role == "replay":  # only what was learned may be
            run(tx, "INSERT INTO trained SELECT %(track)s, unnest(%(ids)s), %(round)s",
                track=track, ids=list(contents), round=round_id)  # fmt: skip
        for position, content_id in enumerate(contents):
            run(
                tx, "INSERT INTO round_contents (round_id, content_id, role, position)"
                " VALUES (%(round)s, %(content)s, %(role)s, %(at)s)",
                round=round_id, content=content_id, role=role, at=position,
            )  # fmt: skip


def leaked(
    database: Database, judged: Sequence[int], training: Sequence[int] = (), track: str = "t"
) -> list[tuple]:
    parameters = {"track": track, "judged": list(judged), "training": list(training)}
    return database.run(lambda tx: [tuple(row) for row in tx.all("leaked_units", **parameters)])


@pytest.mark.parametrize("role", ["train", "replay"])
def test_a_unit_leaks_when_a_round_trains_on_its_code(
    database: Database, contents: list[int], role: str
) -> None:
    """Of this track, in an earlier round or in the one that is being opened."""
    judged, past, coming, *_ = contents
    for ordinal, fingerprint in enumerate((10, -20, 30, None)):
        put_unit(database, judged, ordinal, fingerprint)
    put_unit(database, past, 0, 10)
    put_unit(database, coming, 0, -20)
    put_unit(database, coming, 1, None)
    put_round(database, "t", 1, [past], role)
    put_round(database, "another", 1, [coming], role)
    assert leaked(database, [judged]) == [(judged, 0, 40)]
    assert leaked(database, [judged], [coming]) == [(judged, 0, 40), (judged, 1, 40)]
    assert leaked(database, [judged], track="another") == [(judged, 1, 40)]


def test_a_unit_does_not_leak_by_itself_or_by_what_is_held_out(
    database: Database, contents: list[int]
) -> None:
    """Twice in a judged text, in two judged texts, in one that no round trains on."""
    one, two, other, *_ = contents
    for content_id, ordinal in ((one, 0), (one, 1), (two, 0), (other, 0)):
        put_unit(database, content_id, ordinal, 10)
    put_round(database, "t", 1, [one, two], "held_out")
    put_round(database, "t", 2, [other], "validation")
    assert leaked(database, [one, two]) == []


def test_lines_have_the_times_of_the_file_that_changed_last(database: Database, contents: list[int]) -> None:
    """Of those that hold the text now; times of another text are not told."""
    held, stale, unknown, *_ = contents
    put = """
        INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id, changed_at, line_times,
                           lines_of, retired_at)
        SELECT id, %(path)s, 1, 0, %(content)s, to_timestamp(%(at)s), %(times)s, %(of)s,
               CASE WHEN %(retired)s THEN now() END
        FROM sources"""
    rows = [
        ("old", held, 100, [[1, 9, 100]], held, False),
        ("new", held, 200, [[1, 9, 200]], held, False),
        ("gone", held, 300, [[1, 9, 300]], held, True),
        ("stale", stale, 100, [[1, 9, 100]], held, False),
    ]
    with database.transaction() as tx:
        for path, content_id, at, times, of, retired in rows:
            run(tx, put, path=path, content=content_id, at=at, times=as_json(times), of=of, retired=retired)
        told = tx.all("line_times", content_ids=[held, stale, unknown])
    assert [
        (row.content_id, row.line_times, row.changed_at and row.changed_at.timestamp()) for row in told
    ] == [
        (held, [[1, 9, 200]], 200),
        (stale, None, 100),
        (unknown, None, None),
    ]
