"""What was taken back by `ratchet forget` never comes in again: paths by name, texts by their address.

A tombstone stands until `ratchet forget --undo`. The walk refuses a path without opening it; what slips past
it, in a chunk that was cut before, is refused in the transaction that would store it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from services.core.db import Transaction
from services.processor.look import Lot
from services.processor.reasons import Reason
from services.processor.values import Found, Rejection


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Of one source."""

    marks: tuple[tuple[str, int], ...] = ()  # path as in `forgettings`, and whose it is

    def on(self, path: str) -> Rejection | None:
        for mark, forgetting in self.marks:
            if mark in ("", path) or (mark.endswith("/") and path.startswith(mark)):
                return refusal(forgetting)
        return None

    def marked(self, found: Found) -> Found:
        """The same entry, refused if it is forgotten; what is refused for its kind stays so."""
        barred = self.on(found.path) if found.refused is None and self.marks else None
        return found if barred is None else replace(found, refused=barred)


def tombstones(transaction: Transaction, source: str) -> Tombstones:
    return Tombstones(tuple((row.path, row.id) for row in transaction.all("tombstones", source=source)))


def bar(transaction: Transaction, source: str, lot: Lot) -> None:
    """Refuse what is forgotten of a lot, by path or by text. The caller holds the lock of the store."""
    barred = tombstones(transaction, source)
    if barred.marks:
        for file in lot.files:
            if not isinstance(file.outcome, Rejection) and (refused := barred.on(file.path)) is not None:
                lot.refuse_path(file.path, refused)
    for address, forgetting in _addresses(transaction, lot.drafts):
        lot.refuse_draft(address, refusal(forgetting))


def refusal(forgetting: int) -> Rejection:
    return Rejection(Reason.FORGOTTEN, f"by forgetting {forgetting}")


def _addresses(transaction: Transaction, drafts: Iterable[bytes]) -> list[tuple[bytes, int]]:
    addresses = list(drafts)
    rows = transaction.all("forgotten_addresses", addresses=addresses) if addresses else []
    return [(bytes(row.sha256), row.forgetting_id) for row in rows]
