"""Archives, made well and made to harm: what is read of them, and what is said of the rest."""

import bz2
import gzip
import io
import lzma
import os
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.sources import archives, compression, options
from services.processor.sources.archives import ITSELF, is_archive, members
from services.processor.sources.options import Options
from services.processor.values import Rejection

Outcome = bytes | Reason
NOISE = random.Random(1).randbytes(50_000)


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.gz": gzipped,
    ".tgz": gzipped,
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
    ".tar.zst": zstd.compress,
}


def listed(path: Path, chosen: Options | None = None) -> dict[str, Outcome]:
    rows = list(members(path, chosen or Options()))
    assert len({found.path for found, _ in rows}) == len(rows)
    return {found.path: out.reason if isinstance(out, Rejection) else out for found, out in rows}


def tar_of(
    files: dict[str, bytes], tar_format: int = tarfile.PAX_FORMAT, extra: tuple[tarfile.TarInfo, ...] = ()
) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            tar.addfile(info, io.BytesIO(data))
        for info in extra:
            tar.addfile(info)
    return buffer.getvalue()


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)  # of 1980: the same bytes every time
            archive.writestr(info, data, method)
    return buffer.getvalue()


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_tar_is_read_whatever_compresses_it(tmp_path: Path, suffix: str) -> None:
    """With sizes and times of its members, its top directory kept."""
    path = written(tmp_path, f"a{suffix}", COMPRESS[suffix](tar_of({"repo-1.2/a.py": b"one", "b.py": b""})))
    (found, data), _ = members(path, Options())
    assert (found.path, found.size_bytes, found.mtime_ns) == ("repo-1.2/a.py", 3, 1_700_000_000 * 10**9)
    assert data == b"one"
    assert listed(path) == {"repo-1.2/a.py": b"one", "b.py": b""}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_is_read_whatever_its_method(tmp_path: Path, method: int) -> None:
    """Stored, deflated, bzip2."""
    files = {"repo/a.py": b"a" * 50_000, "repo/b.py": NOISE[:5_000], "c.py": b""}
    assert listed(written(tmp_path, "a.zip", zip_of(files, method))) == files


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzipped), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd.compress)],
)
def test_a_single_compressed_file_is_a_source_of_one(tmp_path: Path, suffix: str, compress) -> None:
    """Its name is the archive's without the suffix."""
    assert listed(written(tmp_path, f"main.py{suffix}", compress(b"x = 1\n"))) == {"main.py": b"x = 1\n"}


def test_archives_are_told_by_their_names() -> None:
    """In any case; nothing else is one."""
    names = ["a.ZIP", "a.tar", "a.tar.GZ", "a.tgz", "a.tar.zst", "a.py.xz", "pkg.whl"]
    assert all(map(is_archive, names))
    assert not any(map(is_archive, ["a.py", "zip", "a.rar", "tar.gz.txt"]))


names = st.text(
    st.characters(exclude_characters="\0/\\", exclude_categories=["Cs"]), min_size=1, max_size=150
)
trees = st.dictionaries(names.filter(lambda n: n not in (".", "..")), st.binary(max_size=2_000), max_size=6)


@settings(max_examples=60, deadline=None)
@given(trees, st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
def test_a_tar_reads_as_the_standard_library_wrote_it(tmp_path_factory, files, tar_format: int) -> None:
    """Any names, long ones too, any bytes, in both formats that hold them."""
    files = {f"d/{name}x": data for name, data in files.items()}
    path = written(tmp_path_factory.mktemp("tar"), "a.tar", tar_of(files, tar_format))
    assert {name: data for name, data in listed(path).items() if data is not None} == files


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=3_000), st.sampled_from([".zip", ".tar", ".tar.gz", ".py.gz", ".tar.xz", ".tar.zst"])
)
def test_no_bytes_make_the_reading_fail(tmp_path_factory, data: bytes, suffix: str) -> None:
    """Any file that calls itself an archive ends in rows."""
    listed(written(tmp_path_factory.mktemp("noise"), f"a{suffix}", data))


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([".zip", ".tar", ".tar.gz", ".tar.bz2"]))
def test_a_damaged_archive_ends_in_rows(tmp_path_factory, draw, suffix: str) -> None:
    """Bytes of a good archive changed or cut off anywhere."""
    files = {"repo/a.py": b"print(1)\n" * 300, "repo/" + "long" * 40: b"x" * 700, "b.py": NOISE[:900]}
    good = zip_of(files) if suffix == ".zip" else COMPRESS[suffix](tar_of(files))
    bad = bytearray(good[: draw.draw(st.integers(0, len(good)))] if draw.draw(st.booleans()) else good)
    for _ in range(draw.draw(st.integers(0, 4))):
        if bad:
            bad[draw.draw(st.integers(0, len(bad) - 1))] = draw.draw(st.integers(0, 255))
    listed(written(tmp_path_factory.mktemp("damaged"), f"a{suffix}", bytes(bad)))


def test_a_truncated_archive_keeps_what_came_before(tmp_path: Path) -> None:
    """And says once, of the archive itself, that it is broken."""
    data = tar_of({"a.py": b"first", "b.py": NOISE})
    for suffix in (".tar", ".tar.gz"):
        packed = COMPRESS[suffix](data)
        path = written(tmp_path, f"a{suffix}", packed[: len(packed) - 20_000])
        assert listed(path) == {"a.py": b"first", ITSELF: Reason.ARCHIVE_BROKEN}, suffix


def test_a_damaged_zip_member_breaks_the_archive_there(tmp_path: Path) -> None:
    """Its checksum tells."""
    data = bytearray(zip_of({"a.py": b"first", "b.py": b"B" * 40}, zipfile.ZIP_STORED))
    data[data.index(b"BBBB")] = ord("C")
    assert listed(written(tmp_path, "a.zip", bytes(data))) == {
        "a.py": b"first",
        ITSELF: Reason.ARCHIVE_BROKEN,
    }


@pytest.mark.parametrize("name", ["../up.py", "a/../../up.py", "/etc/passwd", "C:/windows/x.py"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    """Upwards, absolute, by drive; in tar and zip, and the others are read."""
    files = {name: b"x", "ok.py": b"y"}
    for archive in (written(tmp_path, "a.tar", tar_of(files)), written(tmp_path, "a.zip", zip_of(files))):
        assert listed(archive) == {name: Reason.ARCHIVE_PATH, "ok.py": b"y"}


def test_backslashes_in_a_zip_divide_directories(tmp_path: Path) -> None:
    """As Windows programs write them."""
    files = {"..\\..\\up.py": b"x", "src\\a.py": b"y"}
    rows = listed(written(tmp_path, "a.zip", zip_of(files)))
    assert rows == {"../../up.py": Reason.ARCHIVE_PATH, "src/a.py": b"y"}


def test_links_and_devices_in_a_tar_are_named_and_no_more(tmp_path: Path) -> None:
    """Symbolic and hard links, FIFOs, devices."""
    extra = (
        special("sym.py", tarfile.SYMTYPE, "/etc/passwd"),
        special("hard.py", tarfile.LNKTYPE, "../secret"),
        special("pipe.py", tarfile.FIFOTYPE),
        special("disk.py", tarfile.BLKTYPE),
        special("folder", tarfile.DIRTYPE),
    )
    assert listed(written(tmp_path, "a.tar", tar_of({"a.py": b"x"}, extra=extra))) == {
        "a.py": b"x",
        "sym.py": Reason.SYMLINK,
        "hard.py": Reason.SYMLINK,
        "pipe.py": Reason.SPECIAL_FILE,
        "disk.py": Reason.SPECIAL_FILE,
    }


def test_links_in_a_zip_are_not_read(tmp_path: Path) -> None:
    """What the mode calls a link is one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("link.py")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert listed(written(tmp_path, "a.zip", buffer.getvalue())) == {"link.py": Reason.SYMLINK}


def test_an_encrypted_member_has_a_reason(tmp_path: Path) -> None:
    """The others are read."""
    data = bytearray(zip_of({"secret.py": b"x", "b.py": b"y"}))
    at = data.index(b"PK\1\2")
    data[at + 8] |= 1
    rows = listed(written(tmp_path, "a.zip", bytes(data)))
    assert rows == {"secret.py": Reason.ARCHIVE_ENCRYPTED, "b.py": b"y"}


def test_of_two_members_of_one_path_the_first_counts(tmp_path: Path) -> None:
    """However the path is spelt."""
    assert listed(written(tmp_path, "a.tar", tar_of({"a.py": b"first", "./a.py": b"second"}))) == {
        "a.py": b"first"
    }


def test_vendored_and_tool_directories_hold_inside_too(tmp_path: Path) -> None:
    """One row for a vendored directory, none for caches and version control."""
    files = {
        "repo/node_modules/a.js": b"x",
        "repo/node_modules/b/c.js": b"x",
        "repo/.git/config": b"x",
        "repo/__pycache__/a.pyc": b"x",
        "repo/a.py": b"y",
    }
    rows = listed(written(tmp_path, "a.tar", tar_of(files)))
    assert rows == {"repo/node_modules/": Reason.VENDORED, "repo/a.py": b"y"}


def test_include_and_exclude_hold_inside(tmp_path: Path) -> None:
    """As in a directory."""
    chosen = options.parse(b"include: ['*.py']\nexclude: [/repo/gen/]", "x")
    files = {"repo/a.py": b"a", "repo/a.js": b"b", "repo/gen/b.py": b"c"}
    rows = listed(written(tmp_path, "a.tar", tar_of(files)), chosen)
    assert rows == {"repo/a.py": b"a", "repo/a.js": Reason.IGNORED, "repo/gen/b.py": Reason.IGNORED}


def test_a_nested_archive_is_not_entered(tmp_path: Path) -> None:
    """A quine would be its own member for ever; its bytes are given like any other's."""
    inner = zip_of({"a.py": b"x"})
    assert listed(written(tmp_path, "a.zip", zip_of({"r/r.zip": inner}))) == {"r/r.zip": inner}


def test_a_large_member_is_passed_without_being_loaded(tmp_path: Path) -> None:
    """And the next one is found."""
    files = {"big.py": b"x" * (thresholds.MAX_FILE_BYTES + 1), "a.py": b"y"}
    for archive in (
        written(tmp_path, "a.tar.gz", gzipped(tar_of(files))),
        written(tmp_path, "a.zip", zip_of(files)),
    ):
        assert listed(archive) == {"big.py": Reason.TOO_LARGE, "a.py": b"y"}


def test_a_deep_member_is_too_deep(tmp_path: Path) -> None:
    """One row stands for all below the directory that is too deep."""
    deep = "d/" * (thresholds.MAX_DEPTH + 3)
    rows = listed(written(tmp_path, "a.tar", tar_of({f"{deep}a.py": b"x", f"{deep}b.py": b"x"})))
    assert list(rows.values()) == [Reason.TOO_DEEP]


def test_a_long_name_is_too_long(tmp_path: Path) -> None:
    """Its row carries the beginning of it."""
    rows = listed(written(tmp_path, "a.tar", tar_of({"n" * 3_000: b"x"})))
    assert list(rows.values()) == [Reason.PATH_TOO_LONG]


def test_a_name_that_is_not_utf8_is_printed_by_its_bytes(tmp_path: Path) -> None:
    """As in a directory; a zip's is taken for code page 437, as its makers meant."""
    data = tar_of({"caf\udce9.py": b"x"}, tarfile.GNU_FORMAT)
    assert listed(written(tmp_path, "a.tar", data)) == {r"caf\xe9.py": b"x"}
    raw = zip_of({"cafZ.py": b"x"}).replace(b"cafZ", b"caf\x82")
    assert listed(written(tmp_path, "a.zip", raw)) == {"café.py": b"x"}


def test_a_sparse_member_is_refused_unread(tmp_path: Path) -> None:
    """One of a terabyte, in the old GNU format with a map that goes on, and in pax."""
    info = special("huge.py", tarfile.GNUTYPE_SPARSE)
    info.size = 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1
    header[483:495] = b"\x80" + (1 << 40).to_bytes(11)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    more = bytearray(512)
    more[504] = 1
    data = bytes(header) + bytes(more) * 3 + bytes(512) + b"D" * 512 + tar_of({"a.py": b"x"})
    assert listed(written(tmp_path, "a.tar", data)) == {"huge.py": Reason.SPECIAL_FILE, "a.py": b"x"}
    info = special("pax.py", tarfile.REGTYPE)
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.realsize": str(1 << 40),
        "GNU.sparse.name": "p.py",
    }
    rows = listed(written(tmp_path, "b.tar", tar_of({}, extra=(info,))))
    assert rows == {"p.py": Reason.SPECIAL_FILE}


def test_a_gigantic_pax_header_is_not_taken_into_memory(tmp_path: Path) -> None:
    """Its announced size alone breaks the archive; so does a long name's."""
    for kind in (b"x", b"L"):
        info = special("h", kind)
        info.size = 1 << 40
        path = written(
            tmp_path, "a.tar", tar_of({"a.py": b"x"})[:1024] + info.tobuf(tarfile.GNU_FORMAT) + bytes(9_000)
        )
        assert listed(path) == {"a.py": b"x", ITSELF: Reason.ARCHIVE_BROKEN}


def test_a_sparse_tar_on_disk_is_skipped_by_seeking(tmp_path: Path) -> None:
    """A terabyte of nothing between two members takes no time."""
    big = tarfile.TarInfo("big.bin")
    big.size = 1 << 40
    path = tmp_path / "a.tar"
    with path.open("wb") as file:
        file.write(big.tobuf(tarfile.GNU_FORMAT))
        file.seek(1 << 40, os.SEEK_CUR)
        file.write(tar_of({"a.py": b"x"}))
    assert listed(path) == {"big.bin": Reason.TOO_LARGE, "a.py": b"x"}


@pytest.fixture(scope="module")
def zeros() -> bytes:
    """A tar member of 10 GB of zeros, as far as anybody would read it: compressed 1000-fold."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    info = tarfile.TarInfo("zeros.bin")
    info.size = 10**10
    parts = [compressor.compress(info.tobuf(tarfile.GNU_FORMAT))]
    parts += [compressor.compress(bytes(1_000_000)) for _ in range(80)]
    return b"".join([*parts, compressor.flush()])


def test_a_gzip_bomb_ends_in_a_reason(tmp_path: Path, zeros: bytes) -> None:
    """It is given up where it has expanded more than code ever does."""
    rows = listed(written(tmp_path, "a.tar.gz", zeros))
    assert rows == {"zeros.bin": Reason.TOO_LARGE, ITSELF: Reason.ARCHIVE_TOO_LARGE}


@pytest.mark.parametrize("suffix", [".xz", ".bz2", ".zst"])
def test_other_bombs_end_in_a_reason_too(tmp_path: Path, suffix: str) -> None:
    """Single files, never expanded beyond what a file may have."""
    bomb = {".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd.compress}[suffix](bytes(15_000_000))
    assert listed(written(tmp_path, f"a.py{suffix}", bomb)) == {"a.py": Reason.TOO_LARGE}


def test_a_window_larger_than_may_be_is_refused(tmp_path: Path) -> None:
    """A zstd frame that asks for gigabytes of memory."""
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x00, 0xA8]) + b"\x01\x00\x00"
    assert listed(written(tmp_path, "a.py.zst", frame)) == {ITSELF: Reason.ARCHIVE_BROKEN}


def test_overlapping_members_spend_the_budget_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many entries that share the same bytes are a bomb of the file's own size."""
    monkeypatch.setattr(compression, "UNMEASURED_BYTES", 5_000_000)
    body = zip_of({"a.py": bytes(900_000)})
    at = body.index(b"PK\1\2")
    entry, end = body[at : body.index(b"PK\5\6")], body[body.index(b"PK\5\6") :]
    entries = b"".join(entry.replace(b"a.py", b"%04d" % number) for number in range(100))
    end = bytearray(end)
    end[12:20] = struct.pack("<2L", len(entries), at)
    rows = listed(written(tmp_path, "a.zip", body[:at] + entries + bytes(end)))
    assert rows[ITSELF] == Reason.ARCHIVE_TOO_LARGE
    assert 5 <= len(rows) < 10


def test_an_archive_of_too_many_members_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before stands."""
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    rows = listed(written(tmp_path, "a.tar", tar_of({"a": b"", "b": b"", "c": b""})))
    assert rows == {"a": b"", "b": b"", ITSELF: Reason.ARCHIVE_TOO_LARGE}


def test_a_zip64_with_something_before_it_is_read(tmp_path: Path) -> None:
    """Self-extracting archives begin with a program."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("a.py", "w", force_zip64=True) as member:
        member.write(b"x")
    plain = buffer.getvalue()
    assert listed(written(tmp_path, "a.zip", b"#!/bin/sh\n" * 9 + plain)) == {"a.py": b"x"}
    at, end = plain.index(b"PK\1\2"), plain.index(b"PK\5\6")
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, end - at, at)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    closing = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    assert listed(written(tmp_path, "b.zip", plain[:end] + record + locator + closing)) == {"a.py": b"x"}


def test_an_archive_that_became_a_link_is_not_opened(tmp_path: Path) -> None:
    """Between being listed and being read."""
    written(tmp_path, "real.zip", zip_of({"a.py": b"x"}))
    (tmp_path / "a.zip").symlink_to("real.zip")
    with pytest.raises(OSError, match="symbolic"):
        listed(tmp_path / "a.zip")


def test_concatenated_gzip_streams_are_one(tmp_path: Path) -> None:
    """With padding behind."""
    data = tar_of({"a.py": b"x" * 5_000})
    packed = gzipped(data[:700]) + gzipped(data[700:]) + bytes(512)
    assert listed(written(tmp_path, "a.tar.gz", packed)) == {"a.py": b"x" * 5_000}
