"""The JSON files: sound JSON objects, of which none names code to import or files elsewhere."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from services.core.errors import UnsafeAdapterError

WORDS = ("tokenizer.json", "vocab.json", "added_tokens.json")  # their keys are tokens, any at all
INDEX = ".safetensors.index.json"
CODE = ("auto_map", "auto_mapping", "custom_pipelines", "custom_generate", "trust_remote_code")
KERNELS = ("kernel_config", "use_kernels")
WEIGHTS = "transformers_weights"  # a file that transformers takes instead of model.safetensors


def read(folder: Path, paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Every JSON file at the top of the folder that is not a vocabulary, by its name.

    Raises UnsafeAdapterError for what is no JSON object, for code and for files elsewhere.
    """
    found = {}
    for path in paths:
        if path.suffix != ".json" or path.name in WORDS:
            continue
        content = parsed(path)
        if not path.name.endswith(INDEX):
            for key, value in _entries(content):
                _check(path, key, value)
        if path.parent == folder:
            found[path.name] = content
    return found


def parsed(path: Path) -> dict[str, Any]:
    """The JSON object of a file. Raises UnsafeAdapterError for anything else, and for a key that is twice."""
    content = decoded(path)
    if not isinstance(content, dict):
        raise UnsafeAdapterError(f"{path} holds a JSON {type(content).__name__}: expected an object")
    return content


def decoded(path: Path) -> Any:
    """The JSON of a file. Raises UnsafeAdapterError for what is none, and for a key that is twice."""
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as exc:
        raise UnsafeAdapterError(f"{path} is no JSON that can be read: {exc}") from exc


def is_plain(name: Any) -> bool:
    """Whether it names a file in the folder itself."""
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")


def shortened(value: Any) -> str:
    """As JSON, in a message."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Two parsers may take different ones of two equal keys: what was checked must be what is loaded."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is there twice")
    return content


def _entries(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every key with its value, at any depth."""
    waiting: list[Any] = [content]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield from each.items()
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _check(path: Path, key: str, value: Any) -> None:
    if key in CODE and value:
        raise UnsafeAdapterError(
            f"{path} has {key} {shortened(value)}, which names code to import: remove it, transformers'"
            " architectures need none"
        )
    if (key in KERNELS and value) or ("_implementation" in key and "/" in json.dumps(value)):
        # CVE-2026-4372: transformers fetched and ran the kernel that a config names
        raise UnsafeAdapterError(
            f"{path} has {key} {shortened(value)}, which names a kernel to fetch and run"
        )
    if (key.endswith("_file") or key == WEIGHTS) and isinstance(value, str) and not is_plain(value):
        raise UnsafeAdapterError(f"{path} has {key} {shortened(value)}: expected a file of this folder")
