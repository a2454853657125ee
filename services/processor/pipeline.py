"""One chunk of files from its bytes to its rows: read → first look → what is kept → parse → store.

Wired here, and nowhere else. A chunk is one transaction, from taking it to its end: a processor that
dies in between has done nothing, and another takes the chunk.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from services.core.db import Database, Transaction
from services.core.errors import DatabaseUnavailableError
from services.core.process import failpoint
from services.processor import claims, forgotten
from services.processor.claims import Claim
from services.processor.judging import Judge, JudgeNotReadyError
from services.processor.look import FirstLook, Looker, Lot, lot_of
from services.processor.reasons import Reason
from services.processor.rules import Rules
from services.processor.store.stored import Stored, decide, look_up
from services.processor.store.storing import Storing
from services.processor.values import Outcome, Rejection, Unit

log = logging.getLogger(__name__)


class Pipeline:
    """Takes chunks and works them off, one at a time. Not thread-safe: a thread has its own."""

    def __init__(
        self,
        database: Database,
        ingest: Path,
        rules: Rules,
        judge: Judge | None = None,
        *,
        looker: Looker | None = None,
    ) -> None:
        self._database = database
        self._digest = rules.digest
        self._looker = looker or FirstLook(ingest, rules, judge)

    def close(self) -> None:
        self._looker.close()

    def take_one(self, claim_id: int | None = None) -> Outcome | None:
        """Work off the oldest chunk that nobody works on, or this one; None when there is none.

        Raises DatabaseUnavailableError or JudgeNotReadyError; the chunk is then as it was.
        """
        claim: Claim | None = None
        try:
            with self._database.transaction() as transaction:
                claim = claims.take(transaction, claim_id)
                outcome = None if claim is None else self._work(transaction, claim)
        except (DatabaseUnavailableError, JudgeNotReadyError):
            raise
        except Exception as exc:  # a fault of ours must not stop the other files
            if claim is None:
                raise
            return self._put_aside(claim, exc)
        if outcome is not None:
            failpoint("processor.after_commit")
        return outcome

    def _work(self, transaction: Transaction, claim: Claim) -> Outcome:
        lot = lot_of(claim, self._looker.look(claim))
        failpoint("processor.after_read")
        units = self._parse(lot, look_up(transaction, lot.drafts))
        transaction.execute("lock_store")
        forgotten.bar(transaction, claim.source, lot)
        while True:  # what is stored may have changed since; ends at the latest with no draft left
            stored = look_up(transaction, lot.drafts)
            decision = decide(lot.drafts, stored)
            unparsed = {a for a in decision.kept if not stored.has(a) and a not in units}
            if not unparsed:
                break
            claims.put(transaction, claim.source_id, lot.put_off(unparsed))
        Storing(transaction, claim.source_id, self._digest, lot.drafts, units, stored, decision).run(
            lot.files
        )
        claims.finish(transaction, claim)
        return lot.outcome(decision.rejected)

    def _parse(self, lot: Lot, stored: Stored) -> dict[bytes, Sequence[Unit]]:
        """The units of every draft that may be kept; those that no parser accepts are refused.

        Of the stored ones those are parsed whose units are to be fingerprinted, and none is refused.
        A draft that loses against a stored text is not parsed, one that loses against another draft is:
        the winner may turn out not to parse.
        """
        decision = decide(lot.drafts, stored)
        wanted = [
            draft
            for address, draft in lot.drafts.items()
            if (address in decision.kept or decision.rejected[address] in lot.drafts)
            and (not stored.has(address) or address in stored.outdated)
        ]
        parsed = self._looker.parse([(draft.language, draft.text) for draft in wanted])
        units: dict[bytes, Sequence[Unit]] = {}
        for draft, result in zip(wanted, parsed, strict=True):
            if result.refused is not None and stored.has(draft.sha256):
                continue
            if result.refused is not None:
                lot.refuse_draft(draft.sha256, result.refused)
            else:
                units[draft.sha256] = result.units
        return units

    def _put_aside(self, claim: Claim, exc: Exception) -> Outcome:
        """A chunk that cannot be stored is divided, until the one file at fault is alone and refused."""
        log.error("%s: %d files could not be stored together: %s", claim.source, len(claim.entries), exc,
                  exc_info=len(claim.entries) == 1)  # fmt: skip
        lot = Lot(claim)
        with self._database.transaction() as transaction:
            if not claims.finish(transaction, claim):
                return lot.outcome({})  # another took it meanwhile
            if len(claim.entries) > 1:
                claims.divide(transaction, claim)
                return lot.outcome({})
            refusal = Rejection(Reason.JUDGE_CRASHED, f"could not be stored: {type(exc).__name__}"[:200])
            lot.refuse(claim.entries[0], refusal)
            nothing = look_up(transaction, {})
            Storing(transaction, claim.source_id, self._digest, {}, {}, nothing, decide({}, nothing)).run(
                lot.files
            )
        return lot.outcome({})
