"""Adapter and model folders made to harm, by name: what each does to a sound one, and the reason given.

`MARKER` is what any of them would make if anything of it ran.
"""

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests import tiny_adapter

MARKER = "ran"
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
Harm = tuple[Callable[[Path], object], str]  # done to the folder; what the refusal says


class Bomb:
    """Unpickled, it makes the marker beside the folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.marker,)


def adapter(folder: Path) -> None:
    """A sound one, with a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tiny_adapter.make(folder)
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ messages[0].content }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "README.md").write_text("# an adapter")


def model(folder: Path) -> None:
    """A sound whole model in two files."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "llama", "vocab_size": 100, "hidden_size": 8, "num_hidden_layers": 2}
    (folder / "config.json").write_text(json.dumps(config))
    parts = {
        "model-1.safetensors": {"model.embed_tokens.weight": (100, 8), "model.layers.0.norm.weight": (8,)},
        "model-2.safetensors": {"model.layers.1.norm.weight": (8,)},
    }
    for name, shapes in parts.items():
        tiny_adapter.safetensors(folder / name, shapes)
    weight_map = {tensor: name for name, shapes in parts.items() for tensor in shapes}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def changed(name: str, **fields: object) -> Callable[[Path], object]:
    """The JSON file with these fields set."""

    def change(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**content, **fields}))

    return change


def written(name: str, content: bytes | str) -> Callable[[Path], object]:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def pickled(name: str, protocol: int = 4) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(pickle.dumps(Bomb(folder.parent / MARKER), protocol))


def zipped(name: str) -> Callable[[Path], object]:
    """As torch.save writes: a zip archive with a pickle in it."""

    def write(folder: Path) -> None:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("archive/data.pkl", pickle.dumps(Bomb(folder.parent / MARKER)))
        (folder / name).write_bytes(archive.getvalue())

    return write


def header(content: object, data: bytes = b"", name: str = WEIGHTS) -> Callable[[Path], object]:
    """A safetensors file with this header."""
    encoded = content if isinstance(content, bytes) else json.dumps(content).encode()
    return written(name, len(encoded).to_bytes(8, "little") + encoded + data)


def shaped(rank: int = 8, dtype: str = "F32", **more: tuple[int, ...]) -> Callable[[Path], object]:
    """Other tensors than the config says."""
    shapes = {**tiny_adapter.shapes(rank, 2, tiny_adapter.TINY), **more}
    return lambda folder: tiny_adapter.safetensors(folder / WEIGHTS, shapes, 0, dtype)


def linked(name: str, to: str) -> Callable[[Path], object]:
    def link(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(to)

    return link


def template(text: str) -> Callable[[Path], object]:
    return changed("tokenizer_config.json", chat_template=text)


ONE = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
CODE = "import os; os.mkdir('ran')"

ADAPTERS: dict[str, Harm] = {
    # pickles
    "training_args.bin": (pickled("training_args.bin"), "may hold a pickle"),
    "pickle called safetensors": (pickled(WEIGHTS), "no safetensors file"),
    "old pickle called safetensors": (pickled(WEIGHTS, 0), "no safetensors file"),
    "zip called safetensors": (zipped(WEIGHTS), "no safetensors file"),
    "second pickle called safetensors": (zipped("more.safetensors"), "no safetensors file"),
    "pickle called JSON": (pickled("tokenizer.json"), "is no text"),
    "pickle called text": (pickled("merges.txt"), "is no text"),
    "pickle called sentencepiece": (pickled("tokenizer.model"), "no sentencepiece model"),
    "old pickle called sentencepiece": (pickled("tokenizer.model", 0), "no sentencepiece model"),
    "pickle without a name for one": (pickled("data"), "no file that an adapter or a model needs"),
    # code
    "module": (written("modeling_tiny.py", CODE), "is code"),
    "library": (written("kernel.so", b"\x7fELF"), "is code"),
    "start-up file": (written("x.pth", CODE), "may hold a pickle"),
    "auto_map in config": (changed("config.json", auto_map={"AutoConfig": "x.Y"}), "auto_map"),
    "auto_map in tokenizer": (changed("tokenizer_config.json", auto_map=["x.Y", None]), "auto_map"),
    "auto_map further in": (changed("config.json", text_config={"auto_map": {"A": "x"}}), "auto_map"),
    "auto_mapping": (
        changed(CONFIG, auto_mapping={"parent_library": "os", "base_model_class": "mkdir"}),
        "auto_mapping",
    ),
    "megatron": (changed(CONFIG, megatron_config={"a": 1}, megatron_core="x"), "megatron_config"),
    "megatron module": (changed(CONFIG, megatron_core="evil"), "megatron_core"),
    "kernel from a hub": (
        changed("config.json", _attn_implementation_internal="evil/kernel"),
        "kernel to fetch",
    ),
    "kernel by its public name": (changed("config.json", attn_implementation="evil/kernel"), "kernel"),
    "remote code wished for": (changed("config.json", trust_remote_code=True), "trust_remote_code"),
    # configs
    "unknown kind of adapter": (changed(CONFIG, peft_type="SHELL"), "peft_type"),
    "no kind of adapter": (changed(CONFIG, peft_type=None), "peft_type"),
    "base model from an address": (
        changed(CONFIG, base_model_name_or_path="http://evil/model"),
        "base_model_name_or_path",
    ),
    "base model up the tree": (
        changed(CONFIG, base_model_name_or_path="../../evil"),
        "base_model_name_or_path",
    ),
    "rewrites its base": (changed(CONFIG, init_lora_weights="pissa"), "init_lora_weights"),
    "endless expression": (changed(CONFIG, target_modules="(a+)+$"), "may never end"),
    "endless expression for a rank": (changed(CONFIG, rank_pattern={"(a+)+$": 8}), "may never end"),
    "rank that is none": (changed(CONFIG, r="8"), "a positive integer"),
    "vocabulary elsewhere": (changed("tokenizer_config.json", vocab_file="/etc/passwd"), "vocab_file"),
    "weights elsewhere": (changed("config.json", transformers_weights="../x"), "transformers_weights"),
    "key twice": (written(CONFIG, '{"peft_type": "LORA", "peft_type": "EVIL"}'), "a key is there twice"),
    "JSON as deep as the stack": (written("config.json", "[" * 200_000), "no JSON that can be read"),
    "JSON that is no object": (written(CONFIG, "[]"), "expected an object"),
    "huge JSON": (written("config.json", " " * 9_000_000 + "{}"), "at most 8,000,000"),
    # names and kinds of files
    "link out of the folder": (linked("vocab.json", "/etc/passwd"), "symbolic link"),
    "linked folder": (linked("more", "/etc"), "symbolic link"),
    "link for the weights": (linked(WEIGHTS, "/dev/zero"), "symbolic link"),
    "pipe": (lambda folder: os.mkfifo(folder / "vocab.json"), "a pipe"),
    "name that drives a terminal": (written("\x1b[2J.json", "{}"), "control characters"),
    "name that is no UTF-8": (written(os.fsdecode(b"\xff.json"), "{}"), "no UTF-8"),
    "files without end": (
        lambda folder: [(folder / f"{number}.txt").touch() for number in range(1_001)],
        "more than 1,000",
    ),
    "folders without end": (lambda folder: (folder / "/".join("abcd")).mkdir(parents=True), "deep"),
    # safetensors
    "header longer than the file": (written(WEIGHTS, (10**15).to_bytes(8, "little") + b"{}"), "its header"),
    "header of 100 MB": (
        written(WEIGHTS, (10**8).to_bytes(8, "little") + bytes(10**8)),
        "at most 16,000,000",
    ),
    "empty": (written(WEIGHTS, b""), "no safetensors file"),
    "header that is no JSON": (header(b"__import__('os')"), "no sound safetensors file"),
    "tensor beyond the file": (header({"a": ONE}), "no sound safetensors file"),
    "tensors over one another": (header({"a": ONE, "b": ONE}, bytes(32)), "no sound safetensors file"),
    "dimensions that overflow": (
        header({"a": {**ONE, "shape": [2**40, 2**40]}}, bytes(16)),
        "no sound safetensors file",
    ),
    # shapes
    "another rank": (shaped(rank=16), "has rank 16"),
    "a rank below the config's": (shaped(rank=4), "has rank 4"),
    "integers": (shaped(dtype="I64"), "dtype I64"),
    "no LoRA": (shaped(**{"model.embed_tokens.weight": (4, 4)}), "no tensor of a LoRA"),
    "A without B": (
        shaped(**{"base_model.model.model.layers.0.mlp.up_proj.lora_A.weight": (8, 64)}),
        "has no B",
    ),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "no tensors"),
    # templates
    "template that imports": (template("{% include '/etc/passwd' %}"), "loads another file"),
    "template that climbs": (template("{{ ''.__class__.__mro__ }}"), "reaches for"),
    "template that climbs by a filter": (template("{{ x|attr('__globals__') }}"), "reaches for"),
    "template that multiplies": (template("{{ 'a' * 999 }}"), "multiplies"),
    "template that powers": (template("{{ 9 ** 9 ** 9 }}"), "multiplies"),
    "template with loops": (
        template("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"),
        "loops run",
    ),
    "template that doubles": (
        template(
            "{% set n = namespace(t='a') %}{% for i in range(99) %}{% set n.t = n.t ~ n.t %}{% endfor %}"
        ),
        "doubles n.t",
    ),
    "template that is wide": (template("{{ '%99999999d' % 1 }}"), "wide format"),
    "template without end": (template("{{" + "(" * 20_000), "cannot be read"),
    "template too long": (written("chat_template.jinja", "a" * 200_000), "at most 128,000"),
}

MODELS: dict[str, Harm] = {
    "index out of the folder": (
        changed("model.safetensors.index.json", weight_map={"a": "../../evil.safetensors"}),
        "expected a file of this folder",
    ),
    "index to an absolute path": (
        changed("model.safetensors.index.json", weight_map={"a": "/evil.safetensors"}),
        "expected a file of this folder",
    ),
    "index to a pickle": (
        changed("model.safetensors.index.json", weight_map={"a": "pytorch_model.bin"}),
        "does not hold it",
    ),
    "index without a map": (changed("model.safetensors.index.json", weight_map=[]), "no weight_map"),
    "layers that fill the memory": (changed("config.json", num_hidden_layers=10**9), "of 2 layers"),
    "vocabulary that fills the memory": (changed("config.json", vocab_size=10**12), "has the shape"),
    "weights as a pickle only": (
        lambda folder: [path.unlink() for path in folder.glob("*.safetensors*")],
        "no weights in safetensors",
    ),
    "one tensor twice": (
        lambda folder: tiny_adapter.safetensors(
            folder / "model-3.safetensors", {"model.layers.1.norm.weight": (8,)}
        ),
        "is in model-2.safetensors too",
    ),
    "adapter that loads itself": (tiny_adapter.make, "no tensor of a LoRA"),
    "code for generation": (
        lambda folder: [
            (folder / "custom_generate").mkdir(),
            written("custom_generate/generate.py", CODE)(folder),
        ],
        "is code",
    ),
}
