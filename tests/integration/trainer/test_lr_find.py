"""`ratchet lr-find` with a tiny model on real code in the database."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from services.core.db import Database
from services.core.settings import PROJECT
from services.core.target import Target
from tests.integration.trainer.conftest import standard_library
from tests.integration.trainer.test_round import rows

OPTIONS = ("--steps", "24", "--from", "1e-5", "--to", "0.5", "--json")


def test_the_curve_is_found_and_the_ledger_untouched(
    target: Target, recipe_file: Path, tmp_path: Path, store: Callable[[list[str]], None], database: Database
) -> None:
    """A tiny random model learns at one of the rates; no track is made, no round opened."""
    store(standard_library(20))
    secret = target.password.get_secret_value()
    done = subprocess.run(
        [sys.executable, "-m", "services.cli.main", "lr-find", str(recipe_file), *OPTIONS],
        cwd=PROJECT,
        env={
            **os.environ,
            "DATABASE_URL": f"postgresql://{target.user}:{secret}@{target.host}:{target.port}/{target.dbname}",
            "CACHE_DIR": str(tmp_path / "cache"),
            "HF_HUB_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["recipe"] == "tiny"
    assert 1e-5 < found["suggestion"] <= found["lowest"] < 0.51
    losses = [point["smoothed"] for point in found["points"]]
    assert min(losses) < losses[0] - 0.05
    assert rows(database, "SELECT 1 FROM tracks") == rows(database, "SELECT 1 FROM rounds") == []
