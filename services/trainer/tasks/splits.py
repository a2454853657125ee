"""Which split a group of tasks belongs to: by its name alone, so the same everywhere and for good."""

import hashlib

from services.trainer.tasks.placed import Split

TEST_SHARE = 0.2  # of the groups of a file that names no split
VALIDATION_SHARE = 0.1  # of the groups of a train split that has no validation split beside it


def split_of(group: str) -> Split:
    """Train or test, of a group in a file that names no split."""
    return "test" if fraction("test", group) < TEST_SHARE else "train"


def is_set_aside(group: str) -> bool:
    """Whether a group of a train split is kept for validation."""
    return fraction("validation", group) < VALIDATION_SHARE


def fraction(purpose: str, group: str) -> float:
    """A group's place between 0 and 1, by SHA-256: independent from one purpose to another."""
    digest = hashlib.sha256(f"{purpose}\n{group}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) / 2**64
