"""Figures of the corpus, by source, language and reason; and the list of sources."""

from pathlib import Path

import pytest

from services.cli.corpus import sources, stats
from services.core.errors import ConfigurationError
from services.processor.sources import source
from tests.integration.processor.conftest import code


@pytest.fixture
def two_sources(repo: Path, ingest: Path, scan) -> None:
    """`repo` with two kept files and one refused, `fork` with a copy of one and a shell script."""
    (ingest / "fork").mkdir()
    (ingest / "fork" / "copy.py").write_text(code("apples"))
    (ingest / "fork" / "tiny.sh").write_text("#!/bin/sh\n")
    scan("repo")
    scan("fork")


def test_files_are_counted_by_source_language_and_reason(two_sources, database) -> None:
    """Every file once; a reason with its line for a person."""
    told = stats.read(database, None, None, 70)
    assert (told["totals"]["files"], told["totals"]["kept"], told["totals"]["refused"]) == (5, 3, 2)
    assert told["sources"] == [
        {"source": "fork", "files": 2, "kept": 1, "refused": 1},
        {"source": "repo", "files": 3, "kept": 2, "refused": 1},
    ]
    assert told["reasons"] == [{"reason": "too_short", "files": 2, "why": "too few characters to complete"}]


def test_a_text_that_two_files_hold_is_measured_once(two_sources, database) -> None:
    told = stats.read(database, None, None, 70)
    python = next(row for row in told["languages"] if row["language"] == "python")
    assert (python["kept"], python["contents"], sum(python["scores_by_decade"])) == (3, 2, 2)
    assert python["bytes"] == len(code("apples")) + len(code("pears"))


def test_the_share_above_the_threshold_follows_it(two_sources, database) -> None:
    assert stats.read(database, None, None, 0)["totals"]["share_above_threshold"] == 1.0
    assert stats.read(database, None, None, 101)["totals"]["share_above_threshold"] == 0.0


def test_one_source_or_one_language_can_be_asked_for(two_sources, database) -> None:
    fork = stats.read(database, "fork", None, 70)
    assert (fork["totals"]["files"], fork["totals"]["contents"]) == (2, 1)
    assert stats.read(database, None, "rust", 70)["totals"]["files"] == 0


def test_a_source_that_never_was_is_an_error(two_sources, database) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        stats.read(database, "nowhere", None, 70)


@pytest.mark.parametrize("role", ["ratchet_processor", "ratchet_metrics"])
def test_services_may_see_the_figures(role: str, two_sources, settings_of, capsys) -> None:
    """What the tables say is the same for them."""
    stats.run(settings_of(role), source=None, language=None, as_json=False)
    sources.run(settings_of(role), as_json=False)
    printed = capsys.readouterr().out
    assert "5 files: 3 kept, 2 refused; 2 distinct texts" in printed
    assert "too few characters to complete" in printed


def test_sources_are_listed_with_what_they_hold(two_sources, settings, database, capsys) -> None:
    """Kept, refused and retired; why one cannot be read."""
    with database.transaction() as transaction:
        transaction._cursor.execute(
            "UPDATE sources SET problem = 'include: \x07 no pattern' WHERE name = 'fork'"
        )
    sources.run(settings, as_json=False)
    printed = capsys.readouterr().out.splitlines()
    fork, problem, repo = printed[1:]
    assert fork.split()[:5] == ["fork", source.Kind.DIRECTORY, "1", "1", "0"]
    assert problem.strip() == r"include: \x07 no pattern"
    assert repo.split()[:5] == ["repo", source.Kind.DIRECTORY, "2", "1", "0"]


def test_an_empty_corpus_has_figures_too(settings, capsys) -> None:
    stats.run(settings, source=None, language=None, as_json=False)
    sources.run(settings, as_json=False)
    assert capsys.readouterr().out.startswith("0 files: 0 kept")
