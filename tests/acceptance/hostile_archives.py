"""Archives made to harm their reader, and what each must leave behind; "." is the archive as a whole."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

from backports import zstd

from tests.acceptance.hostile import TEN_GB, Expected
from tests.integration.processor.conftest import code

MIB = 1 << 20


def archives(ingest: Path, outside: Path) -> dict[str, Expected]:
    good = code("archived").encode()
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
    """Of (name, size announced, checksum, deflated bytes, offset): from 0 on its data is shared."""
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
