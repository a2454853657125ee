"""W&B and TensorBoard, the real libraries, without a network."""

import json
import logging
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wandb.proto.wandb_internal_pb2 import Record

from services.core.settings import Settings
from services.trainer.predictions import Prediction
from services.trainer.tracking import Trackers, wandb_mode
from tests.unit.trainer.engine import tiny

BLOCK, HEADER, FILE_HEADER = 32768, 7, 7  # bytes of a .wandb file: LevelDB's log format after a header
WRITING = 30.0  # seconds
FULL, LAST = 1, 4  # types of its chunks that end a record


def settings(folder: Path, **more: str) -> Settings:
    return Settings.model_validate({"logs_dir": folder, **more})


def test_without_a_key_wandb_is_offline() -> None:
    """Nothing leaves the machine unless it was asked for."""
    assert wandb_mode(Settings()) == "offline"
    assert wandb_mode(Settings.model_validate({"wandb_api_key": "k"})) == "online"
    assert wandb_mode(Settings.model_validate({"wandb_api_key": "k", "wandb_mode": "offline"})) == "offline"


def records(path: Path) -> Iterator[bytes]:
    """The records of a LevelDB log, put together from their chunks."""
    content, at, record = path.read_bytes(), FILE_HEADER, b""
    while at + HEADER <= len(content):
        left = BLOCK - at % BLOCK
        if left < HEADER:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", content, at)
        if at + HEADER + size > len(content):
            return  # it is being written
        record += content[at + HEADER : at + HEADER + size]
        at += HEADER + size
        if kind in (FULL, LAST):
            yield record
            record = b""


def history(folder: Path) -> list[dict[str, Any]]:
    """What an offline run logged, step by step, as `wandb sync` would send it.

    wandb's own process writes the file, and ends it a moment after the run was finished.
    """
    (path,) = (folder / "wandb").glob("wandb/offline-run-*/*.wandb")
    deadline = time.monotonic() + WRITING
    while True:
        found = [Record.FromString(content) for content in records(path)]
        if any(record.HasField("exit") for record in found):
            break
        assert time.monotonic() < deadline, f"{path} has no end after {WRITING} s"
        time.sleep(0.05)
    return [
        {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
        for record in found
        if record.HasField("history")
    ]


def test_an_offline_run_read_back_has_every_figure(tmp_path: Path) -> None:
    """Loss, evaluation, learning rate, gradient norm, tokens/s and the table of predictions."""
    trackers = Trackers(settings(tmp_path), "demo", "round-0001", {"lora_r": 16})
    assert trackers.shows_tables
    one = tiny.Round(tmp_path / "round", tiny.recipe())
    training = one.train()
    for kind, step, metrics in one.logged:
        trackers.log({f"{kind}/{name}": value for name, value in metrics.items()}, step)
    trackers.table([Prediction(7, "def f(", "x):", "y):")], training.steps)
    trackers.close()
    steps = history(tmp_path)
    logged = {name for step in steps for name in step}
    assert {"train/loss", "train/learning_rate", "train/grad_norm", "train/tokens_per_s"} <= logged
    assert {"eval/eval_loss", "eval/bits_per_byte"} <= logged
    assert any(name.startswith("predictions") for name in logged)
    losses = [step["train/loss"] for step in steps if "train/loss" in step]
    assert losses == pytest.approx([m["loss"] for kind, _, m in one.logged if kind == "train"])
    (table,) = (tmp_path / "wandb").rglob("predictions*.table.json")
    assert json.loads(table.read_text())["data"] == [[7, "def f(", "x):", "y):"]]
    assert list((tmp_path / "tensorboard" / "demo" / "round-0001").glob("events.*"))


def test_a_figure_that_is_not_finite_is_left_out(tmp_path: Path) -> None:
    """A curve has no place for it."""
    trackers = Trackers(settings(tmp_path), "demo", "round-0001", {})
    trackers.log({"train/loss": 1.5, "train/grad_norm": float("nan")}, 1)
    trackers.close()
    (step,) = [one for one in history(tmp_path) if "train/loss" in one]
    assert "train/grad_norm" not in step


def test_a_tracker_that_fails_is_said_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A log folder that is a file stops neither tracker's round."""
    blocked = tmp_path / "logs"
    blocked.write_text("")
    with caplog.at_level(logging.WARNING):
        trackers = Trackers(settings(blocked), "demo", "round-0001", {})
        trackers.log({"train/loss": 1.5}, 1)
        trackers.close()
    assert "W&B does not start" in caplog.text
    assert "TensorBoard does not start" in caplog.text
