"""W&B and TensorBoard, the real libraries, without a network."""

import json
import logging
import socket
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from services.core.settings import Settings
from services.trainer.predictions import Prediction
from services.trainer.tracking import HOST, KEPT, Named, Trackers, wandb_mode
from tests.offline_wandb import history, runs, written
from tests.unit.trainer.engine import tiny


def settings(folder: Path, **more: str) -> Settings:
    return Settings.model_validate({"logs_dir": folder, **more})


def named(folder: Path, **config: object) -> Named:
    return Named("demo", "round-0001", config, folder / "checkpoints")


def test_without_a_key_wandb_is_offline() -> None:
    """Nothing leaves the machine unless it was asked for."""
    assert wandb_mode(Settings()) == "offline"
    assert wandb_mode(Settings.model_validate({"wandb_api_key": "k"})) == "online"
    assert wandb_mode(Settings.model_validate({"wandb_api_key": "k", "wandb_mode": "offline"})) == "offline"


def test_an_offline_run_read_back_has_every_figure(tmp_path: Path) -> None:
    """Loss, evaluation, learning rate, gradient norm, tokens/s and the table of predictions."""
    trackers = Trackers(settings(tmp_path), named(tmp_path, lora_r=16))
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


def test_a_run_says_which_round_it_is_and_no_more_than_that_of_this_machine(tmp_path: Path) -> None:
    """Grouped by track, named by track and round, with the recipe; no code, host, user or command line."""
    more = {"wandb_project": "code", "wandb_entity": "us"}
    trackers = Trackers(settings(tmp_path, **more), named(tmp_path, lora_r=16, snapshot_hash="c0ffee"))
    trackers.close()
    (path,) = runs(tmp_path)
    (run,) = [record.run for record in written(path) if record.HasField("run")]
    assert (run.project, run.entity, run.run_group) == ("code", "us", "demo")
    assert (run.display_name, run.job_type) == ("demo-round-0001", "round")
    config = {one.key: json.loads(one.value_json) for one in run.config.update}
    assert (config["lora_r"], config["snapshot_hash"]) == (16, "c0ffee")
    assert run.host == HOST
    assert not run.git.remote_url
    assert not list(path.parent.rglob("wandb-metadata.json"))
    content = b"".join(one.read_bytes() for one in path.parent.rglob("*") if one.is_file())
    assert socket.gethostname().encode() not in content
    assert b"test_tracking" not in path.read_bytes()


def test_a_round_that_goes_on_goes_on_in_the_same_run_and_says_nothing_twice(tmp_path: Path) -> None:
    """What it does again after an interruption, bit for bit, is in the curve already."""
    for steps in (range(1, 6), range(4, 9)):  # killed after step 5, gone on from the checkpoint of step 3
        trackers = Trackers(settings(tmp_path), named(tmp_path))
        for step in steps:
            trackers.log({"train/loss": 1.0 / step}, step)
        trackers.close()
    first, second = runs(tmp_path)
    assert first.name == second.name
    kept = json.loads((tmp_path / "checkpoints" / KEPT).read_text())
    assert first.name == f"run-{kept['id']}.wandb"
    logged = [step["_step"] for number in range(2) for step in history(tmp_path, number)]
    assert sorted(set(logged)) == list(range(1, 9))
    assert len(logged) <= 9  # the last step before the interruption may be there twice
    assert curve(tmp_path, "train/loss") == [(step, pytest.approx(1.0 / step)) for step in range(1, 9)]


def curve(folder: Path, tag: str) -> list[tuple[int, float]]:
    """What TensorBoard shows."""
    found = EventAccumulator(str(folder / "tensorboard" / "demo" / "round-0001"))
    found.Reload()
    return [(point.step, point.value) for point in found.Scalars(tag)]


def test_another_round_is_another_run(tmp_path: Path) -> None:
    """Also of the same track and number, in another Ratchet that sends to the same project."""
    for folder in ("one", "two"):
        Trackers(settings(tmp_path), named(tmp_path / folder)).close()
    assert len({path.name for path in runs(tmp_path)}) == 2


def test_wandb_that_is_switched_off_is_not_even_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes a second and starts a process."""
    monkeypatch.setitem(sys.modules, "wandb", None)  # an import of it would fail, and be said
    trackers = Trackers(settings(tmp_path, wandb_mode="disabled"), named(tmp_path))
    trackers.log({"train/loss": 1.0}, 1)
    trackers.close()
    assert "W&B" not in caplog.text
    assert not (tmp_path / "wandb").exists()


def test_a_figure_that_is_not_finite_is_left_out(tmp_path: Path) -> None:
    """A curve has no place for it."""
    trackers = Trackers(settings(tmp_path), named(tmp_path))
    trackers.log({"train/loss": 1.5, "train/grad_norm": float("nan")}, 1)
    trackers.close()
    (step,) = [one for one in history(tmp_path) if "train/loss" in one]
    assert "train/grad_norm" not in step


def test_a_tracker_that_fails_is_said_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A log folder that is a file stops neither tracker's round."""
    blocked = tmp_path / "logs"
    blocked.write_text("")
    with caplog.at_level(logging.WARNING):
        trackers = Trackers(settings(blocked), named(tmp_path))
        trackers.log({"train/loss": 1.5}, 1)
        trackers.close()
    assert "W&B does not start" in caplog.text
    assert "TensorBoard does not start" in caplog.text
