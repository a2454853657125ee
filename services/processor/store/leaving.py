"""What becomes of files that are gone, and of what nobody holds any more."""

from collections.abc import Iterable, Sequence

from services.core.db import Transaction
from services.processor.store.ids import array


def release(transaction: Transaction, contents: Iterable[int]) -> bool:
    """Texts that may have lost their last file; true when near duplicates of one are to be judged again."""
    if not (ids := set(contents)):
        return False
    gone = [row.id for row in transaction.all("release_contents", ids=array(ids))]
    return bool(gone) and transaction.execute("judge_duplicates_again", ids=array(gone)) > 0


def retire(transaction: Transaction, ids: Sequence[int]) -> bool:
    """Files that are gone; true when near duplicates of what they held are to be judged again."""
    transaction.execute("lock_store")
    rows = transaction.all("retire_files", ids=list(ids))
    return release(transaction, (row.content_id for row in rows if row.content_id is not None))


def retire_source(transaction: Transaction, name: str) -> int:
    """Every file of a source that is gone; how many there were."""
    row = transaction.one("find_source", name=name)
    transaction.execute("lock_store")
    held = transaction.all("retire_source", source_id=row.id)
    transaction.execute("forget_stamp", source_id=row.id)
    release(transaction, (row.content_id for row in held if row.content_id is not None))
    return len(held)
