"""Every command takes `--json`, and what it then writes to standard output is one document."""

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from services.cli.doctor import accelerator
from services.cli.main import app
from services.core.db import Database
from services.core.settings import PROJECT
from services.core.target import Target
from tests.conftest import administer
from tests.integration.cli.conftest import variables
from tests.integration.metrics import rows
from tests.integration.processor.conftest import code

HERE = {  # command → arguments with which it runs here
    "doctor": "", "down": "", "status": "", "logs": "trainer -n 1",
    "add": "REPO", "ingest": "REPO", "sources": "", "stats": "", "rejections": "",
    "explain": "REPO/app.py", "export": "OUT.jsonl",
    "train": "", "pause": "--no-wait", "resume": "--no-wait", "rounds": "", "round": "1",
    "plan": "demo --device H200", "recipe list": "", "recipe show": "demo",
    "gate simulate": "--rounds 1 --tracks 10 --files 20", "experiment list": "",
    "adapters": "", "serve": "--vllm --recipe qwen1.5b-sft",
    "which-adapters": "werkzeug", "forget": "werkzeug --dry-run", "forgotten": "",
    "score-samples": "SAMPLES --k 1 --timeout 2 --allow-unsandboxed",
    "alerts": "", "events": "-n 1", "migrate": "", "config show": "", "config check": "",
}  # fmt: skip
ELSEWHERE = {  # command → where its JSON is read by a test, with what it takes to run it
    "up": "tests/acceptance/test_up.py",
    "samples": "tests/integration/cli/training/test_samples.py",
    "lr-find": "tests/integration/trainer/test_lr_find.py",
    "recipe check": "tests/unit/cli/training/test_recipe.py",
    "verdict": "tests/integration/trainer/test_verdict.py",
    "compare": "tests/integration/trainer/test_compare_command.py",
    "experiment run": "tests/integration/trainer/experiments/test_command.py",
    "experiment show": "tests/integration/trainer/experiments/test_command.py",
    "promote": "tests/integration/trainer/test_promotions_command.py",
    "reject": "tests/integration/trainer/test_promotions_command.py",
    "rollback": "tests/integration/trainer/test_promotions_command.py",
    "pin": "tests/integration/trainer/test_promotions_command.py",
    "unpin": "tests/integration/trainer/test_promotions_command.py",
    "generate": "tests/unit/cli/using/test_generate.py",
    "merge": "tests/integration/trainer/test_merge_command.py",
    "parity": "tests/integration/trainer/test_serving.py",
    "receipt": "tests/integration/trainer/test_receipts.py",
    "solutions": "tests/integration/cli/learned/test_solutions.py",
    "tasks": "tests/unit/cli/tasks/test_sets.py",
    "convert bigcodebench": "tests/unit/cli/tasks/test_sets.py",
    "convert dataframebench": "tests/unit/cli/tasks/test_sets.py",
    "webhook test": "tests/integration/cli/operating/test_events.py",
    "webhook list": "tests/integration/cli/operating/test_events.py",
    "webhook run": "tests/integration/cli/operating/test_events.py",
}


@dataclass(frozen=True)
class World:
    folder: Path
    variables: dict[str, str]


def leaves() -> Iterator[tuple[str, object]]:
    """Every command, those of groups as `recipe list`."""
    for name, command in get_command(app).commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {each}", one) for each, one in inner.items())


COMMANDS = dict(leaves())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_json(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in COMMANDS[name].params)


def test_the_json_of_every_command_is_read_by_a_test() -> None:
    assert {*HERE, *ELSEWHERE} == COMMANDS.keys()
    for path in set(ELSEWHERE.values()):
        assert re.search(r"--json|as_json", (PROJECT / path).read_text("utf-8")), path


@pytest.fixture(scope="module")
def world(server: Target, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A database with a history, a log, a repository; no torch is loaded."""
    administer(server, f"CREATE DATABASE spoken TEMPLATE {template} STRATEGY file_copy")
    login = server.model_copy(update={"dbname": "spoken"})
    pool = Database(login, application="test")
    rows.fill(pool, contents=20)
    with pool.transaction() as tx:  # a running processor would have the ingest folder
        tx._cursor.execute("DELETE FROM heartbeats WHERE service = 'processor'")
    pool.close()
    here = tmp_path_factory.mktemp("world")
    (here / "code").mkdir()
    (here / "code" / "app.py").write_text(code("apples"))
    (here / "samples.jsonl").write_text('{"task_id": "HumanEval/0", "completion": "    return True"}\n')
    (here / "home" / "logs").mkdir(parents=True)
    (here / "home" / "logs" / "trainer.log").write_text("a line\n")
    root = logging.getLogger()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accelerator, "TORCH_SECONDS", 0.01)
        patch.setattr(root, "handlers", list(root.handlers))  # commands that log set their own
        patch.setattr(root, "level", root.level)
        yield World(here, variables(login, here / "ingest", here / "home"))
    administer(server, "DROP DATABASE spoken WITH (FORCE)")


@pytest.mark.parametrize("name", HERE)
def test_what_it_writes_is_one_document(name: str, world: World) -> None:
    """Of exit status 0, or 1 where the answer is no."""
    arguments = HERE[name]
    for word, file in {"REPO": "code", "OUT": "out", "SAMPLES": "samples.jsonl"}.items():
        arguments = arguments.replace(word, str(world.folder / file))
    done = CliRunner().invoke(app, [*name.split(), *arguments.split(), "--json"], env=world.variables)
    assert isinstance(json.loads(done.stdout), dict | list), done.stderr
    assert done.exit_code in (0, 1)
