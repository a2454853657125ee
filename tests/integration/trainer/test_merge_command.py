"""`ratchet merge` with a tiny model: on NF4 as trained, on the full base, and merged, measured alike."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from services.cli import environment
from services.cli.asking import connection, modelprocess
from services.cli.using import merge
from services.core.errors import ConfigurationError, DatabaseUnavailableError, PublishError
from services.core.models import Json
from services.trainer import publish, subjects
from services.trainer.answering import loading, question
from services.trainer.merging import __main__ as child
from services.trainer.merging import cost
from services.trainer.subjects import Subject
from tests.published_adapter import Published, published

IDS = torch.arange(3, 40)[None]  # (1, T)


@pytest.fixture
def made(tiny_model: Path, tmp_path: Path) -> Published:
    return published(tmp_path, tiny_model, method="qlora")


def sent(output: Path, **fields: object) -> Json:
    return {"subject": "champion", "output": str(output), "check": True, "contents": [], **fields}


def test_three_ways_of_having_the_adapter_are_measured_alike(
    made: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What NF4 changes shows; what merging changes is the rounding of weights."""
    monkeypatch.setattr(cost, "WRITTEN", 4)
    found = child.merged(sent(tmp_path / "merged"), made.settings)
    trained, full, merged = (arm["bits_per_byte"] for arm in found["arms"])
    assert [arm["name"] for arm in found["arms"]] == [cost.TRAINED, cost.FULL, cost.MERGED]
    assert abs(merged - full) < 1e-4 < abs(full - trained)
    of_merging = merge.against(found, cost.MERGED, cost.FULL)
    assert of_merging is not None
    assert of_merging["same"] == of_merging["answers"] > 0
    assert "fixed texts" in found["measured_by"]


@torch.no_grad()
def test_what_is_written_is_a_model_of_its_own(made: Published, tmp_path: Path) -> None:
    """Plain transformers loads it, its manifest says what it is made from, `generate` takes it."""
    folder = tmp_path / "merged"
    child.merged(sent(folder, check=False), made.settings)
    base = AutoModelForCausalLM.from_pretrained(made.recipe.base_model)
    expected = PeftModel.from_pretrained(base, str(made.folder))(IDS).logits
    torch.testing.assert_close(
        AutoModelForCausalLM.from_pretrained(folder)(IDS).logits, expected, atol=2e-5, rtol=1e-4
    )
    manifest = publish.verify(folder)
    assert (manifest["kind"], manifest["merged"]["adapter"]) == ("model", made.folder.name)
    assert manifest["merged"]["files"] == publish.verify(made.folder)["files"]
    request = {"max_new_tokens": 4, "stop": []}
    asked = {"subject": str(folder), "request": request, "prompt": "def f(", "chat": False}
    assert question.answered(asked, made.settings)["completions"][0]["text"]
    assert not (tmp_path / ".seals").exists()


def test_without_room_nothing_is_begun(
    made: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child.psutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**6, 10**6, 0))
    with pytest.raises(PublishError, match="GiB free: make room"):
        child.merged(sent(tmp_path / "merged"), made.settings)
    assert not (tmp_path / "merged").exists()


def test_without_memory_to_measure_it_is_said_before(
    made: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "memory_needed", lambda _: 2**60)
    with pytest.raises(ConfigurationError, match="--no-check"):
        child.merged(sent(tmp_path / "merged"), made.settings)
    assert not (tmp_path / "merged").exists()


def test_a_disk_that_fills_up_leaves_nothing(
    made: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("services.trainer.merging.merge.save_file", full)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(PublishError, match="No space left"):
        child.merged(sent(tmp_path / "merged"), made.settings)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["base", "model"])
def test_what_is_no_adapter_is_not_merged(made: Published, tmp_path: Path, name: str) -> None:
    subject = "base" if name == "base" else made.recipe.base_model
    with pytest.raises(ConfigurationError, match="nothing to merge"):
        child.merged(sent(tmp_path / "merged", subject=subject), made.settings)


def test_the_command_sends_what_is_to_be_merged(
    made: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a database there is no held-out code in it."""
    asked: Json = {}
    monkeypatch.setattr(modelprocess, "ask", lambda _, module, sent: asked.update({module: sent}) or {"a": 1})
    monkeypatch.setattr(connection, "opened", no_database)
    variables = {"ADAPTERS_DIR": str(made.settings.adapters_dir), "RECIPE": made.settings.recipe}
    here = environment.read(variables, project=tmp_path)
    merge.run(here, "champion", tmp_path / "out", check=True, force=False, as_json=True)
    assert asked == {merge.CHILD: sent(tmp_path / "out")}
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def no_database(*_: object, **__: object) -> None:
    raise DatabaseUnavailableError("none")


def test_questions_of_held_out_code_where_there_is_some(made: Published) -> None:
    """Half of the completions are lines, half blocks, of the contents that are given."""
    from services.trainer.samples.source import SampleSource
    from tests.integration.trainer.conftest import standard_library

    texts = standard_library(4)
    contents = [SampleSource(at, bytes([at]) * 32, "python", text, 90) for at, text in enumerate(texts)]
    subject: Subject = subjects.resolve("champion", made.settings)
    asked = cost.questions(contents, subject, loading.load_tokenizer(subject, made.settings))
    assert len(asked.prompts) == cost.PROMPTS
    assert asked.said == f"4 held-out files, {cost.PROMPTS} completions of them"
