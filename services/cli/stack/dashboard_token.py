"""The dashboard's token of a local run: DASHBOARD_TOKEN, or a random one that is kept in RATCHET_HOME."""

import os
import secrets
from pathlib import Path

from services.cli.environment import Environment

RANDOM_BYTES = 24


def path_below(home: Path) -> Path:
    return home / "secrets" / "dashboard" / "token"


def token(environment: Environment) -> tuple[str, str]:
    """The token, and where it lies; made on the first run, for this user's eyes alone."""
    named = environment.settings.dashboard_token
    if named is not None:
        return named.get_secret_value(), "DASHBOARD_TOKEN"
    path = path_below(environment.home)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(".token")
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(RANDOM_BYTES) + "\n")
        unfinished.replace(path)
    return path.read_text(encoding="utf-8").strip(), str(path)
