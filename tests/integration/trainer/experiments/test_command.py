"""`ratchet experiment` from start to report with a tiny random model: killed, gone on with, shown."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from services.core.settings import PROJECT
from tests import tiny_model

EXPERIMENT = """\
overrides:
  base_model: {model}
  method: lora
  lora_r: 4
  learning_rate: 0.02
  max_length: 1024
  batch_size: 1
  gradient_accumulation_steps: 1
arms:
  control: {{train: plain}}
  experiment: {{train: annotated, prompts: [plain, annotated]}}
only: [HumanEval/23, HumanEval/28, HumanEval/45, HumanEval/53]
check_samples: 0
folds: 2
samples: 2
k: [1, 2]
max_new_tokens: 4
"""


@pytest.fixture
def ratchet(tmp_path: Path):
    """Run `ratchet experiment …` with a home of its own."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "RATCHET_HOME": str(tmp_path / "home"),
            "CACHE_DIR": str(tmp_path / "cache"),
            "ALLOW_UNSANDBOXED": "1",  # four tokens of a random model; the sandbox has its own tests
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        }
        return subprocess.run(
            [sys.executable, "-m", "services.cli.main", "experiment", *words],
            cwd=PROJECT,
            env={**os.environ, **environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def file(tmp_path: Path) -> str:
    model = tiny_model.make(tmp_path / "model", instruct=False)
    path = tmp_path / "tiny.yaml"
    path.write_text(EXPERIMENT.format(model=model), encoding="utf-8")
    return str(path)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_experiment_goes_on_to_its_report(ratchet, file: str, tmp_path: Path) -> None:
    """Killed in the middle of its first trial's programs; then run to the end, shown, and run once more."""
    root = tmp_path / "home" / "experiments" / "tiny"
    killed = ratchet("run", file, RATCHET_FAILPOINT="experiment.while_writing")
    assert killed.returncode == -signal.SIGKILL % 256
    trained = root / "all" / "control" / "seed-1" / "fold-1"
    began = (trained / "training.json").stat().st_mtime_ns
    assert not (trained / "done.json").exists()

    done = ratchet("run", file, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [one["variant"] for one in report["variants"]] == [
        "control/plain",
        "experiment/plain",
        "experiment/annotated",
    ]
    assert report["problems"] == 4
    assert len(report["differences"]) == 4
    assert (trained / "training.json").stat().st_mtime_ns == began
    assert len(list(root.glob("all/*/seed-*/fold-*/done.json"))) == 12
    assert not list(root.rglob("adapter"))
    assert (root / "report.html").is_file()

    shown = ratchet("show", file)
    assert "No difference could be shown between experiment and control" in " ".join(shown.stdout.split())


def test_a_mistake_is_said_before_anything_is_loaded(ratchet, file: str) -> None:
    path = Path(file)
    path.write_text(path.read_text(encoding="utf-8") + "fold: 3\n", encoding="utf-8")
    failed = ratchet("run", file)
    assert failed.returncode == 1
    assert "fold is not a field: did you mean folds?" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_experiments_that_ship_are_listed(ratchet) -> None:
    listed = json.loads(ratchet("list", "--json").stdout)["experiments"]
    assert [one["name"] for one in listed] == ["demo-metadata", "humaneval-metadata", "smollm-metadata"]
    assert all(one["done"] == 0 < one["trials"] for one in listed)
    missing = ratchet("show", "demo-metadata")
    assert missing.returncode == 1
    assert "has no report yet, 0 of 12 trials are done" in missing.stderr
