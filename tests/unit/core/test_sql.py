"""SQL files: how they are read."""

from pathlib import Path

import pytest

from services.core import sql

TWO = """
-- first --
-- Says one
SELECT 1;

-- second_one --
-- Says two
SELECT %(two)s
-- a comment of the query itself
FROM somewhere;
"""


def test_names_descriptions_and_texts() -> None:
    """Each query's name, its line, and its text without the last semicolon."""
    first, second = sql.parse(TWO)
    assert first == sql.Query("first", "Says one", "SELECT 1")
    assert (second.name, second.description) == ("second_one", "Says two")


def test_a_comment_inside_a_query_stays_in_it() -> None:
    """Only the two header lines separate queries."""
    assert "-- a comment of the query itself\nFROM somewhere" in sql.parse(TWO)[1].text


def test_a_file_without_queries_has_none() -> None:
    """Nothing in, nothing out."""
    assert sql.parse("-- only a remark\n") == []


def test_every_query_of_the_project_is_described() -> None:
    """All of sql/queries reads, and no name is taken twice."""
    for query in sql.queries().values():
        assert query.description
        assert query.text


def test_a_name_defined_twice_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files may not both define a query."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.sql").write_text("-- same --\n-- Says one\nSELECT 1;\n")
    monkeypatch.setattr(sql, "QUERIES", tmp_path)
    with pytest.raises(ValueError, match="'same' is defined twice"):
        sql.queries.__wrapped__()


def test_migrations_come_in_order(tmp_path: Path) -> None:
    """By number, with name and text."""
    (tmp_path / "0002_later.sql").write_text("B")
    (tmp_path / "0001_first.sql").write_text("A")
    assert sql.migrations(tmp_path) == [sql.Migration(1, "first", "A"), sql.Migration(2, "later", "B")]


@pytest.mark.parametrize("names", [("0001_a", "0003_b"), ("0001_a", "0001_b"), ("0002_a",)])
def test_a_gap_or_a_double_number_is_an_error(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Numbers run 1, 2, 3 without gap or repetition."""
    for name in names:
        (tmp_path / f"{name}.sql").write_text("")
    with pytest.raises(ValueError, match="without a gap"):
        sql.migrations(tmp_path)
