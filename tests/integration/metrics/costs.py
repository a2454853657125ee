"""What a page costs, counted, never timed: rows it fetches, and blocks that its queries touch."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from services.core.db import Database, Transaction
from services.core.sql import queries

EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "


@dataclass(frozen=True)
class Asked:
    query: str
    parameters: Mapping[str, Any]
    rows: int


@dataclass
class Cost:
    """Of what one thread asked of the database."""

    asked: list[Asked] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.asked)

    def blocks(self, database: Database) -> dict[str, int]:
        """By query: blocks of 8 kB that it reads when it is asked again, in the cache or not."""
        found: dict[str, int] = {}
        with database.transaction() as tx:
            for each in self.asked:
                text = queries()[each.query].text
                if text.startswith(("SELECT", "WITH")):
                    tx._cursor.execute(EXPLAIN + text, each.parameters)
                    ((plan,),) = tx._cursor.fetchone()
                    touched = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
                    found[each.query] = found.get(each.query, 0) + touched
        return found


@contextmanager
def counted() -> Iterator[Cost]:
    """Queries of this thread alone: the background reads on meanwhile."""
    cost, thread, execute = Cost(), threading.get_ident(), Transaction.execute

    def recorded(self: Transaction, query: str, **parameters: Any) -> int:
        rows = execute(self, query, **parameters)
        if threading.get_ident() == thread:
            cost.asked.append(Asked(query, parameters, rows))
        return rows

    with patch.object(Transaction, "execute", recorded):
        yield cost
