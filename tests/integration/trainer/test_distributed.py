"""Two processes over gloo train as one does: replicated, split, with adapters and in full."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from services.core.settings import PROJECT
from services.trainer import failure
from tests import tiny_model as tiny
from tests.integration.trainer.distributed_worker import CASES

WORKER = str(Path(__file__).with_name("distributed_worker.py"))
PEER = str(Path(__file__).with_name("peer_worker.py"))
LAUNCH = ("-m", "services.trainer.launch", "--nproc-per-node", "2", "--max-restarts", "0")
ALONE = {"full-zero2": "full"}  # cases that are another one when a process is alone
KINDS = {"lora": "Replicated", "pissa": "Replicated", "qlora": "Replicated"}  # all others are split
pytestmark = pytest.mark.slow


def start(*command: str, folder: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, *command], env=environment, cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def run(*command: str, folder: Path) -> tuple[int, str]:
    process = start(*command, folder=folder)
    output, _ = process.communicate(timeout=110)
    return process.returncode, output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one process and two have run every case."""
    made = tmp_path_factory.mktemp("distributed")
    tiny.make(made / "tiny")
    alone = run(WORKER, str(made), *(case for case in CASES if case not in ALONE), folder=made)
    assert alone[0] == 0, alone[1]
    two = run(*LAUNCH, WORKER, str(made), *CASES, folder=made)
    assert two[0] == 0, two[1]
    return made


def result(folder: Path, case: str, world: int) -> dict[str, Any]:
    name = ALONE.get(case, case) if world == 1 else case
    return dict(json.loads((folder / f"{name}-{world}.json").read_text()))


@pytest.mark.parametrize("case", CASES)
def test_two_processes_have_the_losses_and_norms_of_one(case: str, folder: Path) -> None:
    """The same rows a step, shared out: the same training, to rounding."""
    one, two = result(folder, case, 1), result(folder, case, 2)
    assert two["kind"] == KINDS.get(case, "Sharded")
    for name in ("before", "after"):
        assert two[name] == pytest.approx(one[name], abs=1e-4)
    for mine, others in zip(two["steps"], one["steps"], strict=True):
        assert mine == pytest.approx(others, abs=1e-4)
    assert one["before"] != pytest.approx(one["after"], abs=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_a_training_goes_on_from_its_parts_as_if_never_interrupted(case: str, folder: Path) -> None:
    """Bit for bit, from safetensors of what each process has."""
    two = result(folder, case, 2)
    assert two["again"] == two["steps"][2:]


@pytest.mark.parametrize("case", ["full", "full-zero2", "full-as-on-a-gpu"])
def test_a_split_model_is_half_in_each_process_and_begins_again_from_what_it_published(
    case: str, folder: Path
) -> None:
    """Masters, and so gradients and moments, are held once; what is published is what was judged."""
    one, two = result(folder, case, 1), result(folder, case, 2)
    assert two["part"] * 2 == one["part"]
    assert two["begun"] == two["after"]


@pytest.mark.parametrize("case", CASES)
def test_two_processes_publish_what_one_does(case: str, folder: Path) -> None:
    """Loaded by transformers and PEFT alone."""

    @torch.no_grad()
    def logits(world: int) -> torch.Tensor:
        path = folder / f"{ALONE.get(case, case) if world == 1 else case}-{world}"
        if CASES[case]["method"] == "full":
            served = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        else:
            base = AutoModelForCausalLM.from_pretrained(folder / "tiny", dtype=torch.float32)
            served = PeftModel.from_pretrained(base, str(path))
        return served.eval()(torch.arange(3, 40)[None]).logits

    tolerance = 2e-3 if CASES[case]["method"] == "full" else 1e-4  # a bf16 weight may round the other way
    torch.testing.assert_close(logits(2), logits(1), atol=tolerance, rtol=tolerance)


def test_processes_agree(tmp_path: Path) -> None:
    """On what the first gets, on whether any wants to stop, on sums in double precision."""
    status, output = run(*LAUNCH, PEER, str(tmp_path), "words", folder=tmp_path)
    assert status == 0, output
    both = [json.loads((tmp_path / f"words-{rank}.json").read_text()) for rank in range(2)]
    for said in both:
        assert said["agreed"] == {"rank": 0}
        assert said["any"] == [True, False]
        assert said["sum"] == pytest.approx([3.0, 0.3], abs=1e-15)
    assert [said["heard"] for said in both] == 2 * ["PublishError: the first process's own words"]


def test_a_process_that_fails_ends_all_and_is_heard_first(tmp_path: Path) -> None:
    """The other one loses its peer, and says so; but the cause is what is reported."""
    status, output = run(*LAUNCH, PEER, str(tmp_path), "die", folder=tmp_path)
    assert status == 1, output
    first = failure.first(tmp_path)
    assert first is not None
    assert (first.rank, first.message) == (1, "the second process's own words")


def test_told_to_stop_all_processes_leave(tmp_path: Path) -> None:
    """Whatever they were waiting for, and would wait for without end."""
    process = start(*LAUNCH, PEER, str(tmp_path), "hang", folder=tmp_path)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("hangs-*"))) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
