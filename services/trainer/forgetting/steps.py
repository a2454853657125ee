"""The steps of a forgetting, each a transaction of its own and safe to repeat.

bar → withdraw → (probe) → erase → (tidy, probe again). What serves is stopped before anything slow is done:
while a champion is measured, it is not the champion any more.
"""

from collections.abc import Callable
from dataclasses import dataclass

from services.core.db import Database, Transaction, as_json
from services.core.errors import ForgetError
from services.core.models import Json
from services.core.process import failpoint
from services.trainer.forgetting.found import Found
from services.trainer.forgetting.target import Target
from services.trainer.forgetting.words import Policy, State

LOCK = "forget"  # one at a time
BY_THE_WALK = (  # reasons told from a name alone, without a look at the text: services/processor/reasons.py
    "symlink", "special_file", "vendored", "ignored", "too_deep", "path_too_long",
)  # fmt: skip


@dataclass(frozen=True)
class Forgetting:
    """One that has begun, as the ledger has it."""

    forgetting_id: int
    target: Target
    everywhere: bool
    policy: Policy
    state: State
    actor: str
    reason: str
    found: Json
    extraction: Json

    @property
    def words(self) -> str:
        return f"forgetting {self.forgetting_id} of {self.target.shown}"

    def as_json(self) -> Json:
        return {
            "forgetting": self.forgetting_id,
            "target": self.target.shown,
            "policy": str(self.policy),
            "state": str(self.state),
            "actor": self.actor,
            "reason": self.reason,
            "found": self.found,
            "extraction": self.extraction,
        }


def require_owner(tx: Transaction) -> None:
    """Raises ForgetError for a role that may not take texts out of the ledger."""
    row = tx.one("may_forget")
    if not row.allowed:
        raise ForgetError(
            f"the database role {row.role} may not forget: it takes the owner of the tables. Run it where"
            " `ratchet migrate` runs, with that POSTGRES_USER or DATABASE_URL"
        )


def read(tx: Transaction, forgetting_id: int) -> Forgetting:
    """Raises ForgetError when there is none of this number."""
    row = tx.one("forgettings", forgetting=forgetting_id)
    if row is None:
        raise ForgetError(f"there is no forgetting {forgetting_id}: `ratchet forgotten` lists them")
    source_id = tx.value("forget_source", source=row.source)
    return Forgetting(
        row.id, Target(row.source, source_id, row.path), row.everywhere, Policy(row.policy),
        State(row.state), row.actor, row.reason, row.found, row.extraction,
    )  # fmt: skip


def standing(tx: Transaction, target: Target) -> Forgetting | None:
    """The newest forgetting of this very target whose tombstones stand."""
    rows = tx.all("forgettings", forgetting=None)
    same = [
        row
        for row in rows
        if (row.source, row.path) == (target.source, target.path) and row.remembered_at is None
    ]
    return read(tx, same[0].id) if same else None


def bar(tx: Transaction, looked: Found, actor: str, reason: str, options: Json) -> int:
    """From here on nothing of it comes in again, and no round selects it; its number.

    The caller holds the processors' lock (`lock_store`) since before it looked.
    """
    target, ids = looked.target, looked.content_ids
    forgetting = int(
        tx.value(
            "forget_begin",
            source=target.source,
            path=target.path,
            everywhere=looked.everywhere,
            policy=str(looked.policy),
            actor=actor,
            reason=reason,
            found=as_json({**looked.as_json(), **options}),
        )
    )
    unclear = [content.content_id for content in looked.contents if content.is_unclear]
    tx.execute("forget_bar_contents", forgetting=forgetting, content_ids=ids, unclear=unclear)
    tx.execute(
        "forget_bar_files",
        source_id=target.source_id,
        path=target.path,
        forgetting=forgetting,
        by_the_walk=list(BY_THE_WALK),
    )
    tx.execute("forget_bar_holders", forgetting=forgetting, content_ids=ids)
    tx.execute("forget_lines", content_ids=ids)
    tx.execute("forget_release", content_ids=ids)
    tx.execute("forget_anchors", content_ids=ids)
    tx.execute("judge_duplicates_again", ids=ids)  # what was nearly the same elsewhere is kept in its stead
    tx.execute("forget_claims", source_id=target.source_id)
    tx.execute("forget_stamp", source_id=target.source_id)
    return forgetting


def erase(database: Database, forgetting: Forgetting) -> None:
    """Take the texts out of every table. Their addresses, figures and places in rounds stay."""
    number = forgetting.forgetting_id

    def work(tx: Transaction) -> None:
        tx.execute("without_hurry")
        tx.execute("lock_store")
        tx.execute("forget_texts", forgetting=number)
        tx.execute("forget_units", forgetting=number)
        tx.execute("forget_answers", forgetting=number)
        tx.execute("forget_claims", source_id=forgetting.target.source_id)
        tx.execute("forget_step", forgetting=number, state=State.ERASED)
        _tell(tx, forgetting)

    database.run(work)


def finish(database: Database, forgetting: Forgetting) -> None:
    advance(database, forgetting, State.DONE)


def probed(database: Database, forgetting: Forgetting, track: str, figures: Json) -> None:
    """Keep what was measured of a track."""
    with database.transaction() as tx:
        tx.execute(
            "forget_figures",
            forgetting=forgetting.forgetting_id,
            track=track,
            figures=as_json(figures),
        )


def remember(tx: Transaction, forgetting: Forgetting) -> int:
    """Lift its tombstones: what is there may come in again, adapters are marked no more. Files to be read.

    What was erased stays so. Raises ForgetError when they are lifted already.
    """
    if tx.value("remember", forgetting=forgetting.forgetting_id) is None:
        raise ForgetError(f"the tombstones of {forgetting.words} were lifted before")
    tx.execute("without_hurry")
    tx.execute("forget_stamp", source_id=forgetting.target.source_id)
    return tx.execute("remember_files", forgetting=forgetting.forgetting_id)


def exclusively(database: Database, work: Callable[[], None]) -> None:
    """Raises ForgetError while another process forgets or remembers."""
    with database.exclusive(LOCK) as held:
        if not held:
            raise ForgetError("another `ratchet forget` is under way: wait for it (`ratchet forgotten`)")
        work()


def advance(database: Database, forgetting: Forgetting, state: State) -> None:
    """It is so far now."""
    with database.transaction() as tx:
        tx.execute("forget_step", forgetting=forgetting.forgetting_id, state=state)
    failpoint(f"forget.{state}")


def _tell(tx: Transaction, forgetting: Forgetting) -> None:
    """An event for each track it touched, or one of no track."""
    if not tx.value("has_events"):
        return
    adapters: list[Json] = forgetting.found["adapters"]
    names = [f"{adapter['track']}/{adapter['directory']}" for adapter in adapters]
    payload = {
        "forgetting": forgetting.forgetting_id,
        "target": forgetting.target.shown,
        "contents": forgetting.found["contents"],
        "adapters": names,
        "policy": str(forgetting.policy),
        "actor": forgetting.actor,
        "reason": forgetting.reason,
    }
    tracks: list[str | None] = sorted({adapter["track"] for adapter in adapters})
    for track in tracks or [None]:
        tx.execute("tell_forgotten", track=track, payload=as_json(payload))
