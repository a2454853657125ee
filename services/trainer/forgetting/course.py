"""The course of a forgetting, first step to last, taken up wherever an earlier run was cut short."""

from collections.abc import Callable
from pathlib import Path

from services.core.db import Database, Transaction
from services.core.errors import ForgetError
from services.core.models import Json
from services.core.settings import Settings
from services.trainer import withdrawn
from services.trainer.forgetting import checking, passages, remains, steps, withdrawing
from services.trainer.forgetting import found as finding
from services.trainer.forgetting.checking import Measure
from services.trainer.forgetting.found import Found
from services.trainer.forgetting.steps import Forgetting
from services.trainer.forgetting.target import Target, find
from services.trainer.forgetting.words import OpenRound, Policy, State

Say = Callable[[str], None]


def look(tx: Transaction, asked: str, policy: Policy, *, everywhere: bool) -> Found:
    """What forgetting it would touch. Raises ForgetError for what the database does not know."""
    return finding.read(tx, find(tx, asked), policy, everywhere=everywhere)


def unfinished(tx: Transaction, target: Target) -> Forgetting | None:
    """The forgetting of this very target that an earlier run did not bring to its end."""
    forgetting = steps.standing(tx, target)
    return None if forgetting is None or forgetting.state is State.DONE else forgetting


def begin(database: Database, looked: Found, actor: str, reason: str, options: Json) -> Forgetting:
    """Bar it, as it stands now: with what came in since it was looked at.

    Raises ForgetError when its tombstones stand and nothing of it is left.
    """

    def work(tx: Transaction) -> Forgetting:
        tx.execute("lock_store")
        now = finding.read(tx, looked.target, looked.policy, everywhere=looked.everywhere)
        before = steps.standing(tx, looked.target)
        if before is not None and not now.contents:
            raise ForgetError(
                f"{looked.target.shown} is forgotten already, by forgetting {before.forgetting_id}:"
                " nothing of it is left"
            )
        return steps.read(tx, steps.bar(tx, now, actor, reason, options))

    return database.run(work)


def carry_on(
    database: Database, settings: Settings, forgetting: Forgetting, measure: Measure | None, say: Say
) -> Forgetting:
    """From where it stands until its texts are gone from tables and files. measure: None: not measured."""
    number = forgetting.forgetting_id
    if forgetting.state is State.BARRED:
        for track, moved in withdrawing.withdraw(database, settings.adapters_dir, forgetting).items():
            if moved.before != moved.champion:
                say(f"{track}: {moved.before} is withdrawn, {moved.champion or 'the base model'} serves now")
        forgetting = _read(database, number)
    if forgetting.state is State.WITHDRAWN:
        if measure is not None:
            checking.before(database, settings, forgetting, measure)
        steps.advance(database, forgetting, State.PROBED)
        forgetting = _read(database, number)
    if forgetting.state is State.PROBED:
        steps.erase(database, forgetting)
        say(f"{forgetting.found['contents']:,} texts are gone from every table")
        forgetting = _read(database, number)
    if forgetting.state is State.ERASED:
        for each in tidy(database, settings, forgetting):
            say(f"removed {each}")
    return forgetting


def conclude(
    database: Database, settings: Settings, forgetting: Forgetting, measure: Measure | None
) -> Forgetting:
    """Measure what is served now, drop the passages, and end it."""
    if measure is not None:
        checking.after(database, settings, forgetting, measure)
    passages.drop(passages.path_of(settings, forgetting))
    tidy(database, settings, forgetting)  # a round that was still running may have left something since
    steps.finish(database, forgetting)
    return _read(database, forgetting.forgetting_id)


def tidy(database: Database, settings: Settings, forgetting: Forgetting) -> list[str]:
    """Remove the files it leaves behind; what was removed, in words."""
    number = forgetting.forgetting_id
    with database.transaction() as tx:
        closed = [OpenRound(*row) for row in tx.all("forget_closed", forgetting=number)]
        ids = [row.content_id for row in tx.all("forgotten_ids", forgetting=number)]
    gone = remains.remove(settings, closed, ids)
    if forgetting.found.get("delete_adapters"):
        gone += remains.remove_adapters(settings, forgetting.found["adapters"])
    return gone


def undo(database: Database, settings: Settings, asked: str) -> tuple[Forgetting, int]:
    """Lift the tombstones of a forgetting, by number or target; it, and how many files are read again.

    Raises ForgetError when there is none that stands or it is not finished.
    """

    def work(tx: Transaction) -> tuple[Forgetting, int]:
        forgetting = steps.read(tx, int(asked)) if asked.isdecimal() else steps.standing(tx, find(tx, asked))
        if forgetting is None:
            raise ForgetError(f"{asked} is not forgotten: `ratchet forgotten` lists what is")
        if forgetting.state is not State.DONE:
            raise ForgetError(
                f"{forgetting.words} is not finished: `ratchet forget {forgetting.target.shown}` goes on"
            )
        return forgetting, steps.remember(tx, forgetting)

    forgetting, files = database.run(work)
    with database.transaction() as tx:
        for row in tx.all("forgotten_adapters", forgetting=forgetting.forgetting_id):
            if row.taint != Policy.REFUSE:  # no other forgetting bars it
                withdrawn.lift(settings.adapters_dir / row.track, row.directory)
    return forgetting, files


def passages_file(settings: Settings, forgetting: Forgetting) -> Path | None:
    """Where passages are kept until the end; None when there are none."""
    path = passages.path_of(settings, forgetting)
    return path if path.exists() else None


def _read(database: Database, number: int) -> Forgetting:
    with database.transaction() as tx:
        return steps.read(tx, number)
