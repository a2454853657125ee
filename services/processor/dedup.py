"""Exact duplicates: one text, one address, stored once."""

import hashlib
from collections.abc import Iterable

from services.processor.values import Content, Judged


def address(data: bytes) -> bytes:
    """The SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(data).digest()


def first_of_each(judged: Iterable[Judged]) -> dict[bytes, Content]:
    """The contents among these by address, each once: the first with that text wins."""
    contents: dict[bytes, Content] = {}
    for item in judged:
        if isinstance(item.outcome, Content):
            contents.setdefault(item.outcome.sha256, item.outcome)
    return contents
