"""`ratchet plan`."""

import json

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.cli.training import plan_hardware
from services.core.errors import ConfigurationError
from services.trainer import plan_config

GIB = 2**30


def ratchet(*arguments, **environment):
    return CliRunner().invoke(app, ["plan", *arguments], env=environment)


@pytest.fixture(autouse=True)
def no_gpu_here(monkeypatch, tmp_path):
    monkeypatch.setattr(plan_hardware, "_gpus_here", list)
    monkeypatch.setenv("CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("text", "count"),
    [("32GB", 32e9), ("32GiB", 32 * GIB), ("31.5 gib", 31.5 * GIB), ("80g", 80e9), ("40960MiB", 40 * GIB)],
)
def test_a_size_is_read_in_gb_and_gib(text, count):
    assert plan_hardware.size(text, "--vram") == count


@pytest.mark.parametrize("text", ["32", "GB", "-3GB", "0GB", "much", "32GBs"])
def test_a_size_that_is_none_is_named(text):
    with pytest.raises(ConfigurationError, match=f"--vram {text}: expected a number above 0 and a unit"):
        plan_hardware.size(text, "--vram")


def test_a_plan_says_what_is_chosen_what_else_there_is_and_where_memory_goes():
    told = ratchet("qwen14b-qlora", "--device", "H200").output
    assert "device  H200, 150.1 GB, 989 TFLOP/s bf16" in told
    assert "16 × 4,096" in told or "× 4,096 tokens" in told
    for part in ("weights", "adapters", "gradients", "optimizer", "activations", "logits", "scratch", "peak"):
        assert f"\n  {part}" in told
    assert "micro-batch  recomputed" in told
    assert "←" in told
    assert "MAX_LENGTH=4096" in told


def test_memory_alone_is_enough_and_speed_is_then_relative():
    told = ratchet("qwen14b-qlora", "--vram", "40GB").output
    assert "GPU of 40 GB, 40.0 GB, of unknown speed" in told
    assert "1.00× ←" in told
    assert "tokens/s" not in told


def test_json_has_the_plan_and_its_alternatives():
    told = json.loads(ratchet("qwen14b-qlora", "--device", "H200", "--gpus", "2", "--json").output)
    assert told["plan"]["fits"]
    assert told["plan"]["micro_batch"] * told["plan"]["micro_batches"] == 16
    assert told["device"]["devices"] == 2
    assert {other["micro_batch"] for other in told["alternatives"]} == {1, 2, 4, 8, 16}


def test_what_does_not_fit_is_an_error_of_one_line():
    done = ratchet("qwen14b-qlora", "--vram", "16GB")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("ratchet: recipe qwen14b-qlora does not fit GPU of 16 GB")
    assert len(done.stderr.splitlines()) == 1


def test_without_a_gpu_the_plan_is_for_the_cpu_and_says_so():
    told = ratchet("demo").output
    assert told.startswith("There is no GPU here")
    assert "--vram" in told.splitlines()[0]
    assert "device  CPU with" in told


def test_without_a_recipe_the_one_that_recipe_names_is_planned():
    assert json.loads(ratchet("--json", RECIPE="demo").output)["recipe"] == "demo"


def test_a_plan_for_the_cpu_says_when_its_memory_is_too_small():
    assert "does not fit: peak" in ratchet("qwen14b-qlora").output
    assert "does not fit" not in ratchet("demo").output


def test_a_gpu_that_is_here_is_planned_for(monkeypatch):
    monkeypatch.setattr(plan_hardware, "_gpus_here", lambda: [("NVIDIA H200", 140 * GIB)] * 2)
    told = json.loads(ratchet("qwen14b-qlora", "--json").output)
    assert (told["device"]["name"], told["device"]["devices"]) == ("H200", 2)
    assert told["device"]["memory_bytes"] == 140 * GIB
    assert json.loads(ratchet("qwen14b-qlora", "--gpus", "1", "--json").output)["device"]["devices"] == 1


def test_the_driver_is_asked_for_names_and_memory(monkeypatch, tmp_path):
    monkeypatch.undo()
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771'\necho 'NVIDIA H200, 143771'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert plan_hardware._gpus_here() == [("NVIDIA H200", 143771 * 2**20)] * 2
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert plan_hardware._gpus_here() == []


def test_overrides_from_the_environment_count():
    told = json.loads(ratchet("qwen14b-qlora", "--vram", "60GB", "--json", LORA_R="64").output)
    assert told["trainable"] == 275_251_200


def test_a_config_that_was_downloaded_goes_before_the_known_shapes(tmp_path):
    """As the hub's client lays out its cache."""
    folder = tmp_path / "huggingface" / "hub" / "models--Qwen--Qwen2.5-Coder-14B-Instruct"
    commit = folder / "snapshots" / "abc"
    commit.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    config = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 100,
    }  # fmt: skip
    (commit / "config.json").write_text(json.dumps(config))
    environment = {"HF_HOME": "", "HF_HUB_CACHE": ""}
    told = json.loads(ratchet("qwen14b-qlora", "--device", "H200", "--json", **environment).output)
    assert told["parameters"] < 1_000_000


def test_a_model_whose_config_is_nowhere_is_an_error_that_names_it(tmp_path, monkeypatch):
    recipe = tmp_path / "own.yaml"
    recipe.write_text("base_model: nobody/nothing\nmethod: lora\n")
    monkeypatch.setattr(plan_config, "hub_answers", lambda: False)
    done = ratchet(str(recipe), "--device", "H200")
    assert done.exit_code == 1
    assert "base_model nobody/nothing: its config.json is not in" in done.stderr
    assert "does not answer" in done.stderr


def test_a_damaged_config_is_an_error_that_names_its_path(tmp_path):
    (tmp_path / "config.json").write_text("{")
    recipe = tmp_path / "own.yaml"
    recipe.write_text(f"base_model: {tmp_path}\nmethod: lora\n")
    done = ratchet(str(recipe), "--device", "H200")
    assert f"base_model {tmp_path}: {tmp_path}/config.json cannot be read" in done.stderr


def test_a_team_has_a_plan_of_updates_and_rollouts_and_of_what_is_unknown():
    told = ratchet("qwen1.5b-marl", "--device", "H200", "--gpus", "2").output
    assert "2 roles on one base" in told
    assert "one of the 2: a round with objective=reinforcement runs on one device" in told
    assert "can be written at once" in told
    assert "Not known before: how long it takes" in told
    assert "tokens/s" not in told


def test_json_of_a_team_has_the_same_keys():
    told = json.loads(ratchet("qwen1.5b-marl", "--device", "H200", "--json").output)
    other = json.loads(ratchet("qwen14b-qlora", "--device", "H200", "--json").output)
    assert other.keys() - told.keys() == {"sample_tokens"}
    assert told["plan"]["fits"]
