"""A process with a model, asked once: what it is sent, what it answers, and how it fails."""

import subprocess
import sys

import pytest

from services.cli import environment
from services.cli.asking import modelprocess
from services.core.errors import ConfigurationError, StackError


@pytest.fixture
def child(monkeypatch, tmp_path):
    """`child(body)`: these lines are run in place of the process with the model."""

    def replace(body):
        script = tmp_path / "child.py"
        script.write_text(f"import json, sys\nsent = json.load(sys.stdin)\n{body}\n")
        start = subprocess.Popen
        monkeypatch.setattr(
            modelprocess.subprocess, "Popen", lambda command, **rest: start([sys.executable, script], **rest)
        )

    return replace


@pytest.fixture
def here(tmp_path):
    return environment.read({}, project=tmp_path)


def test_it_is_sent_what_is_asked_and_its_answer_may_be_large(child, here):
    child("json.dump({'sent': sent['items'], 'text': 'x' * 10**6}, sys.stdout)")
    found = modelprocess.ask(here, "services.some", {"items": 10})
    assert found == {"sent": 10, "text": "x" * 10**6}


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ("sys.stderr.write('no model here\\n'); sys.exit(1)", ConfigurationError, "^no model here$"),
        ("raise ValueError('odd')", StackError, "status 1: ValueError: odd"),
        ("sys.exit(3)", StackError, "services.some ended with status 3: without a word"),
    ],
)
def test_one_that_fails_is_an_error_with_its_last_words(child, here, body, error, said):
    child(body)
    with pytest.raises(error, match=said):
        modelprocess.ask(here, "services.some", {})


def test_lines_that_the_caller_takes_are_not_its_last_words(child, here):
    child("print('why', 'step 1', sep='\\n', file=sys.stderr); sys.exit(1)")
    with pytest.raises(ConfigurationError, match=r"^why$"):
        modelprocess.ask(here, "services.some", {}, lambda line: line.startswith("step "))


def test_it_finds_the_hub_in_the_cache_unless_it_is_named(tmp_path):
    named = environment.read({"HF_HOME": "/hub"}, project=tmp_path)
    assert modelprocess.variables(named)["HF_HOME"] == "/hub"
    other = environment.read({"CACHE_DIR": str(tmp_path / "cache")}, project=tmp_path)
    assert modelprocess.variables(other)["HF_HOME"] == str(tmp_path / "cache" / "huggingface")


def test_progress_is_said_once_a_part_where_nobody_looks(capsys):
    for line in ("progress 1 2 base, all items\n", "progress 2 2 base, all items\n", "a warning\n"):
        modelprocess.show_progress(line)
    assert capsys.readouterr().err == "base, all items: 2\n"
