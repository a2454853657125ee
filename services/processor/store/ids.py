"""Ids: new ones from their sequences, and many as one parameter."""

from collections.abc import Iterable

from services.core.db import Transaction


def take(transaction: Transaction, query: str, count: int) -> list[int]:
    """So many new ones, by the query that draws them."""
    return [row[0] for row in transaction.all(query, count=count)] if count else []


def array(ids: Iterable[int]) -> str:
    """A bigint[] as PostgreSQL reads it fastest."""
    return "{" + ",".join(map(str, ids)) + "}"
