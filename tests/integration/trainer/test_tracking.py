"""W&B and TensorBoard, the real libraries, without a network."""

import logging
from pathlib import Path

import pytest

from services.core.settings import Settings
from services.trainer.tracking import Trackers, wandb_mode


def settings(folder: Path, **more: str) -> Settings:
    return Settings.model_validate({"logs_dir": folder, **more})


def test_without_a_key_wandb_is_offline() -> None:
    """Nothing leaves the machine unless it was asked for."""
    assert wandb_mode(Settings()) == "offline"
    assert wandb_mode(Settings.model_validate({"wandb_api_key": "k"})) == "online"
    assert wandb_mode(Settings.model_validate({"wandb_api_key": "k", "wandb_mode": "offline"})) == "offline"


def test_an_offline_run_and_tensorboard_events_are_written(tmp_path: Path) -> None:
    """What was logged can be synced and looked at later."""
    trackers = Trackers(settings(tmp_path), "demo", "round-0001", {"lora_r": 16})
    trackers.log({"train/loss": 1.5, "train/grad_norm": float("nan")}, 1)
    trackers.close()
    assert list((tmp_path / "wandb").glob("wandb/offline-run-*/*.wandb"))
    assert list((tmp_path / "tensorboard" / "demo" / "round-0001").glob("events.*"))


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
