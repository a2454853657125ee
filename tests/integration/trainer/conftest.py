"""A tiny random model of a true architecture, real code in the database, and a daemon to train on it."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.core.db import Database, as_json
from services.core.settings import PROJECT
from services.core.target import Target
from tests import tiny_model as tiny


def standard_library(most: int) -> list[str]:
    """Real code: texts of the standard library's modules between 2 and 6 kB."""
    return [path.read_text(encoding="utf-8") for path in tiny.standard_library(most)]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder, made once."""
    return tiny.make(tmp_path_factory.mktemp("tiny-model"))


@pytest.fixture
def recipe_file(tiny_model: Path, tmp_path: Path) -> Path:
    """A recipe that trains the tiny model in seconds, and learns for certain."""
    return tiny.recipe(tmp_path, tiny_model)


@pytest.fixture
def store(database: Database) -> Callable[[list[str]], None]:
    """Puts texts into the ledger as the processor would: one source, a file and a cluster each."""

    def put(texts: list[str]) -> None:
        with database.transaction() as tx:
            cursor = tx._cursor
            cursor.execute(
                "INSERT INTO sources (name) VALUES ('repo')"
                " ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id"
            )
            source = cursor.fetchone()[0]
            for text in texts:
                digest = hashlib.sha256(text.encode()).digest()
                cursor.execute(
                    "WITH new AS (SELECT nextval('contents_id_seq') AS id)"
                    " INSERT INTO contents (id, sha256, cluster_id, language, text, bytes, characters,"
                    " lines, score, score_reasons, scorer_version, live) OVERRIDING SYSTEM VALUE"
                    " SELECT new.id, %s, new.id, 'python', %s, %s, %s, %s, 90, %s, 1, true FROM new"
                    " RETURNING id",
                    (digest, text, len(text.encode()), len(text), text.count("\n") + 1, as_json({})),
                )
                content_id = cursor.fetchone()[0]
                cursor.execute(
                    "INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id)"
                    " VALUES (%s, %s, %s, 0, %s)",
                    (source, f"{digest.hex()}.py", len(text), content_id),
                )

    return put


class Trainer:
    """The daemon as a real process."""

    def __init__(self, target: Target, recipe_file: Path, home: Path) -> None:
        self.adapters = home / "adapters"
        self.checkpoints = home / "checkpoints"
        self.cache = home / "cache"
        self.log = home / "trainer.log"
        self._environment = {
            **os.environ,
            "POSTGRES_HOST": target.host,
            "POSTGRES_PORT": str(target.port),
            "POSTGRES_DB": target.dbname,
            "POSTGRES_USER": target.user,
            "POSTGRES_PASSWORD": target.password.get_secret_value(),
            "RECIPE": str(recipe_file),
            "ADAPTERS_DIR": str(self.adapters),
            "CHECKPOINTS_DIR": str(self.checkpoints),
            "CACHE_DIR": str(self.cache),
            "LOGS_DIR": str(home / "logs"),
            "MIN_NEW_FILES": "10",
            "CHECK_INTERVAL": "1",
            "WANDB_MODE": "disabled",
            "HF_HUB_OFFLINE": "1",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **environment: str) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.trainer"],
                cwd=PROJECT,
                env={**self._environment, **environment},
                stdout=log,
                stderr=log,
            )
        return self.process

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


@pytest.fixture
def trainer(target: Target, recipe_file: Path, tmp_path: Path) -> Iterator[Trainer]:
    daemon = Trainer(target, recipe_file, tmp_path)
    yield daemon
    daemon.stop()
    if daemon.process is not None:
        sys.stderr.write(daemon.log.read_text()[-6000:])
