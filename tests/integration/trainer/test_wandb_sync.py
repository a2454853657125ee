"""What was tracked offline arrives at W&B when it is sent as the documentation says, and nothing else."""

import getpass
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.core.settings import PROJECT, Settings
from services.trainer.predictions import Prediction
from services.trainer.tracking import Named, Trackers
from tests.documents import blocks
from tests.offline_wandb import runs, written
from tests.wandb_server import Run, WandbServer

PAGE = PROJECT / "docs" / "how-to" / "track.md"
KEY = "c0ffee" + "9d81a7e3" * 4 + "42"
SECRETS = {  # of whoever trains: in its settings, and in the environment
    "HF_TOKEN": "hf_" + "PLantedAbCdEf0123456789GhIjKlMnOp",
    "POSTGRES_PASSWORD": "Tr4in-pLanted-7f3Kq9",
    "WEBHOOK_SECRET": "whsec_" + "cGxhbnRlZC1wbGFudGVkLXBsYW50ZWQtcGxhbnRlZA==",
    "DASHBOARD_TOKEN": "dash-Planted-55aQz0-token",
}
STEPS, INTERRUPTED, AGAIN = 8, 5, 4  # killed after step 5, gone on from the checkpoint of step 3


@dataclass(frozen=True)
class Sent:
    """What a server has of a round that was tracked offline, interrupted once, and then sent."""

    server: WandbServer
    said: str  # by the commands, all together
    folder: Path  # in which they were typed

    @property
    def run(self) -> Run:
        (run,) = self.server.runs.values()
        return run


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sent]:
    folder = tmp_path_factory.mktemp("tracked")
    with pytest.MonkeyPatch.context() as patch:
        for name, secret in SECRETS.items():
            patch.setenv(name, secret)
        _track(folder)
    for path in runs(folder / "logs"):
        written(path)  # it has its end
    with WandbServer().running() as server:
        yield Sent(server, _type_what_the_page_says(folder, server.url), folder)


def _track(folder: Path) -> None:
    fields = {name.lower(): secret for name, secret in SECRETS.items()}
    settings = Settings.model_validate(
        {**fields, "logs_dir": folder / "logs", "wandb_project": "code", "wandb_entity": "us"}
    )
    round_ = Named("demo", "round-0001", {"lora_r": 16, "snapshot_hash": "c0ffee"}, folder / "checkpoints")
    for steps in (range(1, INTERRUPTED + 1), range(AGAIN, STEPS + 1)):
        trackers = Trackers(settings, round_)
        for step in steps:
            trackers.log({"train/loss": 1.0 / step}, step)
        trackers.table([Prediction(7, "def f(", "x):", "y):")], steps[-1])
        trackers.close()


def _type_what_the_page_says(folder: Path, url: str) -> str:
    """Every command line about W&B, in a shell, as a person who has a key does."""
    (block,) = [each for each in blocks(PAGE) if any(line.startswith("wandb ") for line in each.lines)]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder / "home"),
        "WANDB_BASE_URL": url, "WANDB_API_KEY": KEY, "WANDB_ERROR_REPORTING": "false",
    }  # fmt: skip
    (folder / "home").mkdir()
    said = ""
    for line in block.lines:
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        said += done.stdout + done.stderr
        assert done.returncode == 0, f"{shlex.split(line)}: {said}"
    return said


def test_the_run_arrives_under_its_names(sent: Sent) -> None:
    """Entity, project, name, group, type of job and configuration are those of the round."""
    said = sent.run.said
    assert (said["entity"], said["project"]) == ("us", "code")
    assert (said["displayName"], said["groupName"], said["jobType"]) == ("demo-round-0001", "demo", "round")
    assert (sent.run.config["lora_r"], sent.run.config["snapshot_hash"]) == (16, "c0ffee")


def test_its_whole_curve_arrives_in_its_order(sent: Sent) -> None:
    """Though the round was interrupted, and lies in several folders."""
    losses = [(row["_step"], row["train/loss"]) for row in sent.run.history if "train/loss" in row]
    assert dict(losses) == {step: pytest.approx(1.0 / step) for step in range(1, STEPS + 1)}
    assert losses == sorted(losses)


def test_its_table_of_predictions_arrives(sent: Sent) -> None:
    tables = [content for name, content in sent.server.files.items() if name.endswith(".table.json")]
    assert [json.loads(table)["data"] for table in tables] == 2 * [[[7, "def f(", "x):", "y):"]]]


def test_it_is_over(sent: Sent) -> None:
    """Each folder is marked as sent, so that it is not sent again, and the run as finished."""
    assert sent.run.exit_code == 0
    paths = runs(sent.folder / "logs")
    assert len(paths) == 2
    assert all(path.with_suffix(".wandb.synced").exists() for path in paths)


def test_the_server_was_asked_nothing_that_it_does_not_know(sent: Sent) -> None:
    """Else the client may have kept something back."""
    assert sent.server.unknown == []
    assert "ERROR" not in sent.said.upper()


def test_no_byte_that_was_sent_holds_a_secret(sent: Sent) -> None:
    """Of the trainer's; the key logs in, and is in no body."""
    assert sent.server.keys == {KEY}
    content = b"\n".join(sent.server.received)
    assert content.count(b"POST /graphql") > 2
    for secret in (KEY, *SECRETS.values()):
        assert secret.encode() not in content, secret
    assert all(secret not in sent.said for secret in (KEY, *SECRETS.values()))


def test_nothing_that_was_sent_names_the_machine_or_its_user(sent: Sent) -> None:
    """Neither as a word nor in a path: a name of two letters is in every other random id."""
    content = b"\n".join(sent.server.received).decode(errors="replace")
    for name in (re.escape(socket.gethostname()), f"/{re.escape(getpass.getuser())}/"):
        assert not re.search(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", content), name
    assert str(sent.folder) not in content
