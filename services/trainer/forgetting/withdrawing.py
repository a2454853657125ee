"""What has learned a text is withdrawn: adapters are marked, champions moved, open rounds closed."""

import logging
from collections.abc import Sequence
from pathlib import Path

from services.core.db import Database, Transaction, as_json
from services.core.errors import PromotionError, PublishError
from services.core.process import failpoint
from services.trainer import withdrawn
from services.trainer.forgetting import found as finding
from services.trainer.forgetting import steps
from services.trainer.forgetting.steps import Forgetting
from services.trainer.forgetting.words import Adapter, Policy, State
from services.trainer.promotions.champions import Champions, Moved
from services.trainer.promotions.line import By

log = logging.getLogger(__name__)
ACTOR = "forget"  # who moves a champion
TRIES = 5  # at a champion that is moved at the same moment


def withdraw(database: Database, adapters_dir: Path, forgetting: Forgetting) -> dict[str, Moved]:
    """Mark the adapters, close the rounds, move the champions; what became of each track.

    Of the policy `warn` adapters are marked, and only rounds that were to train on the texts are closed.
    """
    with database.transaction() as tx:
        ids = _content_ids(tx, forgetting)
        rounds, adapters = finding.open_rounds(tx, ids), finding.touched(tx, ids)
    by = By(ACTOR, f"{forgetting.words}: {forgetting.reason}")
    moved = {}
    for track in sorted({each.track for each in rounds} | {each.track for each in adapters}):
        champions = Champions(database, track, adapters_dir / track)
        moved[track] = _withdrawn(database, champions, track, forgetting, ids, by)
        failpoint("forget.after_move")
        if forgetting.policy is Policy.REFUSE:
            _tell_servers(
                adapters_dir / track, finding.marked(database, forgetting.forgetting_id, track), forgetting
            )
        while champions.examine(by) is not None:  # a move only looks at the files it leads to
            log.warning("%s: the files of a champion were damaged, the one before it was taken", track)
        champions.settle_trained()
    steps.advance(database, forgetting, State.WITHDRAWN)
    return moved


def _withdrawn(
    database: Database, champions: Champions, track: str, forgetting: Forgetting, ids: Sequence[int], by: By
) -> Moved:
    for attempt in range(TRIES):
        with database.transaction() as tx:
            known = finding.touched(tx, ids, track)
        gone = [each.adapter_id for each in known] if forgetting.policy is Policy.REFUSE else []

        def mark(tx: Transaction, known: Sequence[Adapter] = known, gone: list[int] = gone) -> None:
            if [each.adapter_id for each in finding.touched(tx, ids, track)] != [a.adapter_id for a in known]:
                raise PromotionError(f"an adapter of {track} was published at this moment: look again")
            tx.execute("without_hurry")
            marked = {"adapter_ids": [a.adapter_id for a in known], "contents": [a.contents for a in known]}
            tx.execute("forget_mark", forgetting=forgetting.forgetting_id, **marked)
            tx.execute("forget_withdraw", forgetting=forgetting.forgetting_id, adapter_ids=gone)
            reason = f"{forgetting.words} took back what this round has in its snapshot or continues from"
            tx.execute(
                "forget_close",
                forgetting=forgetting.forgetting_id,
                track=track,
                adapter_ids=gone,
                content_ids=list(ids),
                verdict=as_json({"promoted": False, "reason": reason}),
            )

        try:
            return champions.withdraw(gone, by, mark)
        except PromotionError:
            if attempt == TRIES - 1:
                raise
    raise AssertionError("a try returns or raises")


def _tell_servers(track_dir: Path, names: Sequence[str], forgetting: Forgetting) -> None:
    """Servers have no database: they look for a mark beside the adapters."""
    for name in names:
        try:
            withdrawn.mark(track_dir, name, forgetting.words)
        except PublishError as exc:
            log.warning("%s: a server may serve %s on by its name", exc, name)


def _content_ids(tx: Transaction, forgetting: Forgetting) -> list[int]:
    rows = tx.all("forgotten_ids", forgetting=forgetting.forgetting_id)
    return [row.content_id for row in rows]
