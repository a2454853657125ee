"""`ratchet generate`, but for the model: what is asked, and how it is shown."""

import json

import pytest

from services.cli import environment
from services.cli.using import generate
from services.cli.using.generate import Asked, Shown
from services.core.errors import ConfigurationError

REQUEST = {"max_new_tokens": 8, "n": 1}


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(generate.sys.stdin, "isatty", lambda: True, raising=False)


def asked(**fields):
    return generate.question(Asked(request=REQUEST, **fields), lambda: "from standard input")


def test_a_prompt_is_asked_as_it_is(terminal):
    assert asked(prompt="def f(", chat=False) == {
        "subject": "champion", "request": REQUEST, "prompt": "def f(", "chat": False,
    }  # fmt: skip


def test_a_dash_reads_standard_input(terminal):
    assert asked(prompt="-")["prompt"] == "from standard input"


def test_a_pipe_needs_no_dash(monkeypatch):
    monkeypatch.setattr(generate.sys.stdin, "isatty", lambda: False, raising=False)
    assert asked()["prompt"] == "from standard input"


def test_prefix_and_suffix_ask_for_the_middle(terminal):
    found = asked(prefix="a", suffix="b")
    assert (found["prefix"], found["suffix"]) == ("a", "b")
    assert asked(suffix="b")["prefix"] == ""


@pytest.mark.parametrize("fields", [{}, {"prompt": "p", "suffix": "s"}, {"prefix": "p", "chat": True}])
def test_two_questions_or_none_are_refused(terminal, fields):
    with pytest.raises(ConfigurationError, match=r"PROMPT|no prompt"):
        asked(**fields)


def test_what_is_streamed_cannot_move_the_cursor(capsys):
    shown = Shown()
    told = json.dumps("a\x1b[2J\n\tb")
    assert shown.line(f"text {told}\n")
    assert not shown.line("a warning of a library\n")
    assert capsys.readouterr().out == "a\\x1b[2J\n\tb"


def test_several_completions_are_told_apart():
    completions = [{"text": "one"}, {"text": "two\x1b"}]
    assert generate.plain(completions, terminal=True) == "── 1 ──\none\n── 2 ──\ntwo\\x1b"
    assert generate.plain(completions[1:], terminal=False) == "two\x1b"


def test_as_json_everything_that_came_is_one_document(terminal, monkeypatch, capsys):
    """What is for a person, who answered and how fast, is in it and not beside it."""
    found = {"subject": "base", "completions": [{"text": "x", "tokens": 1, "finished": True}]}
    monkeypatch.setattr(generate.modelprocess, "ask", lambda *_: found)
    here = environment.read({}, project=environment.PROJECT)
    generate.run(here, Asked(prompt="def f(", adapter="base", request=REQUEST), as_json=True)
    assert json.loads(capsys.readouterr().out) == found
