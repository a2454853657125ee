"""The trainer's side of the ledger: lease, rounds, snapshots, commits. Every write is fenced.

`ledger` has a track's rows, as its daemon and its rounds ask for them; `opening` and `closing` are what
happens inside the transactions that begin and end a round.
"""

from services.trainer.ledger.ledger import Ledger
from services.trainer.ledger.values import (
    ANY_NUMBER_VARIABLE,
    LEASE_VARIABLE,
    Adapter,
    Closing,
    Lease,
    Round,
)

__all__ = ["ANY_NUMBER_VARIABLE", "LEASE_VARIABLE", "Adapter", "Closing", "Lease", "Ledger", "Round"]
