"""Commands of the documentation are run, in a small world that has what they speak of.

What is not run here needs a GPU, a model, the network or Docker, asks a person, or does not end; that it
can be typed is tested in `tests/unit/docs/test_commands.py`.
"""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.core.db import Database
from services.core.settings import Settings
from services.core.target import Target
from services.metrics.app import create_app
from tests import documented
from tests.conftest import administer
from tests.documented import World
from tests.documents import Command, typed

TEMPLATE = "documented"
numbers = itertools.count(1)

READS = {  # one after the other, of the same world
    "adapters", "alerts", "config check", "config show", "doctor", "down", "events", "experiment list",
    "explain", "forget --dry-run", "forgotten", "gate simulate", "logs", "migrate", "plan", "receipt",
    "recipe list", "recipe show", "rejections", "round", "rounds", "serve --vllm", "sources", "stats",
    "status", "train", "webhook list", "webhook test", "which-adapters",
}  # fmt: skip
WRITES = {"add", "export"}  # files, and nothing to the database: each in a copy of the folder
CHANGES = {  # each in a copy of both
    "forget --undo", "forget --yes", "ingest", "pause --no-wait", "pin", "promote", "reject",
    "resume --no-wait", "rollback", "train --no-wait", "unpin",
}  # fmt: skip
NEVER = {  # a model, a daemon, the network, no end
    "--follow", "-f", "--gguf", "--now", "--prove", "--ray", "--wait", "--watch", "--webhooks",
}  # fmt: skip
BEFORE = {  # what they take back
    "unpin": ["pin"],
    "forget --undo": ["forget", "theirs", "--yes", "--no-check"],
    "resume --no-wait": ["pause", "--no-wait"],
}
SHORTER = {"gate simulate": ["--tracks", "20", "--rounds", "2"]}  # the last one of an option counts
MAY_SAY_NO = {"alerts", "doctor", "webhook test"}  # with 1: no service runs, nobody listens


def kind(command: Command) -> str | None:
    """Its name in the sets above; None if it is not run."""
    words = list(command.words[1:])
    if command.words[:1] != ("ratchet",) or command.fed:
        return None
    if NEVER & set(words) - ({"--now"} if "--no-wait" in words else set()):
        return None
    if any("://" in word or "…" in word for word in words):
        return None
    names = [
        words[0],
        " ".join(words[:2]),
        *(f"{words[0]} {word}" for word in words if word.startswith("--")),
    ]
    return next((name for name in reversed(names) if name in READS | WRITES | CHANGES), None)


TYPED = typed()
RUN = [command for command in TYPED if kind(command)]
ONCE = list({(command.environment, command.words): command for command in reversed(RUN)}.values())
FETCHED = [
    command for command in TYPED
    if command.words[:1] == ("curl",) and not {"-X", "-d", "--data", "-H"} & set(command.words)
]  # fmt: skip


@pytest.fixture(scope="module")
def world(
    server: Target, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[World, Target]]:
    """The world, and its database, that others are copied from."""
    made = documented.make(tmp_path_factory.mktemp("documented"))
    administer(server, f"CREATE DATABASE {TEMPLATE} TEMPLATE {template} STRATEGY file_copy")
    target = server.model_copy(update={"dbname": TEMPLATE})
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, made, target)
        done = CliRunner().invoke(app, ["ingest", str(made.ingest)])
        assert done.exit_code == 0, done.output
    database = Database(target, application="test")
    documented.train(made, database)
    database.close()
    yield made, target
    administer(server, f"DROP DATABASE {TEMPLATE} WITH (FORCE)")


@pytest.fixture
def folder(world: tuple[World, Target], tmp_path: Path) -> tuple[World, Target]:
    """A copy of the world, into which no project has been put yet, and the same database."""
    made, target = world
    copied = made.copy(tmp_path / "copy")
    shutil.rmtree(copied.ingest / "my-project")
    return copied, target


@pytest.fixture
def fresh(world: tuple[World, Target], server: Target, tmp_path: Path) -> Iterator[tuple[World, Target]]:
    """A copy of the world and of its database."""
    made, _ = world
    name = f"{TEMPLATE}_{next(numbers)}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY file_copy")
    yield made.copy(tmp_path / "copy"), server.model_copy(update={"dbname": name})
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def enter(patch: pytest.MonkeyPatch, world: World, target: Target) -> None:
    """Be a person in the folder of the world."""
    password = target.password.get_secret_value()
    url = f"postgresql://{target.user}:{password}@{target.host}:{target.port}/{target.dbname}"
    for name, value in world.variables(url).items():
        patch.setenv(name, value)
    patch.chdir(world.here)


def run(words: list[str], world: World, expected: tuple[int, ...] = (0,)) -> None:
    """Type it, and see how it ends; what says that it is JSON is."""
    places = {"~/": f"{world.home}/", "/mnt/corpora/": f"{world.home}/corpora/"}
    for named, there in places.items():
        words = [word.replace(named, there, 1) if word.startswith(named) else word for word in words]
    done = CliRunner().invoke(app, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in expected, done.output
    if "--json" in words:
        assert _is_json(done.stdout), done.stdout


def _is_json(text: str) -> bool:
    """One document, or one a line."""
    try:
        json.loads(text)
    except ValueError:
        return all(json.loads(line) is not None for line in text.splitlines())
    return True


@pytest.mark.parametrize("command", ONCE[::-1], ids=lambda command: f"{command.where} {command.text[:60]}")
def test_a_command_of_the_documentation_runs(
    command: Command, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = kind(command)
    assert name is not None
    stage = "fresh" if name in CHANGES else "folder" if name in WRITES else "world"
    where, target = request.getfixturevalue(stage)
    enter(monkeypatch, where, target)
    for assignment in command.environment:
        variable, _, value = assignment.partition("=")
        monkeypatch.setenv(variable, value)
    if name in BEFORE:
        run(BEFORE[name], where)
    run([*command.words[1:], *SHORTER.get(name, ())], where, (0, 1) if name in MAY_SAY_NO else (0,))


@pytest.fixture(scope="module")
def client(world: tuple[World, Target]) -> Iterator[Callable[[str], int]]:
    """`client(path)`: the status of an answer of the metrics service."""
    _, target = world
    fields = {"postgres_host": target.host, "postgres_port": target.port, "postgres_db": target.dbname}
    settings = Settings(**fields, postgres_user=target.user, postgres_password=target.password)
    metrics = create_app(settings)

    def status(path: str) -> int:
        with closing(metrics.test_client().get(path)) as answer:  # a stream would go on
            return answer.status_code

    yield status
    for name in ("observer", "reader"):
        metrics.extensions[name].database.close()


@pytest.mark.parametrize("command", FETCHED, ids=lambda command: f"{command.where} {command.text[:60]}")
def test_an_address_of_the_documentation_answers(command: Command, client: Callable[[str], int]) -> None:
    for word in command.words[1:]:
        if "localhost:8090" in word:
            path = "/" + word.removeprefix("http://").partition("/")[2]
            assert client(path) in ((200, 503) if "health" in path else (200,))


def test_most_commands_that_can_be_run_are() -> None:
    """A page that is written otherwise must not take the tests away unseen."""
    ratchet = [command for command in TYPED if command.words[:1] == ("ratchet",)]
    assert len(RUN) > 0.5 * len(ratchet)
    assert FETCHED
