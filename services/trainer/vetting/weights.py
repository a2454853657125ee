"""Safetensors by their headers: the library parses and checks them, the tensors are not read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from services.core.errors import UnsafeAdapterError

HEADER_BYTES = 16 * 10**6  # the library allows 100 MB; a header of 100,000 tensors has 12
FLOATS = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True)
class Tensor:
    file: str  # its path below the folder
    shape: tuple[int, ...]
    dtype: str  # in safetensors' words: F32, BF16, …


def headers(folder: Path, paths: Sequence[Path]) -> dict[str, Tensor]:
    """Every tensor of every safetensors file, by name.

    Raises UnsafeAdapterError for a file that is none, whatever its name says, and for a tensor in two files.
    """
    found: dict[str, Tensor] = {}
    for path in paths:
        if path.suffix != ".safetensors":
            continue
        file = str(path.relative_to(folder))
        for name, shape, dtype in _header(path):
            if name in found:
                raise UnsafeAdapterError(f"{path}: the tensor {name} is in {found[name].file} too")
            found[name] = Tensor(file, shape, dtype)
    return found


def _header(path: Path) -> list[tuple[str, tuple[int, ...], str]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > min(HEADER_BYTES, path.stat().st_size - 8):
        raise UnsafeAdapterError(
            f"{path} is no safetensors file: its first 8 bytes say that its header has {length:,} bytes, of"
            f" at most {HEADER_BYTES:,} that are read (a pickle or an archive under another name?)"
        )
    try:
        with safe_open(path, framework="np") as opened:
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118  no mapping
            return [(name, tuple(one.get_shape()), str(one.get_dtype())) for name, one in slices.items()]
    except (SafetensorError, OSError, ValueError) as exc:
        raise UnsafeAdapterError(f"{path} is no sound safetensors file: {exc}") from exc
