"""Where `ratchet up` gets the dashboard's token from, and who learns it."""

import stat
from pathlib import Path

from pydantic import SecretStr

from services.cli import environment
from services.cli.stack import dashboard_token
from services.core.settings import Settings
from services.core.target import Target

TARGET = Target(host="h", port=5432, dbname="d", user="u", password=SecretStr("p"))


def test_one_is_made_once_and_kept_for_its_owner(tmp_path: Path) -> None:
    """Long enough to be a setting, the same at the next start, for nobody else to read."""
    here = environment.read({}, tmp_path)
    token, where = dashboard_token.token(here)
    assert Settings(dashboard_token=SecretStr(token)).dashboard_token is not None
    assert dashboard_token.token(here) == (token, where)
    assert stat.S_IMODE(Path(where).stat().st_mode) == 0o600


def test_the_one_that_is_set_is_taken(tmp_path: Path) -> None:
    """Nothing is written then; only the metrics service learns it."""
    token = "a-token-that-is-long-enough"
    here = environment.read({"DASHBOARD_TOKEN": token}, tmp_path)
    assert dashboard_token.token(here) == (token, "DASHBOARD_TOKEN")
    assert not dashboard_token.path_below(here.home).exists()
    services = ("processor", "trainer", "metrics")
    learned = [name for name in services if "DASHBOARD_TOKEN" in here.for_service(name, TARGET)]
    assert learned == ["metrics"]
