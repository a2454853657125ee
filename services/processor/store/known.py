"""What is known of sources and of their files."""

from services.core.db import Transaction
from services.processor.values import Known

KNOWN_PAGE = 5_000  # rows


def live_sources(transaction: Transaction) -> list[str]:
    """Names of the sources that have files which are not retired."""
    return [str(row.name) for row in transaction.all("live_sources")]


def known_files(transaction: Transaction, source_id: int, after: str) -> list[Known]:
    """A page of what is known of a source's paths, in their order, from beyond this path on."""
    rows = transaction.all("known_files", source_id=source_id, after=after, most=KNOWN_PAGE)
    return [Known(*row) for row in rows]
