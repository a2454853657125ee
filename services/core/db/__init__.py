"""PostgreSQL: a pool that waits and heals, transactions over named queries, notifications, migrations.

The only package that imports the driver. A caller never sees a driver's connection error: it is
a DatabaseUnavailableError, which `Database.run` retries with exponential backoff.
"""

from services.core.db.connection import connect
from services.core.db.listener import Listener
from services.core.db.migrations import is_migrated, migrate
from services.core.db.pool import Database
from services.core.db.transaction import Transaction, as_json

__all__ = ["Database", "Listener", "Transaction", "as_json", "connect", "is_migrated", "migrate"]
