"""Processes and machines: settings in, torchrun's options out; failures in the words of the first."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from services.core.errors import ConfigurationError
from services.core.settings import from_environment
from services.trainer import failure, launch
from services.trainer.daemon import machines
from services.trainer.daemon.node import SILENCE, Node
from services.trainer.recipes.recipe import Recipe

SEVERAL = {"NNODES": "2", "NODE_RANK": "1", "RDZV_ENDPOINT": "trainer-0:29400", "NPROC_PER_NODE": "8"}


def of(**environment: str) -> machines.Machines:
    return machines.from_settings(from_environment(environment))


def test_one_machine_meets_at_a_free_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds on one machine never meet."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    alone = of()
    assert alone == machines.Machines(1)
    options = alone.options(Path("logs"))
    assert options[options.index("--rdzv-endpoint") + 1] == "127.0.0.1:0"
    assert options[options.index("--nproc-per-node") + 1] == "1"


def test_a_process_for_every_visible_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a number is set."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3")
    assert of().processes == 2
    assert of(NPROC_PER_NODE="4").processes == 4


PRACTISING = Recipe(name="team", base_model="./m", objective="reinforcement")


def test_a_team_has_one_process_whatever_gpus_there_are() -> None:
    assert machines.for_recipe(from_environment({"NPROC_PER_NODE": "8"}), PRACTISING) == machines.Machines(1)


def test_several_machines_are_refused_for_a_team() -> None:
    with pytest.raises(ConfigurationError, match="NNODES=2: a round with objective=reinforcement"):
        machines.for_recipe(from_environment(SEVERAL), PRACTISING)


def test_several_machines_have_fixed_numbers() -> None:
    """torchrun's elastic rendezvous numbers by address: the first process might have no database."""
    options = of(**SEVERAL).options(Path("logs"))
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert given["--node-rank"] == "1"
    assert (given["--master-addr"], given["--master-port"]) == ("trainer-0", "29400")
    assert "--rdzv-backend" not in given


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"NODE_RANK": "2"}, "NODE_RANK=2 with NNODES=2"),
        ({"RDZV_ENDPOINT": ""}, "NNODES=2 needs RDZV_ENDPOINT"),
        ({"RDZV_ENDPOINT": "trainer-0"}, "RDZV_ENDPOINT='trainer-0'"),
        ({"NNODES": "1"}, "NODE_RANK=1 with NNODES=1"),
        ({"NNODES": "0"}, "NNODES='0'"),
    ],
)
def test_numbers_that_do_not_go_together_are_named(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        of(**{**SEVERAL, **wrong})
    assert said in str(caught.value)


def test_torchruns_own_variables_are_no_misspelt_settings() -> None:
    """A worker reads the settings too."""
    theirs = [
        "RANK",
        "LOCAL_RANK",
        "ROLE_RANK",
        "GROUP_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "MASTER_PORT",
    ]
    assert from_environment(dict.fromkeys(theirs, "1")) == from_environment({})


def test_a_single_process_is_run_without_an_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its exit status is the launcher's."""
    (tmp_path / "a_round.py").write_text("import sys\nsys.exit(143 if len(sys.argv) == 1 else 1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["launch", *machines.Machines(1).options(tmp_path), "-m", "a_round"])
    monkeypatch.setattr(launch, "_torchrun", lambda: pytest.fail("torchrun was started"))
    with pytest.raises(SystemExit) as left:
        launch.main()
    assert left.value.code == 143


@pytest.mark.parametrize("several", [machines.Machines(2), machines.Machines(1, 2, 0, "h", 1)])
def test_several_processes_are_torchruns(
    several: machines.Machines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On one machine or on several."""
    monkeypatch.setattr(sys, "argv", ["launch", *several.options(tmp_path), "-m", "a_round"])
    monkeypatch.setattr(launch, "_torchrun", lambda: 7)
    assert launch.main() == 7


# failures


def test_the_earliest_failure_is_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are what it did to them."""
    for rank, message in ((1, "out of memory"), (0, "connection closed by peer")):
        monkeypatch.setenv("RANK", str(rank))
        failure.leave(tmp_path / "track", message, permanent=rank == 1)
    first = failure.first(tmp_path / "track")
    assert first is not None
    assert (first.rank, first.message, first.permanent) == (1, "out of memory", True)
    failure.clear(tmp_path / "track")
    assert failure.first(tmp_path / "track") is None


def test_a_torn_failure_is_none(tmp_path: Path) -> None:
    """A crash may tear the file."""
    (tmp_path / "failure-0.json").write_text('{"at": 1')
    (tmp_path / "failure-1.json").write_text(json.dumps({"other": "fields"}))
    assert failure.first(tmp_path) is None


# a machine that follows


class Started:
    """Stands in for a child."""

    all: list["Started"] = []  # noqa: RUF012  one test at a time

    def __init__(self, *_: Any) -> None:
        self.process = self
        self.status: int | None = None
        self.stopped = self.killed = False
        Started.all.append(self)

    def poll(self) -> int | None:
        return self.status

    def stop(self) -> None:
        self.stopped, self.status = True, 143

    def kill(self) -> None:
        self.killed = True


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    Started.all = []
    monkeypatch.setattr("services.trainer.daemon.node.Child", Started)
    return Node(from_environment({}), "track", machines.Machines(1, 2, 1, "127.0.0.1", 1))


def answering(monkeypatch: pytest.MonkeyPatch, answers: bool) -> None:
    monkeypatch.setattr(machines.Machines, "first_answers", lambda _self: answers)


def test_it_waits_until_the_first_machine_has_a_round(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """And joins every round once."""
    answering(monkeypatch, answers=False)
    node.tick(0.0)
    assert not Started.all
    answering(monkeypatch, answers=True)
    node.tick(1.0)
    node.tick(2.0)
    assert len(Started.all) == 1
    Started.all[0].status = 0
    node.tick(3.0)
    node.tick(3.5)
    assert len(Started.all) == 2


def test_it_leaves_when_the_first_machine_is_gone(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL would wait for half an hour."""
    answering(monkeypatch, answers=True)
    node.tick(0.0)
    answering(monkeypatch, answers=False)
    node.tick(SILENCE - 1)
    assert not Started.all[0].stopped
    node.tick(SILENCE + 1)
    assert Started.all[0].stopped


def test_it_waits_longer_after_a_failure(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first machine does before it tries again."""
    answering(monkeypatch, answers=True)
    node.tick(0.0)
    Started.all[0].status = 1
    node.tick(1.0)
    node.tick(1.5)
    assert len(Started.all) == 1
    node.tick(3.5)
    assert len(Started.all) == 2


def test_an_open_port_is_an_answer() -> None:
    """Whoever listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert machines.Machines(1, 2, 1, "127.0.0.1", port).first_answers()
    assert not machines.Machines(1, 2, 1, "127.0.0.1", port).first_answers()
