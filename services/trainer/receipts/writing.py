"""A round's receipt, written a line at a time: 100,000 contents take no more memory than a few thousand."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from services.core.models import ContentRole
from services.trainer.ledger import Ledger, Round
from services.trainer.publish import MANIFEST
from services.trainer.receipts.exposure import Exposure
from services.trainer.receipts.lines import (
    LEARNED,
    NAME,
    ROLES,
    Added,
    Content,
    End,
    Header,
    Line,
    Parent,
    Solution,
    Source,
    recipe_digest,
)
from services.trainer.receipts.merkle import Tree
from services.trainer.samples import solutions

LINES_A_BEAT = 2000


class Behind(Protocol):
    """The training behind the weights that are published, as a header has it."""

    @property
    def steps(self) -> int: ...

    @property
    def tokens(self) -> int: ...

    @property
    def is_counted(self) -> bool: ...


@dataclass(frozen=True)
class Training:
    """What a finished training came to, for its receipt."""

    steps: int  # behind the weights that are published
    is_counted: bool  # by what really happened; otherwise by the plan
    exposures: Mapping[int, Exposure]  # by content
    planted: Mapping[int, int]  # content → line before which a fake secret stood

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.exposures.values())


def write(
    folder: Path, ledger: Ledger, round_: Round, manifest: Mapping[str, Any], parent: Path | None,
    training: Training, beat: Callable[[], None] = lambda: None,
) -> list[tuple[int, int, int]]:  # fmt: skip
    """Write the receipt of a round into the folder that is to be published.

    `manifest` as it is to be written there, `parent` the folder of the champion before. Returns content,
    times seen and tokens of everything that the round was to train on, for the ledger.
    """
    left = dict(training.exposures)
    counted = []

    def lines() -> Iterator[Line]:
        counts = ledger.contents_by_role(round_.round_id)
        yield header(manifest, round_.name, parent_of(parent), training, counts)
        names = {}
        for row in ledger.sources_of(round_.round_id):
            names[row.source_id] = row.name
            yield Source(name=row.name, type=row.kind, commit=row.commit_id, licence=row.licence)
        for role in ROLES:
            for row in ledger.contents_of(round_.round_id, role):
                exposure = left.pop(row.content_id, Exposure()) if role in LEARNED else None
                if exposure is not None:
                    counted.append((row.content_id, exposure.seen, exposure.tokens))
                yield content(role, row, names, exposure, training.planted.get(row.content_id))
        for each in ledger.solutions(round_.round_id):
            yield solution(each, left.pop(each.content_id, Exposure()))
        yield from added(left.values())

    write_lines(folder, lines(), beat)
    return counted


def header(
    manifest: Mapping[str, Any], adapter: str, parent: Parent | None, training: Behind,
    counts: Mapping[ContentRole, int],
) -> Header:  # fmt: skip
    """`counts`: contents or tasks of the round by role."""
    return Header(
        track=manifest["track"],
        round=manifest["round"],
        adapter=adapter,
        base_model=manifest["base_model"],
        base_revision=manifest["base_revision"],
        parent=parent,
        snapshot=manifest["snapshot_hash"],
        recipe=recipe_digest(manifest["recipe"]),
        counts={role: counts.get(role, 0) for role in ROLES},
        exposure="counted" if training.is_counted else "planned",
        steps=training.steps,
        tokens=training.tokens,
        created_at=manifest["created_at"],
    )


def parent_of(folder: Path | None) -> Parent | None:
    """What chains a receipt to the one of the adapter in this folder; None: the base model is the parent."""
    if folder is None:
        return None
    data = (folder / MANIFEST).read_bytes()
    receipt = json.loads(data)["files"].get(NAME)
    return Parent(adapter=folder.name, manifest=hashlib.sha256(data).hexdigest(), receipt=receipt)


def content(
    role: ContentRole, row: Any, names: Mapping[int, str], exposure: Exposure | None, planted: int | None
) -> Content:
    """From a row of `receipt_contents`. names: of sources; exposure None: the round was judged by it."""
    files = sorted(((names[source], path), commit) for source, path, commit in row.files or ())
    return Content(
        role=role,
        sha256=row.sha256,
        language=row.language,
        bytes=row.bytes,
        lines=row.lines,
        score=row.score,
        licence=row.licence,
        files=tuple((*place, commit) if commit else place for place, commit in files),
        judged=None if row.judged is None else tuple(tuple(span) for span in row.judged),
        seen=None if exposure is None else exposure.seen,
        samples=None if exposure is None else exposure.samples,
        tokens=None if exposure is None else exposure.tokens,
        spans=None if exposure is None else exposure.spans,
        planted=planted,
    )


def solution(found: solutions.Solution, exposure: Exposure) -> Solution:
    """The line of a program of the round's snapshot."""
    return Solution(
        task_set=found.task_set,
        task=found.name,
        task_sha256=found.task,
        sha256=found.sha256,
        seen=exposure.seen,
        samples=exposure.samples,
        tokens=exposure.tokens,
    )


def solutions_seen(exposures: Mapping[int, Exposure]) -> dict[int, int]:
    """Solution → times that it was in a step."""
    return {solutions.id_of(key): each.seen for key, each in exposures.items() if key <= solutions.FIRST_ID}


def added(exposures: Iterable[Exposure]) -> Iterator[Added]:
    """A line for what was trained on that is no content, or none."""
    others = list(exposures)
    if others:
        yield Added(
            seen=sum(each.seen for each in others),
            samples=sum(each.samples for each in others),
            tokens=sum(each.tokens for each in others),
        )


def write_lines(folder: Path, lines: Iterable[Line], beat: Callable[[], None] = lambda: None) -> None:
    """Write them below the folder, header first, with the line that ends a receipt."""
    tree = Tree()
    with (folder / NAME).open("wb") as file:
        for line in lines:
            encoded = line.encoded()
            tree.add(encoded)
            file.write(encoded)
            if tree.size % LINES_A_BEAT == 0:
                beat()
        file.write(End(lines=tree.size, root=tree.root.hex()).encoded())
