"""An ingest folder in which everything is made to harm its reader, and what must become of each thing.

A source's maker returns its paths and their reasons (None: the content is stored). What is
passed over has no path there. `outside` holds what links, archives and repositories point to.
"""

import os
import socket
import struct
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tests.integration.processor.conftest import code
from tests.unit.processor.repositories import Made

CANARY = "canary_that_no_reader_may_ever_see"
TEN_GB = 10_000_000_000
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
    for name in ("sparse.py", "COPYING.py", ".gitignore"):
        with (source / name).open("wb") as file:
            file.truncate(TEN_GB)
        expected[name] = "too_large"
    expected[".gitignore"] = "unknown_language"  # its name suffices: it is not even looked into as a text
    try:
        os.mknod(source / "zero.py", 0o666 | 0o020000, os.makedev(1, 5))
        expected["zero.py"] = "special_file"
    except PermissionError:  # not root, or a container without the right to
        pass
    return expected


def names(source: Path, _outside: Path) -> Expected:
    """Good files with bad names, each of which the database can hold."""
    raw = {
        b"caf\xe9.py": r"caf\xe9.py", b"\xed\xa0\x80.py": r"\xed\xa0\x80.py",
        b"two\nlines.py": "two\nlines.py",
        b"\x1b[2J\x1b]0;x\x07.py": "\x1b[2J\x1b]0;x\x07.py", "\u202eyp.exe.py".encode(): "\u202eyp.exe.py",
        b"LICENSE.\xff.py": r"LICENSE.\xff.py", b"-rf.py": "-rf.py", b"$(reboot).py": "$(reboot).py",
        b"%s%n'\";--.py": "%s%n'\";--.py", b"dir\xff/\xfe.py": r"dir\xff/\xfe.py", b"\\N.py": r"\N.py",
        b"a" * 252 + b".py": "a" * 252 + ".py",
    }  # fmt: skip
    for number, spelt in enumerate(raw):
        path = source / os.fsdecode(spelt)
        path.parent.mkdir(exist_ok=True)
        path.write_text(code(f"named{number}"))
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
        f"[core]\n\tfsmonitor = {ran}\n\tsshCommand = {ran}\n"
        f"\thooksPath = {outside}\n\tworktree = {outside}\n"
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
        zlib.compress(b"commit 99999999999\0" + bytes(5_000_000))
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
    levels = [f"&{name} [{', '.join([f'*{above}'] * 9)}]" for above, name in pairwise("abcdefghijk")]
    for name in ("aliases", "huge", "pipe"):
        (ingest / name).mkdir()
        (ingest / name / "good.py").write_text(code(name))
    (ingest / "aliases.ratchet.yaml").write_text(f"include: [[&a [x], {', '.join(levels)}]]\n")
    with (ingest / "huge.ratchet.yaml").open("wb") as file:
        file.truncate(TEN_GB)
    os.mkfifo(ingest / "pipe.ratchet.yaml")
    return {"aliases": "aliases.ratchet.yaml", "huge": "huge.ratchet.yaml"}
