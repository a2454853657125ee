"""An adapter: a LoRA whose config asks for nothing else, and tensors of the shapes that it says."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from services.core.errors import ConfigurationError, UnsafeAdapterError
from services.trainer.vetting.configs import shortened
from services.trainer.vetting.weights import FLOATS, Tensor

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
WHEEL = "wheel:"
PLAIN_INITS = (None, True, False, "gaussian", "orthogonal")  # the others rewrite the base model
LORA = re.compile(
    r"base_model\.model\.(?P<module>.+)\.lora_(?P<part>A|B|embedding_A|embedding_B|magnitude_vector)"
    r"(\.weight|\.bias)?"
)
OF_THE_BASE = re.compile(r"base_model\.model\..+\.(weight|bias)")  # modules_to_save, trained biases
PATTERN = re.compile(r"[\w.^$-]*")  # module names; no repetition that a regular expression may never end with
LISTED = ("target_modules", "exclude_modules", "modules_to_save", "layers_pattern", "target_parameters")
PATTERNS = ("rank_pattern", "alpha_pattern")
DENSE = ("llama", "mistral", "qwen2", "qwen3")  # model types whose layers are as Shape has them


def check(
    folder: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    base_model: str | None,
    base_config: Mapping[str, Any] | None,
) -> None:
    """Raises UnsafeAdapterError for a config that is no plain LoRA's, or tensors that are not its."""
    _check_config(folder / CONFIG, config)
    _check_base(folder / CONFIG, config.get("base_model_name_or_path"), base_model)
    if not any(tensor.file == WEIGHTS for tensor in tensors.values()):
        raise UnsafeAdapterError(f"{folder} has an {CONFIG} but no tensors in {WEIGHTS}")
    for name, tensor in tensors.items():
        _check_tensor(folder, name, tensor, config)
    for name, tensor in tensors.items():
        if name.endswith(".lora_A.weight"):
            _check_pair(folder, name, tensor, tensors, config)
    if base_config is not None and base_config.get("model_type") in DENSE:
        _check_against(folder, tensors, base_config)


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    if config.get("peft_type") != "LORA":
        raise _unlike(
            path, config, "peft_type", "LORA, the only kind of adapter that Ratchet makes and loads"
        )
    if config.get("megatron_config"):  # PEFT #3085
        raise _unlike(path, config, "megatron_config", "none: PEFT imports the module megatron_core names")
    if config.get("megatron_core") not in (None, "megatron.core"):
        raise _unlike(path, config, "megatron_core", "megatron.core, PEFT's default")
    if config.get("init_lora_weights") not in PLAIN_INITS:
        raise _unlike(path, config, "init_lora_weights", "true: others rewrite the base model")
    if not all(map(_is_rank, _ranks(config))):
        raise _unlike(path, config, "r", "a positive integer, and such in rank_pattern")
    for key in LISTED:
        named = config.get(key) or []
        if named != "all-linear" and not (isinstance(named, list) and all(map(_is_name, named))):
            raise _unlike(path, config, key, "a list of module names (a regular expression may never end)")
    for key in PATTERNS:
        named = config.get(key) or {}
        if not (isinstance(named, dict) and all(map(_is_name, named))):
            raise _unlike(path, config, key, "module names (a regular expression may never end)")


def _unlike(path: Path, config: Mapping[str, Any], key: str, expected: str) -> UnsafeAdapterError:
    return UnsafeAdapterError(f"{path} has {key} {shortened(config.get(key))}: expected {expected}")


def _ranks(config: Mapping[str, Any]) -> list[Any]:
    pattern = config.get("rank_pattern")
    return [config.get("r"), *(pattern.values() if isinstance(pattern, dict) else ())]


def _is_rank(rank: Any) -> bool:
    return isinstance(rank, int) and not isinstance(rank, bool) and rank > 0


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and PATTERN.fullmatch(name) is not None


def _check_base(path: Path, named: Any, base_model: str | None) -> None:
    """The last part of a name counts: the same model may lie in a folder or come from a hub."""
    if named is None:
        return
    said = f"{path} has base_model_name_or_path {shortened(named)}"
    if not isinstance(named, str) or "://" in named:
        raise UnsafeAdapterError(f"{said}: expected the name of a model, or its folder")
    if base_model is None:
        if ".." in PurePath(named).parts:
            raise UnsafeAdapterError(f"{said}, which leads out of where it is read: expected a name")
    elif _last(named) != _last(base_model):
        raise UnsafeAdapterError(f"{said}: expected {base_model}, which it is to go onto")


def _last(base_model: str) -> str:
    if base_model.startswith(WHEEL):
        return PurePath(base_model).stem
    return PurePath(base_model).name


def _check_tensor(folder: Path, name: str, tensor: Tensor, config: Mapping[str, Any]) -> None:
    where = f"{folder / tensor.file}: {name}"
    if tensor.dtype not in FLOATS:
        raise UnsafeAdapterError(f"{where} has dtype {tensor.dtype}: expected one of {', '.join(FLOATS)}")
    if LORA.fullmatch(name):
        return
    kept = config.get("modules_to_save") or config.get("bias", "none") != "none"
    if not (kept and OF_THE_BASE.fullmatch(name)):
        raise UnsafeAdapterError(f"{where} is no tensor of a LoRA as {CONFIG} describes it")


def _check_pair(
    folder: Path, name: str, a: Tensor, tensors: Mapping[str, Tensor], config: Mapping[str, Any]
) -> None:
    """A (r, in) and B (out, r) of one module; with target_parameters a rank for each expert."""
    where = f"{folder / a.file}: {name}"
    b = tensors.get(name.replace(".lora_A.", ".lora_B."))
    if b is None or len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[1]:
        other = "no B" if b is None else f"a B of {list(b.shape)}"
        raise UnsafeAdapterError(f"{where} of {list(a.shape)} has {other}: expected (r, in) and (out, r)")
    ranks = set(_ranks(config))
    fits = a.shape[0] in ranks
    if config.get("target_parameters"):
        fits = any(a.shape[0] % rank == 0 for rank in ranks)
    if not fits:
        said = " or ".join(map(str, sorted(ranks)))
        raise UnsafeAdapterError(f"{where} has rank {a.shape[0]}: {CONFIG} says {said}")


def _check_against(folder: Path, tensors: Mapping[str, Tensor], base_config: Mapping[str, Any]) -> None:
    from services.trainer.plan.shape import Shape

    try:
        linear = Shape.from_config(base_config).linear
    except ConfigurationError:
        return  # a kind of model that Shape does not describe: PEFT compares the shapes when it loads
    for name, tensor in tensors.items():
        found = LORA.fullmatch(name)
        if found is None or found["part"] not in ("A", "B"):
            continue
        module = found["module"].rpartition(".")[2]
        if module not in linear:
            continue
        inputs, outputs = linear[module]
        width, wanted = (tensor.shape[1], inputs) if found["part"] == "A" else (tensor.shape[0], outputs)
        if width != wanted:
            raise UnsafeAdapterError(
                f"{folder / tensor.file}: {name} has shape {list(tensor.shape)}, its base model's {module}"
                f" takes {inputs} and gives {outputs}: it is of another model"
            )
