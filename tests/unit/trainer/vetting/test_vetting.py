"""Folders made to harm are refused with a reason, before anything loads them; sound ones are not."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.core.errors import PublishError, UnsafeAdapterError
from services.core.settings import PROJECT
from services.trainer import publish, seals
from services.trainer.vetting import vet
from tests import tiny_adapter
from tests.unit.trainer.vetting import hostile

BASE = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
}  # fmt: skip


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    hostile.adapter(tmp_path / "folder")
    return tmp_path / "folder"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    hostile.model(tmp_path / "folder")
    return tmp_path / "folder"


def test_sound_folders_pass(tmp_path: Path) -> None:
    """What is harmed below is only what each one does."""
    for make in (hostile.adapter, hostile.model):
        make(tmp_path / make.__name__)
        vet(tmp_path / make.__name__)


@pytest.mark.parametrize("name", hostile.ADAPTERS)
def test_a_hostile_adapter_is_refused_with_its_reason(name: str, adapter: Path) -> None:
    harm, reason = hostile.ADAPTERS[name]
    harm(adapter)
    began = time.process_time()
    with pytest.raises(UnsafeAdapterError, match=reason):
        vet(adapter)
    assert time.process_time() - began < 1
    assert not (adapter.parent / hostile.MARKER).exists()


@pytest.mark.parametrize("name", hostile.ADAPTERS)
def test_hashes_that_are_right_make_nothing_safe(name: str, adapter: Path) -> None:
    """Whoever can write the files can write their manifest, and the seal."""
    harm, _ = hostile.ADAPTERS[name]
    harm(adapter)
    forged = json.dumps({"files": publish._hashes(adapter)})
    (adapter / publish.MANIFEST).write_text(forged)
    seals.seal(adapter, seals.state(adapter))
    for verify in (publish.verify, publish.verify_sealed):
        with pytest.raises(UnsafeAdapterError):
            verify(adapter)
    assert not (adapter.parent / hostile.MARKER).exists()


@pytest.mark.parametrize("name", hostile.MODELS)
def test_a_hostile_model_is_refused_with_its_reason(name: str, model: Path) -> None:
    harm, reason = hostile.MODELS[name]
    harm(model)
    with pytest.raises(UnsafeAdapterError, match=reason):
        vet(model)
    assert not (model.parent / hostile.MARKER).exists()


def test_the_pickles_are_live(tmp_path: Path) -> None:
    """The marker would be there if one of them were loaded."""
    import pickle

    (tmp_path / "folder").mkdir()
    hostile.pickled("x")(tmp_path / "folder")
    pickle.loads((tmp_path / "folder" / "x").read_bytes())
    assert (tmp_path / hostile.MARKER).exists()


@pytest.mark.parametrize(
    ("named", "base_model"),
    [
        ("Qwen/Qwen2.5-Coder-14B", "Qwen/Qwen2.5-Coder-14B"),
        ("/models/Qwen2.5-Coder-14B/", "Qwen/Qwen2.5-Coder-14B"),
        ("/cache/models/Tiny.Q4_1", "wheel:package/Tiny.Q4_1.gguf"),
        ("../up/tiny", "../up/tiny"),
    ],
)
def test_an_adapter_may_name_its_base_wherever_that_lies(named: str, base_model: str, adapter: Path) -> None:
    hostile.changed(hostile.CONFIG, base_model_name_or_path=named)(adapter)
    vet(adapter, base_model)


def test_an_adapter_for_another_base_is_refused(adapter: Path) -> None:
    hostile.changed(hostile.CONFIG, base_model_name_or_path="evil/Llama-3")(adapter)
    with pytest.raises(UnsafeAdapterError, match="expected Qwen/Qwen3-8B"):
        vet(adapter, "Qwen/Qwen3-8B")


def test_shapes_that_the_base_does_not_have_are_refused(adapter: Path) -> None:
    vet(adapter, base_config=BASE)
    with pytest.raises(UnsafeAdapterError, match="it is of another model"):
        vet(adapter, base_config={**BASE, "hidden_size": 128})


def test_a_rank_pattern_is_heeded(tmp_path: Path) -> None:
    tiny_adapter.make(tmp_path, rank=16, r=8, rank_pattern={"model.layers.0.self_attn.q_proj": 16})
    vet(tmp_path)


@pytest.mark.parametrize("key", ["../round-0000/adapter_model.safetensors", "/etc/passwd", "a/../../b"])
def test_a_manifest_that_leads_out_of_the_folder_is_refused(key: str, tmp_path: Path) -> None:
    publish.publish(tmp_path, "round-0001", tiny_adapter.make, {})
    path = tmp_path / "round-0001" / publish.MANIFEST
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "files": {**manifest["files"], key: "0" * 64}}))
    for verify in (publish.verify, publish.verify_sealed):
        with pytest.raises(UnsafeAdapterError, match="leads out of the folder"):
            verify(tmp_path / "round-0001")


@pytest.mark.parametrize(
    "manifest", ["{}", "[]", '{"files": 3}', "no JSON", '{"files": {}, "base_model": 3}']
)
def test_a_manifest_that_is_none_is_refused(manifest: str, tmp_path: Path) -> None:
    publish.publish(tmp_path, "round-0001", tiny_adapter.make, {})
    (tmp_path / "round-0001" / publish.MANIFEST).write_text(manifest)
    with pytest.raises(PublishError):
        publish.verify(tmp_path / "round-0001")


def test_what_is_refused_is_never_published(tmp_path: Path) -> None:
    """The folder that a round would publish is vetted before it gets its name."""

    def write(folder: Path) -> None:
        tiny_adapter.make(folder)
        hostile.pickled("training_args.bin")(folder)

    with pytest.raises(UnsafeAdapterError, match="pickle"):
        publish.publish(tmp_path, "round-0001", write, {})
    assert list(tmp_path.iterdir()) == []


def test_vetting_needs_no_torch() -> None:
    code = (
        "import sys, services.trainer.publish; print(*sys.modules.keys() & {'torch', 'transformers', 'peft'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_the_weights_are_not_read(tmp_path: Path) -> None:
    """A header and a hole of 4 TB behind it take no longer than any."""
    tiny_adapter.make(tmp_path)
    name = "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"
    size = 2**42
    one = {name: {"dtype": "F32", "shape": [8, size // 32], "data_offsets": [0, size]}}
    hostile.header(one)(tmp_path)
    with (tmp_path / hostile.WEIGHTS).open("r+b") as file:
        file.truncate(8 + len(json.dumps(one)) + size)
    began = time.process_time()
    with pytest.raises(UnsafeAdapterError, match="has no B"):
        vet(tmp_path)
    assert time.process_time() - began < 1


@settings(max_examples=50)
@given(st.binary(max_size=400))
def test_any_bytes_as_weights_are_refused_and_nothing_else_is_raised(tmp_path_factory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    tiny_adapter.make(folder)
    (folder / hostile.WEIGHTS).write_bytes(data)
    with pytest.raises(UnsafeAdapterError):
        vet(folder)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "peft_type", "r", "rank_pattern", "alpha_pattern", "target_modules", "modules_to_save", "bias",
    "target_parameters", "base_model_name_or_path", "init_lora_weights", "megatron_core", "auto_mapping",
)  # fmt: skip


@settings(max_examples=60)
@given(st.sampled_from(FIELDS), JSONS)
def test_any_value_of_a_field_passes_or_is_refused(tmp_path_factory, field: str, value: object) -> None:
    """No other error ever comes out."""
    folder = tmp_path_factory.mktemp("any")
    tiny_adapter.make(folder, **{field: value})
    try:
        vet(folder)
    except UnsafeAdapterError:
        pass


@settings(max_examples=60)
@given(st.sampled_from(["text_config", "num_hidden_layers", "vocab_size", "hidden_size", "auto_map"]), JSONS)
def test_any_value_of_a_models_field_passes_or_is_refused(tmp_path_factory, field: str, value) -> None:
    folder = tmp_path_factory.mktemp("any")
    hostile.model(folder)
    hostile.changed("config.json", **{field: value})(folder)
    try:
        vet(folder)
    except UnsafeAdapterError:
        pass
