"""Why a file has its score: as judged now, and as the database has it."""

import io
import tarfile
from pathlib import Path

import pytest

from services.cli.asking.locate import PathError
from services.cli.corpus import explain, explanation
from services.processor.rules import Rules
from tests.integration.processor.conftest import code


@pytest.fixture
def told(settings, tmp_path, judge):
    """`told("repo/short.py")`: what the command has to say, from an empty directory."""
    (tmp_path / "here").mkdir()
    return lambda asked, environment=settings: explain.explain(environment, asked, tmp_path / "here", judge)


def test_a_stored_file_is_explained_by_its_points(repo: Path, scan, told) -> None:
    """The score is the sum of the points, each beside its maximum; now and stored agree."""
    scan()
    answer = told("repo/src/apples.py")
    now, stored = answer["now"], answer["database"]
    assert now["kept"]
    assert stored["state"] == "stored"
    assert sum(each["points"] for each in stored["points"]) == stored["score"] == now["score"]
    assert all(each["points"] <= each["most"] for each in stored["points"])
    assert (stored["sha256"], stored["units"]) == (now["sha256"], now["units"])
    assert [unit["name"] for unit in stored["units"]] == ["count_apples"]
    assert answer["differences"] == []


def test_the_percentile_counts_the_contents_that_score_lower(repo: Path, scan, told, rows) -> None:
    """Within the language."""
    scan()
    ((score, lower, all_of_them),) = rows(
        "SELECT c.score, (SELECT count(*) FROM contents o WHERE o.score < c.score),"
        " (SELECT count(*) FROM contents)"
        " FROM contents c WHERE text LIKE '%%apples%%'"
    )
    stored = told("repo/src/apples.py")["database"]
    assert stored["score"] == score
    assert stored["percentile"] == round(100 * lower / all_of_them, 1)


def test_a_refused_file_is_explained_by_its_reason(repo: Path, scan, told) -> None:
    """The code, its figures and a line for a person."""
    scan()
    answer = told("repo/short.py")
    assert (answer["now"]["kept"], answer["now"]["reason"]) == (False, "too_short")
    assert answer["database"]["why"] == "too few characters to complete"
    assert answer["differences"] == []


def test_a_change_since_the_scan_is_named(repo: Path, scan, told) -> None:
    """Both sides are shown, and what differs."""
    scan()
    (repo / "src" / "apples.py").write_text("x = 1\n")
    answer = told("repo/src/apples.py")
    assert (answer["now"]["reason"], answer["database"]["state"]) == ("too_short", "stored")
    assert any(line.startswith("changed since it was read") for line in answer["differences"])
    assert "kept in the database, refused as too_short now" in answer["differences"]


def test_other_rules_are_named(repo: Path, scan, told) -> None:
    """What was judged by other settings is judged again at the next scan."""
    scan(rules=Rules(None, licence_deny=("GPL-*",)))
    assert any("judged by other rules" in line for line in told("repo/short.py")["differences"])


def test_a_file_that_is_gone_is_explained_from_the_database(repo: Path, scan, told) -> None:
    """Before and after the scan that retires it."""
    scan()
    (repo / "src" / "apples.py").unlink()
    assert told("repo/src/apples.py")["differences"] == ["the file is gone since: the next scan retires it"]
    scan()
    answer = told("repo/src/apples.py")
    assert (answer["now"], answer["database"]["state"], answer["differences"]) == (None, "retired", [])


def test_below_a_vendored_directory_its_row_is_the_answer(repo: Path, scan, told) -> None:
    """One row stands for all below it."""
    (repo / "node_modules" / "x").mkdir(parents=True)
    (repo / "node_modules" / "x" / "y.js").write_text("1")
    scan()
    for asked in ("repo/node_modules/x/y.js", "repo/node_modules"):
        answer = told(asked)
        assert answer["now"]["reason"] == answer["database"]["reason"] == "vendored"
        assert answer["database"]["covered_by"] == "node_modules/"


def test_a_near_duplicate_names_what_is_kept_instead(repo: Path, scan, told) -> None:
    """By its path, now and in the database."""
    long = "\n\n".join(code(noun) for noun in ("plums", "cherries", "quinces", "figs", "dates", "limes"))
    (repo / "fruit.py").write_text(long)
    scan()
    (repo / "near.py").write_text(long + "\n# the same again\n")
    scan()
    states = {path: told(f"repo/{path}") for path in ("fruit.py", "near.py")}
    (refused,) = [answer for answer in states.values() if answer["database"]["reason"] == "near_duplicate"]
    (kept,) = [answer for answer in states.values() if answer["database"]["state"] == "stored"]
    assert refused["database"]["duplicate_of"]["at"] == [f"repo/{kept['path']}"]
    assert refused["now"]["duplicate_of"]["sha256"] == kept["database"]["sha256"]
    assert kept["database"]["near_duplicates"] == 1
    assert refused["differences"] == kept["differences"] == []


def test_a_secret_is_named_by_kind_and_line_and_never_shown(repo: Path, scan, told) -> None:
    """Not even now, from the file itself."""
    (repo / "src" / "apples.py").write_text('KEY = "AKIAQ3EGRIVQ4CWXJ2SA"\n' + code("apples"))
    scan()
    answer = told("repo/src/apples.py")
    assert [each["line"] for each in answer["database"]["redactions"]] == [1]
    assert answer["now"]["redactions"] == answer["database"]["redactions"]
    assert "AKIAQ3EGRIVQ4CWXJ2SA" not in str(answer)


def test_a_member_of_an_archive_is_explained(ingest: Path, tmp_path: Path, scan, told) -> None:
    """In the ingest folder and elsewhere."""
    for folder in (ingest, tmp_path / "here"):
        with tarfile.open(folder / "fruit.tar.gz", "w:gz") as archive:
            member = tarfile.TarInfo("pkg/apples.py")
            member.size = len(code("apples"))
            archive.addfile(member, io.BytesIO(code("apples").encode()))
    scan("fruit.tar.gz")
    inside = told("fruit.tar.gz/pkg/apples.py")
    assert (inside["now"]["kept"], inside["database"]["state"]) == (True, "stored")
    outside = told("./fruit.tar.gz/pkg/apples.py")
    assert (outside["now"]["sha256"], outside["source"]) == (inside["now"]["sha256"], None)


def test_without_a_database_the_file_is_judged_all_the_same(repo: Path, told, unreachable) -> None:
    """And the reason why there is nothing else is given."""
    answer = told("repo/src/apples.py", unreachable)
    assert answer["now"]["kept"]
    assert answer["database"] is None
    assert "127.0.0.1:1" in answer["database_problem"]


def test_a_file_of_ones_own_is_judged(told, tmp_path: Path) -> None:
    """By a path from the working directory or an absolute one."""
    (tmp_path / "here" / "mine.py").write_text(code("plums"))
    for asked in ("mine.py", str(tmp_path / "here" / "mine.py")):
        answer = told(asked)
        assert (answer["source"], answer["path"], answer["now"]["kept"]) == (None, "mine.py", True)


def test_a_path_into_the_ingest_folder_may_be_absolute(repo: Path, scan, told) -> None:
    scan()
    assert told(str(repo / "short.py"))["database"]["reason"] == "too_short"


@pytest.mark.parametrize("asked", ["repo/none.py", "nowhere/none.py", "none.py"])
def test_a_path_that_names_nothing_is_an_error(asked: str, repo: Path, scan, told) -> None:
    """It names the path."""
    scan()
    with pytest.raises(PathError, match=asked):
        told(asked)


def test_what_the_processor_passes_over_is_said_to_be(repo: Path, scan, told) -> None:
    """Not to be missing."""
    (repo / "__pycache__").mkdir()
    (repo / "__pycache__" / "x.py").write_text(code("x"))
    scan()
    with pytest.raises(PathError, match="passed over"):
        told("repo/__pycache__/x.py")


@pytest.mark.parametrize(("asked", "what"), [("repo", "is a source"), ("repo/src", "is a directory")])
def test_a_directory_is_an_error_that_says_so(asked: str, what: str, repo: Path, told) -> None:
    with pytest.raises(PathError, match=what):
        told(asked)


def test_a_hostile_name_is_shown_inert(repo: Path, scan, told) -> None:
    """No escape sequence and no bidi override reaches the terminal."""
    name = "a\x1b[31m\u202egpj.py"
    (repo / name).write_text(code("apples"))
    scan()
    shown = "\n".join(explanation.lines(told(f"repo/{name}")))
    assert r"a\x1b[31m\u202egpj.py" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_the_processor_may_explain_all_but_the_rounds(repo: Path, scan, told, settings_of) -> None:
    """Its role sees nothing of training: that is said, and nothing fails."""
    scan()
    stored = told("repo/src/apples.py", settings_of("ratchet_processor"))["database"]
    assert stored["state"] == "stored"
    assert stored["rounds"] is None
    assert stored["percentile"] is not None


def test_the_rounds_that_used_a_content_are_named(repo: Path, scan, told, rows, database) -> None:
    """Track, number, state and role, for the owner."""
    scan()
    with database.transaction() as transaction:
        transaction._cursor.execute(
            "INSERT INTO tracks (name, recipe) VALUES ('demo', '{}');"
            "INSERT INTO rounds (track, number, recipe, snapshot_hash) VALUES ('demo', 1, '{}', 'x');"
            "INSERT INTO round_contents SELECT r.id, c.id, 'train', 0 FROM rounds r, contents c"
            " WHERE c.text LIKE '%apples%'"
        )
    rounds = told("repo/src/apples.py")["database"]["rounds"]
    assert rounds == [{"track": "demo", "number": 1, "state": "open", "role": "train"}]
    assert told("repo/src/pears.py")["database"]["rounds"] == []
