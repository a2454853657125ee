"""One cluster for what is nearly the same and for what replaces one another; old ones merge."""

from collections.abc import Iterable, Mapping

from services.core.db import Transaction
from services.processor.clusters import Decision, Forest
from services.processor.store.ids import take
from services.processor.store.stored import Stored

Node = dict[bytes, int]  # a draft's address → its negative number; a stored cluster is its own id


def unite(
    tx: Transaction,
    drafts: Iterable[bytes],
    stored: Stored,
    decision: Decision,
    ids: Mapping[bytes, int],
    replaced: Iterable[tuple[bytes, int]],
) -> dict[int, int]:
    """Content → its cluster, of the drafts that have an id and of what is stored; merges are recorded.

    drafts: their addresses; ids: contents by address; replaced: a new text and the cluster of what was at its
    path before.
    """
    node = {address: -number for number, address in enumerate(drafts, start=1)}
    forest = _forest(node, stored, decision, replaced)
    for absorbed in [member for member in forest if member > 0]:
        if (into := forest.root(absorbed)) != absorbed:
            for query in ("merge_clusters", "redirect_merges", "record_merge"):
                tx.execute(query, absorbed=absorbed, into=into)
    unnamed = {root for number in node.values() if (root := forest.root(number)) < 0}
    new = dict(zip(unnamed, take(tx, "new_cluster_ids", len(unnamed)), strict=True))

    def cluster_of(member: int) -> int:
        root = forest.root(member)  # the oldest stored cluster, where there is one
        return new.get(root, root)

    drafted = {ids[address]: cluster_of(number) for address, number in node.items() if address in ids}
    return drafted | {content_id: cluster_of(cluster) for content_id, cluster in stored.cluster_of.items()}


def _forest(node: Node, stored: Stored, decision: Decision, replaced: Iterable[tuple[bytes, int]]) -> Forest:
    """Drafts and stored clusters, each component of which becomes one cluster."""
    forest = Forest()

    def place(address: bytes) -> int:
        content_id = stored.ids.get(address)
        cluster = stored.cluster_of.get(content_id or 0)
        if address not in node:
            assert cluster is not None, "what is kept is a draft or stored"
            return cluster
        if cluster is not None:
            forest.join(node[address], cluster)
        return forest.root(node[address])

    for address in decision.kept:
        place(address)
    for address, kept in decision.rejected.items():
        forest.join(place(address), place(kept))
    for content_id, kept in decision.demoted.items():
        forest.join(stored.cluster_of[content_id], place(kept))
    for address, cluster in replaced:
        forest.join(place(address), cluster)
    return forest
