"""Whether a receipt is the one that its adapter was published with, back to the base model. No database.

What it proves, and what not: docs/reference/receipts.md.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.core.errors import ReceiptError
from services.trainer import publish
from services.trainer.receipts import reading
from services.trainer.receipts.lines import NAME, Parent, recipe_digest
from services.trainer.receipts.reading import Item, Receipt

BASE = "base"
OF_THE_HEADER = {  # field of the header → the manifest's name for it
    "track": "track", "round": "round", "base_model": "base_model", "base_revision": "base_revision",
    "snapshot": "snapshot_hash", "created_at": "created_at",
}  # fmt: skip


@dataclass(frozen=True)
class Link:
    """An adapter of the chain, the newest first."""

    adapter: str
    receipt: str | None  # SHA-256; None: it has none


@dataclass(frozen=True)
class Chain:
    """From an adapter to the base model, as far as the folders beside it reach."""

    links: tuple[Link, ...]
    open_because: str | None = None  # why it does not reach the base model; None: it does


def manifest_of(folder: Path) -> dict[str, Any]:
    """Raises ReceiptError for a folder without one."""
    try:
        manifest: dict[str, Any] = json.loads((folder / publish.MANIFEST).read_text(encoding="utf-8"))
        dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ReceiptError(
            f"{folder} is not a published adapter: no sound {publish.MANIFEST} ({exc})"
        ) from exc
    return manifest


def read(folder: Path, on_item: Callable[[Item], None] = lambda _: None) -> Receipt:
    """The receipt that the adapter's manifest names, every line checked.

    Raises ReceiptError when the adapter is older than receipts, and for every kind of damage.
    """
    manifest = manifest_of(folder)
    expected = manifest["files"].get(NAME)
    if expected is None:
        extra = f"; the {NAME} in it is not its own" if (folder / NAME).exists() else ""
        raise ReceiptError(
            f"{folder} was published before adapters had receipts{extra}: what it was trained on is in the"
            " ledger only, ask `ratchet which-adapters`"
        )
    if not (folder / NAME).exists():
        raise ReceiptError(f"{folder / NAME} is missing: the adapter was published with one")
    receipt = reading.read(folder, on_item)
    if receipt.sha256 != expected:
        raise ReceiptError(
            f"{folder / NAME} agrees with itself, but {publish.MANIFEST} names another: it was replaced"
        )
    _check_header(receipt, manifest, folder)
    return receipt


def verify(folder: Path, on_item: Callable[[Item], None] = lambda _: None) -> tuple[Receipt, Chain]:
    """As `read`; every file of the adapter as the manifest has it, and every receipt before this one.

    Raises ReceiptError, and PublishError for the adapter's other files.
    """
    receipt = read(folder, on_item)
    publish.verify(folder)
    return receipt, chain(folder, receipt)


def chain(folder: Path, receipt: Receipt) -> Chain:
    """Parents are looked for beside the adapter. Raises ReceiptError for another one than was named."""
    links = [Link(receipt.header.adapter, receipt.sha256)]
    child = receipt
    while (parent := child.header.parent) is not None:
        beside = folder.parent / parent.adapter
        if not beside.is_dir():
            return Chain(
                tuple(links),
                f"{parent.adapter} is not beside it: put the folder there to go on from its manifest"
                f" {parent.manifest[:12]}…",
            )
        _check_parent(child, parent, beside)
        if parent.receipt is None:
            links.append(Link(parent.adapter, None))
            return Chain(tuple(links), f"{parent.adapter} was published before adapters had receipts")
        older = read(beside)
        if older.header.round >= child.header.round or older.header.track != child.header.track:
            raise ReceiptError(f"{child.path}: {older.name} cannot be the parent of {child.name}")
        links.append(Link(older.header.adapter, older.sha256))
        child = older
    return Chain((*links, Link(BASE, None)))


def _check_header(receipt: Receipt, manifest: Mapping[str, Any], folder: Path) -> None:
    """It is about this adapter."""
    header = receipt.header
    said = {field: getattr(header, field) for field in OF_THE_HEADER}
    expected = {field: manifest.get(name) for field, name in OF_THE_HEADER.items()}
    said |= {"recipe": header.recipe, "parent": header.parent.adapter if header.parent else None}
    expected |= {"recipe": recipe_digest(manifest.get("recipe")), "parent": manifest.get("parent")}
    for field, value in expected.items():
        if said[field] != value:
            raise ReceiptError(
                f"{folder / NAME} is about another adapter: its {field} is {said[field]!r},"
                f" the manifest's {value!r}"
            )


def _check_parent(child: Receipt, parent: Parent, folder: Path) -> None:
    try:
        data = (folder / publish.MANIFEST).read_bytes()
        receipt = json.loads(data)["files"].get(NAME)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ReceiptError(
            f"{folder} has no sound {publish.MANIFEST}: {child.name} continues from it ({exc})"
        ) from exc
    if hashlib.sha256(data).hexdigest() != parent.manifest or receipt != parent.receipt:
        raise ReceiptError(
            f"the chain is broken: {folder} is not the adapter that {child.name} was trained from"
            f" (its {publish.MANIFEST} is another)"
        )
