"""What forgetting would touch: read, not changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from services.core.db import Database, Transaction
from services.core.models import Json
from services.trainer.forgetting.target import Target
from services.trainer.forgetting.words import Adapter, Content, OpenRound, Policy
from services.trainer.promotions import rows

MOST_NAMED = 20  # files elsewhere


@dataclass(frozen=True)
class Found:
    """Of a source, folder or file, before anything is done."""

    target: Target
    everywhere: bool
    policy: Policy
    files: int
    contents: tuple[Content, ...]  # that go
    shared: int  # that stay, since files elsewhere hold them
    holders: tuple[str, ...]  # such files, at most MOST_NAMED
    near: tuple[str, ...]  # files elsewhere that were refused as nearly the same, at most MOST_NAMED
    adapters: tuple[Adapter, ...]
    open_rounds: tuple[OpenRound, ...]
    refuges: Mapping[str, str | None]  # track whose champion must go → who takes its place; None: the base

    @property
    def content_ids(self) -> list[int]:
        return [content.content_id for content in self.contents]

    @property
    def tracks(self) -> list[str]:
        return sorted({each.track for each in self.adapters} | {each.track for each in self.open_rounds})

    def as_json(self) -> Json:
        return {
            "target": self.target.shown,
            "everywhere": self.everywhere,
            "policy": str(self.policy),
            "files": self.files,
            "contents": len(self.contents),
            "earlier": sum(content.is_earlier for content in self.contents),
            "clusters": len({content.cluster_id for content in self.contents}),
            "bytes": sum(content.bytes for content in self.contents),
            "shared": self.shared,
            "holders": list(self.holders),
            "near_duplicates": list(self.near),
            "adapters": [asdict(adapter) for adapter in self.adapters],
            "open_rounds": [asdict(each) for each in self.open_rounds],
            "refuges": dict(self.refuges),
        }


def read(tx: Transaction, target: Target, policy: Policy, *, everywhere: bool) -> Found:
    """What would go, as it stands in this transaction.

    A text that a file outside holds too stays, unless `everywhere`.
    """
    tx.execute("without_hurry")
    files = tx.one("forget_files", source_id=target.source_id, path=target.path)
    all_of_it = [Content(*row) for row in tx.all("forget_contents", **target.query)]
    contents = tuple(content for content in all_of_it if everywhere or not content.is_shared)
    ids = [content.content_id for content in all_of_it]
    elsewhere = tx.all("forget_elsewhere", **target.query, content_ids=ids, most=10 * MOST_NAMED)
    going = [content.content_id for content in contents]
    adapters = touched(tx, going)
    return Found(
        target=target,
        everywhere=everywhere,
        policy=policy,
        files=files.files,
        contents=contents,
        shared=len(all_of_it) - len(contents),
        holders=tuple(f"{row.source}/{row.path}" for row in elsewhere if not row.is_near)[:MOST_NAMED],
        near=tuple(f"{row.source}/{row.path}" for row in elsewhere if row.is_near)[:MOST_NAMED],
        adapters=adapters,
        open_rounds=open_rounds(tx, going),
        refuges=_refuges(tx, adapters) if policy is Policy.REFUSE else {},
    )


def touched(tx: Transaction, content_ids: Sequence[int], track: str | None = None) -> tuple[Adapter, ...]:
    """Adapters that learned from these contents, or continue from one that did; of all tracks or one."""
    rows = tx.all("forget_adapters", content_ids=list(content_ids)) if content_ids else []
    return tuple(Adapter(*row) for row in rows if track in (None, row.track))


def marked(database: Database, forgetting: int, track: str) -> list[str]:
    """Directories of the adapters of a track that a forgetting has marked."""
    with database.transaction() as tx:
        rows = tx.all("forgotten_adapters", forgetting=forgetting)
    return [row.directory for row in rows if row.track == track]


def open_rounds(tx: Transaction, content_ids: Sequence[int]) -> tuple[OpenRound, ...]:
    """Unfinished rounds with any of these contents in their snapshot."""
    rows = tx.all("forget_rounds", content_ids=list(content_ids)) if content_ids else []
    return tuple(OpenRound(row.track, row.number) for row in rows if row.state == "open")


def _refuges(tx: Transaction, adapters: Sequence[Adapter]) -> dict[str, str | None]:
    """By the ledger alone: when it comes to it, one whose files are damaged is passed over."""
    gone = {adapter.adapter_id for adapter in adapters}
    found = {}
    for track in sorted({adapter.track for adapter in adapters if adapter.is_champion}):
        earlier = rows.read(tx, track).earlier
        clean = next((each for each in earlier if each is None or each.adapter_id not in gone), None)
        found[track] = None if clean is None else clean.directory
    return found
