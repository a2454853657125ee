"""A small world in which the commands of the documentation mean something: code, a database, adapters.

Its names are those of the pages: a project at ~/code/my-project, sources called flask, ours and theirs,
tracks called demo and qwen14b-qlora with four promoted rounds each, a recipe mine.yaml.
"""

import datetime
import gzip
import io
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backports import zstd

from services.core.db import Database
from services.core.models import ContentRole, RoundState
from services.core.settings import PROJECT
from services.trainer import publish
from services.trainer.ledger import Ledger
from services.trainer.promotions.champions import Champions
from services.trainer.receipts import writing
from services.trainer.receipts.exposure import Exposure
from services.trainer.recipes.recipe import Recipe
from tests import tiny_adapter
from tests.documents import blocks
from tests.integration.processor.conftest import LETTERS, code

TRACKS = ("demo", "qwen14b-qlora", "qwen1.5b-sft")
ROUNDS = 4
SOURCES = {  # name → files worth keeping
    "my-project": ("src/tables.py", "src/api/handlers.py", "README.md"),
    "flask": ("src/flask/app.py", *(f"src/flask/part_{number:02}.py" for number in range(48))),
    "ours": ("src/keys.py", "vendored.py", "lib/acme/wheels.py"),
    "theirs": ("theirs.py", "more.py"),
}
OPTIONS: dict[str, Any] = {"held_out_min": 2, "validation_min": 1, "replay_share": 0.2}


@dataclass(frozen=True)
class World:
    """Where everything is; `here` is the folder that commands are typed in."""

    root: Path

    @property
    def here(self) -> Path:
        return self.root / "ratchet"

    @property
    def home(self) -> Path:
        """The reader's own folder, `~`."""
        return self.root / "home"

    @property
    def ingest(self) -> Path:
        return self.here / "ingest"

    @property
    def adapters(self) -> Path:
        return self.here / "adapters"

    def variables(self, database_url: str) -> dict[str, str]:
        """The environment of a command."""
        return {
            "DATABASE_URL": database_url, "HOME": str(self.home), "INGEST_DIR": str(self.ingest),
            "ADAPTERS_DIR": str(self.adapters), "RATCHET_HOME": str(self.here / ".ratchet"),
            "BENCHMARKS_DIR": str(self.here / "benchmarks"), "RECIPE": "demo", "HF_HUB_OFFLINE": "1",
            "COLUMNS": "200", "WEBHOOK_FORMAT": "slack", "WEBHOOK_URLS": "http://127.0.0.1:9/ratchet",
        }  # fmt: skip

    def copy(self, root: Path) -> "World":
        """The same elsewhere, for a command that changes it."""
        shutil.copytree(self.root, root, symlinks=True)
        return World(root)


def make(root: Path) -> World:
    """The files of the world; nothing of it is in a database yet."""
    world = World(root)
    for name, files in SOURCES.items():
        _write(world.ingest / name, files)
    for name in ("my-project", "other", "big"):
        _write(world.home / "code" / name, ("src/one.py", f"src/{name}.py"), name)
    _archive(world.home / "code" / "other.tar.gz", "other")
    _archive(world.here / "release-1.2.tar.gz", "release")
    plain = gzip.decompress((world.here / "release-1.2.tar.gz").read_bytes())
    (world.home / "code" / "my-project.tar.zst").write_bytes(zstd.compress(plain))
    _archive(world.ingest / "bundle.tar.gz", "pkg")
    _write(world.home / "corpora" / "2026-11" / "orchard", ("apples.py", "pears.py"), "orchard")
    _write(world.here, ("draft.py", "start.py"), "here")
    logs = world.here / ".ratchet" / "logs"
    logs.mkdir(parents=True)
    for name in ("processor", "trainer", "metrics", "sandbox", "postgres"):
        (logs / f"{name}.log").write_text(f"{name} runs\n", encoding="utf-8")
    shutil.copy(world.ingest / "flask" / "src" / "flask" / "app.py", world.here / "app.py")
    recipe = next(  # the page's first
        block for block in blocks(PROJECT / "docs" / "how-to" / "recipes.md") if block.language == "yaml"
    )
    (world.here / "mine.yaml").write_text("\n".join(recipe.lines) + "\n", encoding="utf-8")
    return world


def train(world: World, database: Database) -> None:
    """Rounds of every track, as the trainer leaves them."""
    for track in TRACKS:
        ledger = Ledger(database, track)
        recipe = Recipe(name=track, base_model="./model", **OPTIONS)
        lease = ledger.take(recipe, "a trainer")
        assert lease is not None
        for _ in range(ROUNDS):
            _round(ledger, lease, recipe, world.adapters / track)
            Champions(database, track, world.adapters / track).follow()
    shutil.copytree(world.adapters / "demo" / "round-0003", world.here / "copied")


def _round(ledger: Ledger, lease: Any, recipe: Recipe, folder: Path) -> None:
    opened = ledger.open_or_resume(lease, recipe, 0, 5)
    assert opened is not None
    trained = ledger.snapshot(opened.round_id)
    exposures = {each.content_id: Exposure() for role in _LEARNED for each in trained[role]}
    for exposure in exposures.values():
        exposure.add(1, 11, 40, times=3)
    parent = None if opened.parent is None else folder / opened.parent.directory
    manifest = {
        "track": recipe.name, "round": opened.number, "kind": "adapter", "base_model": recipe.base_model,
        "recipe": recipe.model_dump(mode="json"), "base_revision": None, "parent": parent and parent.name,
        "snapshot_hash": opened.snapshot_hash, "metrics": {}, "canary": [],
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }  # fmt: skip

    def write(into: Path) -> None:
        tiny_adapter.make(into, opened.number, base_model_name_or_path=recipe.base_model)
        counted = writing.Training(steps=6, is_counted=True, exposures=exposures, planted={})
        writing.write(into, ledger, opened, manifest, parent, counted)

    published = publish.publish(folder, opened.name, write, manifest)
    verdict = {"promoted": True, "reason": "better", "low": 0.01}
    ledger.close(
        lease, opened, state=RoundState.PROMOTED, training={}, verdict=verdict, losses={}, manifest=published
    )


_LEARNED = (ContentRole.TRAIN, ContentRole.REPLAY)


def _write(folder: Path, files: tuple[str, ...], salt: str = "") -> None:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        noun = f"{folder.name}_{salt}_{name}".translate(LETTERS)  # each its own words
        path.write_text(code("".join(filter(str.isalpha, noun))), encoding="utf-8")


def _archive(path: Path, name: str) -> None:
    data = code(name).encode()
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(f"{name}/mod.py")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
