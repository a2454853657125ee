"""Which problems a training sees and which it is scored on. Pure and deterministic."""

import hashlib
from collections.abc import Sequence


def folds(names: Sequence[str], number: int) -> list[tuple[str, ...]]:
    """The names in so many parts, equal but for one name; each in exactly one.

    By the order of their hashes: a fold is the same on every machine, and mixes easy problems, which
    come first in HumanEval, with hard ones. Raises ValueError for fewer names than parts.
    """
    if not 2 <= number <= len(names):
        raise ValueError(f"{number} folds of {len(names)} problems: expected 2 to {len(names)}")
    shuffled = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    parts = [frozenset(shuffled[part::number]) for part in range(number)]
    return [tuple(name for name in names if name in part) for part in parts]
