"""SIGTERM in every phase of a round: saved and out, and finished later."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.core.db import Database
from services.core.settings import PROJECT
from services.trainer.ledger import LEASE_VARIABLE, Ledger
from services.trainer.recipes import files as recipe_files
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_round import closed

PHASES = {  # a function of the round, and at which of its calls the signal comes
    "loading the tokenizer": "services.trainer.model.locate AutoTokenizer.from_pretrained 1",
    "making samples": "services.trainer.rows make 1",
    "loading the model": "services.trainer.model.load AutoModelForCausalLM.from_pretrained 1",
    "measuring the base": "services.trainer.evaluate _sample_sums 2",
    "in the middle of accumulation": "services.trainer.engine.compute Compute.loss 6",
    "evaluating": "services.trainer.engine.state TrainingState.after_evaluation 1",
    "while saving": "services.trainer.checkpoints seal 1",
    "judging": "services.trainer.rounds _verdict 1",
}
# Imports all that a round needs, once. For every line on standard input a round in a fork of itself, in
# which the named function sends the process SIGTERM before it does its work, as the daemon would.
ROUNDS = """
import importlib, os, signal, sys
from services.trainer import round_process

def send_at(module, path, call):
    holder, calls = importlib.import_module(module), 0
    *parents, name = path.split(".")
    for parent in parents:
        holder = getattr(holder, parent)
    inner = getattr(holder, name)
    def sending(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == int(call):
            print("sending", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGTERM)
        return inner(*args, **kwargs)
    setattr(holder, name, sending)

for line in sys.stdin:
    pid = os.fork()
    if not pid:
        try:
            send_at(*line.split())
            round_process.leave(round_process.main())
        finally:
            os._exit(1)
    print("left", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=sys.stderr, flush=True)
"""


@pytest.fixture
def recipe_file(tiny_model: Path, tmp_path: Path) -> Path:
    """Steps of two micro-batches, for one to be interrupted between."""
    from tests import tiny_model as tiny

    path = tiny.recipe(tmp_path, tiny_model)
    fields = path.read_text().replace("gradient_accumulation_steps: 1", "gradient_accumulation_steps: 2")
    path.write_text(fields.replace("eval_steps: 5", "eval_steps: 2"))
    return path


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_sigterm_in_any_phase_saves_and_leaves(
    trainer: Trainer, recipe_file: Path, store: Callable[[list[str]], None], database: Database
) -> None:
    """One round, interrupted eight times, each time somewhere else: it goes on and ends as any other."""
    store(standard_library(60))
    recipe = recipe_files.load(str(recipe_file))
    lease = Ledger(database, recipe.name).take(recipe, "test")
    assert lease is not None
    rounds = subprocess.Popen(
        [sys.executable, "-c", ROUNDS],
        env={**trainer._environment, LEASE_VARIABLE: str(lease.token), "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    said: list[str] = []

    def until(word: str) -> str:
        """The first line from now on that begins so."""
        for line in rounds.stderr:
            said.append(line)
            if line.startswith(word):
                return line
        raise AssertionError("".join(said))

    try:
        for phase, where in PHASES.items():
            rounds.stdin.write(f"{where}\n")
            rounds.stdin.flush()
            until("sending")
            assert until("left") == f"left {128 + signal.SIGTERM}\n", (phase, said)
            assert closed(database) == [], phase
        rounds.stdin.write("os getpid 0\n")
        rounds.stdin.close()
        assert until("left") == "left 0\n", said
    finally:
        rounds.kill()
        rounds.wait()
    (round_,) = closed(database)
    assert round_.state == "promoted", round_.verdict
    assert any("going on after step" in line for line in said)
