"""What the database holds of a chunk's drafts and of their near duplicates, and so what is kept of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.core.db import Transaction
from services.processor import clusters
from services.processor.stages.fingerprints import FINGERPRINT_VERSION
from services.processor.store.ids import array
from services.processor.values import Draft


@dataclass(frozen=True, slots=True)
class Stored:
    """What the database holds of the drafts of a chunk, and of their near duplicates."""

    ids: dict[bytes, int]  # address → content
    cluster_of: dict[int, int]  # content → its cluster; of the kept members of groups too
    versions: dict[int, int]  # content → the scorer it was scored by
    outdated: frozenset[bytes] = frozenset()  # addresses of those whose units lack fingerprints of today
    blank: frozenset[bytes] = frozenset()  # of those whose text was forgotten, and that may come again
    group_of: dict[int, int] = field(default_factory=dict)  # band key → group
    kept_of: dict[int, clusters.Kept] = field(default_factory=dict)  # group → its kept member

    def has(self, address: bytes) -> bool:
        """Whether the text is there, not just its row."""
        return address in self.ids and address not in self.blank


def look_up(transaction: Transaction, drafts: Mapping[bytes, Draft]) -> Stored:
    """What is stored of these drafts and of the texts that share a band key with one."""
    rows = transaction.all("stored_contents", addresses=list(drafts)) if drafts else []
    stored = Stored(
        ids={bytes(row.sha256): row.id for row in rows},
        cluster_of={row.id: row.cluster_id for row in rows},
        versions={row.id: row.scorer_version for row in rows},
        outdated=frozenset(bytes(row.sha256) for row in rows if row.units_version < FINGERPRINT_VERSION),
        blank=frozenset(bytes(row.sha256) for row in rows if row.blank),
    )
    if keys := clusters.wanted_keys(candidates(drafts)):
        stored.group_of.update(transaction.all("groups_of_keys", keys=array(keys)))
    if groups := set(stored.group_of.values()):
        for row in transaction.all("kept_of_groups", groups=array(groups)):
            address = bytes(row.sha256)
            stored.kept_of[row.group_id] = clusters.Kept(row.content_id, address, row.score, row.live)
            stored.ids[address] = row.content_id
            stored.cluster_of[row.content_id] = row.cluster_id
    return stored


def candidates(drafts: Mapping[bytes, Draft]) -> list[clusters.Candidate]:
    return [clusters.Candidate(draft.sha256, draft.score.value, draft.bands) for draft in drafts.values()]


def decide(drafts: Mapping[bytes, Draft], stored: Stored) -> clusters.Decision:
    """What is kept of these drafts, given what is stored."""
    return clusters.decide(candidates(drafts), stored.group_of, stored.kept_of)
