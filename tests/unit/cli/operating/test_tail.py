"""Following a log: every line once, whatever is done with the file."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cli.environment import read
from services.cli.operating import logs
from services.cli.operating.tail import Tail
from services.cli.stack import rotation
from services.core.errors import StackError


def write(path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_the_last_lines_and_then_what_comes(tmp_path) -> None:
    log = tmp_path / "trainer.log"
    write(log, "one\ntwo\nthr")
    tail = Tail(log)
    assert (tail.last(1), tail.unfinished, list(tail.more())) == (["two"], "thr", [])
    write(log, "ee\nfour\n")
    assert list(tail.more()) == ["three", "four"]
    tail.close()


def test_a_log_that_is_set_aside_is_read_to_its_end_and_the_new_one_from_its_beginning(tmp_path) -> None:
    log = tmp_path / "trainer.log"
    write(log, "one\n")
    tail = Tail(log)
    tail.last(10)
    write(log, "two\nhalf")
    log.rename(tmp_path / "trainer.log.1")
    assert list(tail.more()) == ["two"]  # the new one is not there yet
    write(log, "three\n")
    assert list(tail.more()) == ["half", "three"]
    tail.close()


def test_a_log_that_is_emptied_in_place_is_read_from_its_beginning(tmp_path) -> None:
    log = tmp_path / "trainer.log"
    write(log, "one\ntwo\n")
    tail = Tail(log)
    tail.last(10)
    log.write_text("new\n")
    assert list(tail.more()) == ["new"]
    tail.close()


def test_what_was_written_just_before_the_log_was_copied_away_is_not_missed(tmp_path) -> None:
    """As the logs of `ratchet up` are rotated."""
    log = tmp_path / "trainer.log"
    write(log, "one\n")
    tail = Tail(log)
    tail.last(10)
    write(log, "two\n")
    assert rotation.rotate(log, max_bytes=1)
    write(log, "3\n")
    assert list(tail.more()) == ["two", "3"]
    tail.close()


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path) -> None:
    tail = Tail(tmp_path / "trainer.log")
    assert (tail.last(5), list(tail.more())) == ([], [])
    write(tail.path, "one\n")
    assert list(tail.more()) == ["one"]
    tail.close()


def test_only_the_end_of_a_large_log_is_read(tmp_path) -> None:
    log = tmp_path / "trainer.log"
    write(log, "".join(f"{number}\n" for number in range(100_000)))
    tail = Tail(log)
    assert tail.last(3) == ["99997", "99998", "99999"]
    tail.close()


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["write", "rename", "copy", "read"]), st.text("ab\n", max_size=6)),
        max_size=30,
    )
)
def test_no_line_is_lost_or_told_twice(tmp_path_factory, steps) -> None:
    """Writes, rotations of both kinds and looks in any order."""
    folder = tmp_path_factory.mktemp("logs")
    log, written, seen = folder / "trainer.log", [], []
    tail = Tail(log)
    for what, text in steps:
        if what == "write":
            write(log, f"{text}\n")
            written += text.split("\n")
        elif what == "read":
            seen += tail.more()
        elif log.exists():
            seen += tail.more()  # a follower that looks between two rotations misses none
            _rotate(log, what)
    seen += tail.more()
    tail.close()
    assert seen == written


def _rotate(log, how: str) -> None:
    if how == "copy":
        rotation.rotate(log, max_bytes=0)
    else:
        log.replace(log.with_name(f"{log.name}.1"))


@pytest.fixture
def here(tmp_path):
    for name, text in (("trainer", "plain \x1b[2J\n"), ("metrics", '{"level": "INFO"}\n')):
        (tmp_path / "logs").mkdir(exist_ok=True)
        (tmp_path / "logs" / f"{name}.log").write_text(text)
    return read({"RATCHET_HOME": str(tmp_path)}, project=tmp_path)


def test_several_services_are_told_apart_and_drive_no_terminal(here, capsys) -> None:
    logs.run(here, ["trainer", "metrics"], lines=5, follow=False)
    out = capsys.readouterr().out
    assert "==> trainer (" in out
    assert r"plain \x1b[2J" in out


def test_as_json_a_line_that_is_json_is_told_as_such(here, capsys) -> None:
    logs.run(here, (), lines=5, follow=False, as_json=True)
    metrics, trainer = map(json.loads, capsys.readouterr().out.splitlines())
    assert metrics == {"service": "metrics", "line": '{"level": "INFO"}', "record": {"level": "INFO"}}
    assert trainer == {"service": "trainer", "line": "plain \x1b[2J"}


def test_all_services_without_a_log_are_named(here) -> None:
    with pytest.raises(StackError, match=r"no log of 'trader', 'x' in .*: there are metrics, trainer"):
        logs.run(here, ["trader", "x", "trainer"], lines=5, follow=False)
