"""What may lie in the folder at all: regular files of known kinds, of a bounded size, and no way out."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.core.errors import UnsafeAdapterError

MOST_ENTRIES = 1_000  # the largest open models have some hundreds
DEEPEST = 2  # folders below the folder
START_BYTES = 4096  # that are looked at to tell a text
KB, MB = 10**3, 10**6


@dataclass(frozen=True)
class Kind:
    """Files that loaders know, by name. limit_bytes: None where no loader reads the file whole."""

    name: re.Pattern[str]
    limit_bytes: int | None
    is_text: bool = True


KINDS = (
    Kind(re.compile(r".+\.safetensors"), None, is_text=False),
    Kind(re.compile(r".+\.jsonl"), None),
    Kind(re.compile(r"tokenizer\.json|vocab\.json|.+\.safetensors\.index\.json"), 64 * MB),
    Kind(re.compile(r".+\.json"), 8 * MB),
    Kind(re.compile(r".+\.jinja"), 128 * KB),
    Kind(re.compile(r".+\.(txt|tiktoken)"), 64 * MB),
    Kind(re.compile(r".+\.model"), 64 * MB, is_text=False),
    Kind(re.compile(r"(LICENSE|NOTICE|COPYING|README|USE_POLICY)[\w.-]*|.+\.md|\.gitattributes"), 8 * MB),
)
PICKLES = re.compile(r".+\.(bin|pt|pth|pkl|pickle|ckpt|joblib|npy|npz|dill)")
CODE = re.compile(r".+\.(py|pyc|pyd|so|sh|dll|dylib|whl|egg|pth)")


def listing(folder: Path) -> list[Path]:
    """Every file of the folder, sorted. Raises UnsafeAdapterError for what must not lie in one."""
    if not folder.is_dir():
        raise UnsafeAdapterError(f"{folder} is not a folder: expected one with an adapter or a model")
    found = []
    for number, entry in enumerate(_walk(folder, 0)):
        if number == MOST_ENTRIES:
            raise UnsafeAdapterError(f"{folder} holds more than {MOST_ENTRIES:,} files: that is no model")
        path = Path(entry.path)
        _check_name(path)
        if not entry.is_dir(follow_symlinks=False):
            _check(path, entry.stat(follow_symlinks=False))
            found.append(path)
    return sorted(found)


def _walk(folder: Path, depth: int) -> Iterator[os.DirEntry[str]]:
    if depth > DEEPEST:
        raise UnsafeAdapterError(f"{folder}: folders more than {DEEPEST} deep are not a model's")
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), depth + 1)


def _check_name(path: Path) -> None:
    if not path.name.isprintable():
        raise UnsafeAdapterError(f"{str(path)!a}: a name with control characters, or that is no UTF-8")


def _check(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeAdapterError(
            f"{path} is a symbolic link and may lead out of the folder: copy the files (`cp -rL`)"
        )
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeAdapterError(f"{path} is a device, a pipe or a socket: only files are read")
    kind = next((kind for kind in KINDS if kind.name.fullmatch(path.name)), None)
    if kind is None:
        raise UnsafeAdapterError(f"{path} {_refused(path.name)}")
    if kind.limit_bytes is not None and status.st_size > kind.limit_bytes:
        raise UnsafeAdapterError(
            f"{path} has {status.st_size:,} bytes: expected at most {kind.limit_bytes:,} of such a file"
        )
    with path.open("rb") as file:
        start = file.read(START_BYTES)
    if kind.is_text and not _is_text(start, whole=status.st_size <= START_BYTES):
        raise UnsafeAdapterError(f"{path} is no text, as its name says it is: it may hold a pickle")
    if path.suffix == ".model" and start[:1] != b"\n":  # field 1 of sentencepiece's protocol buffer
        raise UnsafeAdapterError(f"{path} is no sentencepiece model: it may hold a pickle")


def _refused(name: str) -> str:
    if PICKLES.fullmatch(name):
        return "may hold a pickle, which runs code when it is loaded: only safetensors are"
    if CODE.fullmatch(name):
        return "is code: a model's folder needs none, and none of it is run"
    return "is no file that an adapter or a model needs: take it out of the folder"


def _is_text(start: bytes, *, whole: bool) -> bool:
    """UTF-8 without NUL; a character that the start cuts through counts as whole."""
    try:
        start.decode()
    except UnicodeDecodeError as exc:
        if whole or exc.start < len(start) - 3:
            return False
    return b"\0" not in start
