"""`ratchet forget` and `ratchet forgotten` as a person runs them."""

import io
import json
import sys
from pathlib import Path

import pytest

from services.cli.environment import Environment
from services.cli.learned import forget
from services.cli.learned.forget import Options
from services.core.errors import ForgetError

YES = Options(yes=True, check=False)


def test_a_dry_run_says_what_would_go_and_does_nothing(
    repo: Path, scan, files, settings: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    scan()
    assert forget.run(settings, "repo/src", Options(dry_run=True), as_json=False)
    said = capsys.readouterr().out
    assert "repo/src/: 2 files are barred and never read again" in said
    assert "2 texts in 2 clusters go" in said
    assert "no adapter has learned from them" in said
    assert forget.run(settings, "repo", Options(dry_run=True), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["target"], told["files"], told["contents"]) == ("repo", 3, 2)
    assert files()["repo/src/apples.py"] is None


def test_it_is_done_listed_and_lifted(
    repo: Path, scan, files, settings: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    scan()
    assert forget.run(settings, "repo/src/apples.py", YES, as_json=False)
    said = capsys.readouterr()
    assert "forgetting 1 of repo/src/apples.py: done" in said.out
    assert "the ingest folder itself" in said.out
    assert "1 texts are gone from every table" in said.err
    forget.list_all(settings, as_json=False)
    assert "1  repo/src/apples.py  done" in capsys.readouterr().out
    forget.list_all(settings, as_json=True)
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["state"], listed["found"]["contents"], listed["reason"]) == ("done", 1, "by hand")
    forget.undo(settings, "1", as_json=False)
    assert "its tombstones are lifted. 1 files are read again" in capsys.readouterr().out
    scan()
    assert files()["repo/src/apples.py"] is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "reason"), [("y\n", "forgotten"), ("\n", None), ("no\n", None)])
def test_a_person_is_asked(
    repo: Path, scan, files, settings: Environment, monkeypatch: pytest.MonkeyPatch, answer: str, reason
) -> None:
    scan()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    done = forget.run(settings, "repo/src/apples.py", Options(check=False), as_json=False)
    assert (done, files()["repo/src/apples.py"]) == (reason is not None, reason)


def test_a_script_says_yes(repo: Path, scan, files, settings: Environment, monkeypatch) -> None:
    scan()
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(ForgetError, match="cannot be taken back: say --yes, or --dry-run"):
        forget.run(settings, "repo/src/apples.py", Options(), as_json=True)
    assert files()["repo/src/apples.py"] is None


def test_a_service_may_not(repo: Path, scan, settings_of) -> None:
    scan()
    with pytest.raises(ForgetError, match="ratchet_trainer may not forget"):
        forget.run(settings_of("ratchet_trainer"), "repo", YES, as_json=False)
