"""Fingerprints of units in the database, of new texts and of those that were stored without."""

from contextlib import closing
from pathlib import Path

from services.core import db
from services.core.target import Target
from tests.integration.processor.conftest import code

STORED = "SELECT content_id, ordinal, fingerprint FROM units WHERE fingerprint IS NOT NULL ORDER BY 1, 2"


def test_a_copied_function_has_the_same_number(repo: Path, scan, rows) -> None:
    """In another file, under other comments."""
    copied = code("apples").replace("    if limit", "    # not so many\n    if limit")
    others = "\n\n".join(code(noun).split('"""\n\n\n', 1)[1] for noun in ("plums", "figs", "dates", "limes"))
    (repo / "src" / "fruit.py").write_text(f"{copied}\n\n{others}")
    scan()
    twice = "SELECT fingerprint FROM units GROUP BY 1 HAVING count(*) = 2"
    assert rows(f"SELECT name FROM units WHERE fingerprint IN ({twice})") == [("count_apples",)] * 2


def test_units_stored_without_get_them_when_judged_again(repo: Path, scan, rows, target: Target) -> None:
    """As after the migration; spans stay as they were, and it happens once."""
    scan()
    before = rows(STORED)
    assert before
    _run(target, "UPDATE units SET fingerprint = NULL", "UPDATE contents SET units_version = 0",
         "UPDATE files SET rules = 1")  # fmt: skip
    assert scan().stored == 2
    assert rows(STORED) == before
    assert rows("SELECT DISTINCT units_version FROM contents") == [(1,)]
    _run(
        target, "UPDATE units SET fingerprint = 7 WHERE fingerprint IS NOT NULL", "UPDATE files SET rules = 1"
    )
    scan()
    assert rows("SELECT DISTINCT fingerprint FROM units WHERE fingerprint IS NOT NULL") == [(7,)]


def _run(target: Target, *statements: str) -> None:
    with closing(db.connect(target)) as connection, connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
