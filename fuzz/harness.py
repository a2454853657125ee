"""Starts a target under atheris: what it imports is instrumented, what it raises is a finding."""

import resource
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

PROJECT = str(Path(__file__).resolve().parent.parent)
NAMES = [
    "a.py", "a.rs", "a.go", "a.java", "a.js", "a.ts", "a.c", "a.h", "a.cpp", "a.cs", "a.rb", "a.php", "a.kt",
    "a.swift", "a.scala", "a.sh", "a.sql", "a.html", "a.css", "a.md", "a.json", "a.yaml", "a.toml", "a.xml",
    "a.ini",
    "a.inc", "a.cfg", "Makefile", "Dockerfile", "script",
]  # fmt: skip
MEMORY_BYTES = 4_000_000_000  # a target that needs more ends: a finding


def named(data: bytes) -> tuple[str, bytes]:
    """A file name, which the first byte chooses, and the file's bytes."""
    return NAMES[data[0] % len(NAMES)] if data else NAMES[0], data[1:]


def run(target: Callable[[bytes], None]) -> None:
    """Until it is stopped or finds something; libFuzzer's options are taken from the command line."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
