"""Small published adapters with receipts, for tests: no model, no database."""

import hashlib
from pathlib import Path

from services.core.models import ContentRole, Json
from services.trainer import publish
from services.trainer.receipts.lines import (
    LEARNED,
    ROLES,
    Added,
    Content,
    Header,
    Line,
    Parent,
    Source,
    recipe_digest,
)
from services.trainer.receipts.writing import parent_of, write_lines

RECIPE = {"name": "demo", "lora_r": 8, "learning_rate": 0.005}


def content(number: int, role: ContentRole = ContentRole.TRAIN) -> Content:
    """The content of that number, in one file of one of two repositories."""
    repository = ("flask", "häßlich")[number % 2]
    learned: Json = {}
    if role in LEARNED:
        learned = {"seen": 3, "samples": 1, "tokens": 30, "spans": ((1, 4),)}
    return Content(
        role=role,
        sha256=hashlib.sha256(b"%d" % number).hexdigest(),
        language="python",
        bytes=100 + number,
        lines=4,
        score=80,
        licence="MIT" if number % 3 == 0 else None,
        files=((repository, f"src/file_{number}.py", "c0ffee"),),
        judged=((0, 10),) if role is ContentRole.HELD_OUT and number % 2 else None,
        **learned,
    )


def lines(contents: list[Content], *, number: int = 1, parent: Parent | None = None) -> list[Line]:
    """A receipt's lines but its end."""
    ordered = sorted(contents, key=lambda each: ROLES.index(each.role))
    snapshot = hashlib.sha256()
    for each in ordered:
        snapshot.update(each.role.encode() + bytes.fromhex(each.sha256))
        if each.judged is not None:
            snapshot.update(repr(each.judged).encode())
    header = Header(
        track="demo",
        round=number,
        adapter=f"round-{number:04}",
        base_model="a/base",
        parent=parent,
        snapshot=snapshot.hexdigest(),
        recipe=recipe_digest(RECIPE),
        counts={role: sum(each.role is role for each in ordered) for role in ROLES},
        exposure="counted",
        steps=5,
        tokens=sum(each.tokens or 0 for each in ordered),
        created_at=f"2026-01-{number:02}T00:00:00+00:00",
    )
    return [header, Source(name="flask", type="git", commit="ab" * 20, licence="BSD-3-Clause"),
            Source(name="häßlich"), *ordered]  # fmt: skip


def adapter(track_dir: Path, made: list[Line], **manifest: object) -> Path:
    """A published adapter with this receipt."""
    header = made[0]
    assert isinstance(header, Header)

    def write(folder: Path) -> None:
        (folder / "README.md").write_text("An adapter without weights.\n")
        write_lines(folder, [line for line in made if isinstance(line, Header | Source | Content | Added)])

    about = {
        "track": header.track, "round": header.round, "recipe": RECIPE, "base_model": header.base_model,
        "base_revision": header.base_revision, "snapshot_hash": header.snapshot,
        "parent": header.parent.adapter if header.parent else None, "created_at": header.created_at,
    }  # fmt: skip
    publish.publish(track_dir, header.adapter, write, {**about, **manifest})
    return track_dir / header.adapter


def line_of(track_dir: Path, rounds: int = 3) -> Path:
    """So many adapters, each continuing from the one before; the folder of the last."""
    folder: Path | None = None
    for number in range(1, rounds + 1):
        first = 10 * number
        contents = [content(each) for each in range(first, first + 4)]
        contents += [content(first + 4, ContentRole.VALIDATION), content(first + 5, ContentRole.HELD_OUT)]
        if number > 1:
            contents.append(content(first - 10, ContentRole.REPLAY))
        parent = None if folder is None else parent_of(folder)
        folder = adapter(track_dir, lines(contents, number=number, parent=parent))
    assert folder is not None
    return folder
