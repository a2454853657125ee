"""An ingest folder in which everything is made to harm its reader, and what must become of each thing.

A source's maker returns its paths and their reasons (None: the content is stored). What is
passed over has no path there. `outside` holds what links, archives and repositories point to.
"""

import bz2
import gzip
import io
import lzma
import os
import socket
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from backports import zstd

from tests.integration.processor.conftest import code
from tests.unit.processor.repositories import Made

CANARY = "canary_that_no_reader_may_ever_see"
TEN_GB = 10_000_000_000
MIB = 1 << 20
Expected = dict[str, str | None]


def outside(folder: Path) -> Path:
    """What nothing in the ingest folder may lead to: files, a repository, a licence, an index of git's."""
    made = Made(folder / "work", bare=False)
    made.commit({"canary.py": f"# {CANARY}\n{code('outside')}".encode()})
    for name in ("canary.py", "LICENSE", "options.yaml", ".gitignore"):
        (folder / name).write_text(f"# {CANARY}\n{code(name)}")
    return folder


def links(source: Path, outside: Path) -> Expected:
    for name, target in {
        "to_file.py": outside / "canary.py", "to_folder": outside, "upwards.py": "../../outside/canary.py",
        "loop": ".", "there": "back", "back": "there", "nowhere.py": "/nonexistent", "root": "/",
        ".gitignore": outside / ".gitignore", "LICENSE": outside / "LICENSE", "memory.py": "/proc/self/mem",
    }.items():  # fmt: skip
        (source / name).symlink_to(target)
    names = (path.name for path in source.iterdir())
    return dict.fromkeys(names, "symlink")


def special(source: Path, _outside: Path) -> Expected:
    expected = dict.fromkeys(("pipe.py", ".ratchetignore", "LICENSE", "socket.py"), "special_file")
    for name in ("pipe.py", ".ratchetignore", "LICENSE"):
        os.mkfifo(source / name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(source / "socket.py"))
    for name in ("sparse.py", "COPYING", ".gitignore"):
        with (source / name).open("wb") as file:
            file.truncate(TEN_GB)
        expected[name] = "too_large"
    del expected[".ratchetignore"], expected[".gitignore"]
    try:
        os.mknod(source / "zero.py", 0o666 | 0o020000, os.makedev(1, 5))
        expected["zero.py"] = "special_file"
    except PermissionError:  # not root, or a container without the right to
        pass
    return expected | {".gitignore": "too_large", ".ratchetignore": "special_file"}


def names(source: Path, _outside: Path) -> Expected:
    """Good files with bad names, each of which the database can hold."""
    raw = {
        b"caf\xe9.py": r"caf\xe9.py", b"\xed\xa0\x80.py": r"\xed\xa0\x80.py", b"two\nlines.py": "two\nlines.py",
        b"\x1b[2J\x1b]0;x\x07.py": "\x1b[2J\x1b]0;x\x07.py", "\u202eyp.exe.py".encode(): "\u202eyp.exe.py",
        b"LICENSE.\xff.py": r"LICENSE.\xff.py", b"-rf.py": "-rf.py", b"$(reboot).py": "$(reboot).py",
        b"%s%n'\";--.py": "%s%n'\";--.py", b"dir\xff/\xfe.py": r"dir\xff/\xfe.py", b"\\N.py": r"\N.py",
        b"a" * 252 + b".py": "a" * 252 + ".py",
    }  # fmt: skip
    for spelt in raw:
        path = os.fsencode(source) + b"/" + spelt
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_text(code(f"name {spelt!r}"))
    deep = source / "/".join("d" * 70)
    deep.mkdir(parents=True)
    (deep / "deep.py").write_text(code("deep"))
    return dict.fromkeys(raw.values()) | {"/".join("d" * 65) + "/": "too_deep"}


def many(source: Path, _outside: Path, count: int = 20_000) -> Expected:
    for number in range(count):
        (source / f"{number:06}.py").touch()
    return {f"{number:06}.py": "empty" for number in range(count)}


def git(source: Path, outside: Path) -> Expected:
    """A repository whose configuration, hooks and files want programs run and other places read."""
    made = Made(source, bare=False)
    made.commit({"tree.py": b"x"})
    controls = source / ".git"
    ran = f"touch {outside}/ran"
    (controls / "config").write_text(
        f"[core]\n\tfsmonitor = {ran}\n\tsshCommand = {ran}\n\thooksPath = {outside}\n\tworktree = {outside}\n"
        f"[include]\n\tpath = {outside}/canary.py\n[extensions]\n\tworktreeConfig = true\n"
    )
    for name, text in {
        "objects/info/alternates": f"{outside}/work/.git/objects\n", "commondir": f"{outside}/work/.git\n",
        "hooks/post-checkout": f"#!/bin/sh\n{ran}\n", "hooks/fsmonitor-watchman": f"#!/bin/sh\n{ran}\n",
        "info/attributes": "*.py filter=run diff=run\n",
    }.items():  # fmt: skip
        (controls / name).parent.mkdir(exist_ok=True)
        (controls / name).write_text(text)
        (controls / name).chmod(0o755)
    (source / ".gitattributes").write_text("*.py filter=run\n")
    (source / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = x\n\turl = ext::{ran}\n')
    return {".gitattributes": "unknown_language", ".gitmodules": "unknown_language"}


def git_elsewhere(source: Path, outside: Path) -> Expected:
    """Files that say the repository is elsewhere, and a link that does."""
    (source / ".git").write_text(f"gitdir: {outside}/work/.git\n")
    (source / "linked").mkdir()
    (source / "linked/.git").symlink_to(outside / "work/.git")
    return {}


def git_garbage(source: Path, outside: Path) -> Expected:
    """A commit's id that no sound pack holds, and references that lead out or around."""
    controls = source / ".git"
    for name in ("refs/heads", "objects/pack", "objects/00"):
        (controls / name).mkdir(parents=True)
    (controls / "HEAD").write_text("ref: refs/heads/main\n")
    (controls / "refs/heads/main").symlink_to(outside / "work/.git/refs/heads/main")
    (controls / "packed-refs").write_text(f"{'0' * 40} refs/heads/main\n")
    (controls / "objects/00" / ("0" * 38)).write_bytes(
        zlib.compress(b"commit 99999999999\0" + bytes(5 * MIB))
    )
    fan_out = struct.pack(">256L", *[0xFFFFFFFF] * 256)
    (controls / "objects/pack/pack-x.idx").write_bytes(b"\377tOc\0\0\0\2" + fan_out + bytes(2_000))
    (controls / "objects/pack/pack-x.pack").write_bytes(b"PACK\0\0\0\2\xff\xff\xff\xff" + b"\xff" * 5_000)
    (controls / "objects/pack/pack-y.idx").symlink_to(outside / "canary.py")
    return {}


def options(source: Path, _outside: Path) -> Expected:
    """A folder beside which options lie that are a link: nobody's, so the defaults hold."""
    source.with_name(source.name + ".ratchet.yaml").symlink_to(_outside / "options.yaml")
    return {}


TREES: dict[str, Callable[[Path, Path], Expected]] = {
    "links": links, "special": special, "names": names, "many": many, "git": git,
    "git_elsewhere": git_elsewhere, "git_garbage": git_garbage, "options": options,
}  # fmt: skip


def bad_options(ingest: Path) -> dict[str, str]:
    """Sources whose options cannot be meant, and what is said of each: they are left as they are."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for name, above in zip("bcdefghijk", "abcdefghij", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{above}'] * 9)}]\n"
    for name in ("aliases", "huge", "pipe"):
        (ingest / name).mkdir()
        (ingest / name / "good.py").write_text(code(name))
    (ingest / "aliases.ratchet.yaml").write_text(bomb.replace("k: &k", "include: &k"))
    with (ingest / "huge.ratchet.yaml").open("wb") as file:
        file.truncate(TEN_GB)
    os.mkfifo(ingest / "pipe.ratchet.yaml")
    return {"aliases": "aliases.ratchet.yaml", "huge": "huge.ratchet.yaml"}


# Archives: what each must leave behind. "." is the archive as a whole.


def archives(ingest: Path, outside: Path) -> dict[str, Expected]:
    good = code("in an archive").encode()
    pieces = {
        "traversal.tar.gz": gzip.compress(_tar_that_leads_out(outside, good), 1),
        "traversal.zip": _zip(
            {"../canary.py": good, "/etc/passwd.py": good, "c:\\x.py": good, "ok.py": good}
        ),
        "truncated.zip": _zip({"ok.py": good})[:-30],
        "truncated.tar.xz": lzma.compress(_tar({"ok.py": code("truncated").encode(), "z.py": good * 9}))[
            :-60
        ],
        "flat.zip": _flat_bomb(),
        "lying.zip": _flat_bomb(announced=500),
        "overlapping.zip": _overlapping(),
        "nested.zip": _zip({"inner.zip": _zip({"inner.zip": b"PK"}), "ok.py": code("nested").encode()}),
        "bomb.tar.gz": gzip.compress(_header("zeros.py", TEN_GB), mtime=0)
        + gzip.compress(bytes(MIB)) * 5_000,
        "bomb.tar.xz": lzma.compress(_header("zeros.py", TEN_GB)) + lzma.compress(bytes(8 * MIB)) * 1_200,
        "bomb.tar.zst": zstd.compress(_header("zeros.py", TEN_GB)) + zstd.compress(bytes(8 * MIB)) * 1_200,
        "bomb.tar.bz2": bz2.compress(_header("zeros.py", TEN_GB)) + bz2.compress(bytes(8 * MIB)) * 1_200,
        "zeros.py.xz": lzma.compress(bytes(8 * MIB)) * 1_200,
        "window.py.zst": b"\x28\xb5\x2f\xfd\x00\xa8" + struct.pack("<L", 1 | 6 << 3)[:3] + b"x = 1\n",
        "dictionary.py.xz": _xz_with_dictionary(40),
        "header.tar": _header("././@PaxHeader", 2_000_000_000, b"x") + bytes(MIB),
        "garbage.tar.gz": gzip.compress(b"\xff" * 100_000),
        "garbage.zip": b"PK\5\6" + b"\xff" * 18,
    }
    for name, data in pieces.items():
        (ingest / name).write_bytes(data)
    leads_out = dict.fromkeys(("../canary.py", "/etc/passwd.py"), "archive_path")
    return {
        "traversal.tar.gz": leads_out | {
            "link.py": "symlink", "hard.py": "symlink", "null.py": "special_file", "pipe.py": "special_file",
            "through/canary.py": None,
        },
        "traversal.zip": leads_out | {"c:/x.py": "archive_path", "ok.py": None},
        "truncated.zip": {".": "archive_broken"},
        "truncated.tar.xz": {"ok.py": None, ".": "archive_broken"},
        "flat.zip": {"zeros.py": "too_large", "good.py": None},
        "lying.zip": {".": "archive_broken"},
        "nested.zip": {"inner.zip": "binary_type", "ok.py": None},
        "overlapping.zip": {".": "archive_too_large"},
        **{f"bomb.tar.{suffix}": {"zeros.py": "too_large", ".": "archive_too_large"} for suffix in
           ("gz", "xz", "zst", "bz2")},
        "zeros.py.xz": {"zeros.py": "too_large"},
        **{name: {".": "archive_broken"} for name in
           ("window.py.zst", "dictionary.py.xz", "header.tar", "garbage.tar.gz", "garbage.zip")},
    }  # fmt: skip


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _tar_that_leads_out(outside: Path, good: bytes) -> bytes:
    """Links, a device, a FIFO, names with `..`, and a file "through" a link that an unpacker would follow."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind in {
            "link.py": tarfile.SYMTYPE, "hard.py": tarfile.LNKTYPE, "null.py": tarfile.CHRTYPE,
            "pipe.py": tarfile.FIFOTYPE,
        }.items():  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, str(outside / "canary.py")
            tar.addfile(info)
    start = buffer.getvalue()[: 4 * 512]
    names = ("../canary.py", "/etc/passwd.py", "through/canary.py")
    return start + b"".join(_header(name, len(good)) + _padded(good) for name in names) + bytes(1_024)


def _header(name: str, size: int, kind: bytes = b"0") -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _raw_zip(members: list[tuple[str, int, int, bytes, int]]) -> bytes:
    """Of (name, size announced, checksum, deflated bytes, offset or -1): those at an offset share its data."""
    body, directory = b"", b""
    for name, size, crc, data, shared in members:
        offset, spelt = (len(body), name.encode()) if shared < 0 else (shared, name.encode())
        if shared < 0:
            body += (
                struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, 0, 0, len(spelt), 0) + spelt + data
            )
        wide = struct.pack("<2HQ", 1, 8, size) if size > 0xFFFFFFFE else b""
        directory += struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 33, crc, len(data), min(size, 0xFFFFFFFF), len(spelt),
            len(wide), 0, 0, 0, 0, offset,
        ) + spelt + wide  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0, 0, len(directory), len(body), 0)
    return body + directory + end


def _deflated(data: bytes) -> bytes:
    return zlib.compress(data, 9, -15)


def _flat_bomb(announced: int = TEN_GB) -> bytes:
    """One member that expands to ten gigabytes: a megabyte of zeros, flushed, ten thousand times."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    zeros = (deflater.compress(bytes(MIB)) + deflater.flush(zlib.Z_FULL_FLUSH)) * (TEN_GB // MIB)
    good = code("flat").encode()
    after = ("good.py", len(good), zlib.crc32(good), _deflated(good), -1)
    return _raw_zip([("zeros.py", announced, 0, zeros, -1), after])


def _overlapping() -> bytes:
    """Ten thousand names for the same bytes, which expand a thousandfold (as Fifield's bomb does)."""
    kernel = b"\0" * 900_000
    data, crc = _deflated(kernel), zlib.crc32(kernel)
    members = [(f"{number}.py", len(kernel), crc, data, -1 if not number else 0) for number in range(10_000)]
    return _raw_zip(members)


def _xz_with_dictionary(size_code: int) -> bytes:
    """A sound file, but that its header asks for a dictionary of (nearly) four gigabytes."""
    data = bytearray(lzma.compress(b"x = 1\n" * 20))
    length = (data[12] + 1) * 4  # of the block's header, which begins at byte 12 and ends with its checksum
    data[data.index(b"\x21\x01", 12) + 2] = size_code
    end = 12 + length - 4
    data[end : end + 4] = struct.pack("<L", zlib.crc32(data[12:end]))
    return bytes(data)
