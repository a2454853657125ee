"""Work that any processor may take: files that a walk found new or changed, a chunk a row.

A chunk is taken by locking its row and ends with its deletion, in the transaction that stores what
became of its files. A processor that dies gives it back by dying: its locks end with its connection.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from services.core.db import Transaction
from services.processor.values import Found

CHUNK_FILES = 256
CHUNK_BYTES = 4_000_000  # of files as the walk saw them


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A file to look at: to be read still, or refused, or read by who found it (members of archives)."""

    found: Found
    is_known: bool  # it has a row
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    id: int
    source_id: int
    source: str  # its name as the database holds it
    licence: str | None  # of the source
    entries: list[Entry]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


def chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """The stream cut into chunks, by number and by bytes."""
    chunk: list[Entry] = []
    size = 0
    for entry in entries:
        bytes_to_read = 0 if entry.found.refused else entry.found.size_bytes
        if chunk and (len(chunk) >= CHUNK_FILES or size + bytes_to_read > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(entry)
        size += bytes_to_read
    if chunk:
        yield chunk


def put(transaction: Transaction, source_id: int, entries: Sequence[Entry]) -> None:
    """Leave a chunk to whoever takes it first."""
    transaction.execute("put_claim", source_id=source_id, entries=_encode(entries), files=len(entries))


def take(transaction: Transaction, claim_id: int | None = None) -> Claim | None:
    """The oldest chunk that nobody works on, or this one, locked until the transaction ends; None: none."""
    row = transaction.one("take_claim", id=claim_id)
    if row is None:
        return None
    return unpack(row.id, row.source_id, row.source, row.licence, bytes(row.entries))


def unpack(claim_id: int, source_id: int, source: str, licence: str | None, entries: bytes) -> Claim:
    return Claim(claim_id, source_id, source, licence, _decode(entries))


def finish(transaction: Transaction, claim: Claim) -> bool:
    """The chunk is done; false when it was done before."""
    return transaction.execute("finish_claim", id=claim.id) > 0


def divide(transaction: Transaction, claim: Claim) -> None:
    """Put each of its files into a chunk of its own: one of them breaks the others' work."""
    for entry in claim.entries:
        put(transaction, claim.source_id, [entry])


def left(transaction: Transaction, source_id: int) -> int:
    """How many chunks of the source are not finished."""
    return int(transaction.value("claims_left", source_id=source_id))


def withdraw(transaction: Transaction, source_id: int) -> int:
    """Take back the chunks of an earlier walk that nobody works on; how many are being worked on."""
    transaction.execute("withdraw_claims", source_id=source_id)
    return left(transaction, source_id)
