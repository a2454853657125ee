"""Exact duplicates: one text, one address, stored once."""

import hashlib


def address(data: bytes) -> bytes:
    """The SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(data).digest()
