"""One browser, and one server with a history to look at, for all tests of the pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from pydantic import SecretStr

from services.core import db
from services.core.target import Target
from tests.acceptance.browser import CHROMIUM, chromium
from tests.conftest import ROLE_PASSWORD, administer
from tests.integration.metrics.server import running
from tests.metrics_history import fill

HISTORY = "ratchet_history"


@pytest.fixture(scope="module")  # while it is open no other event loop can run in its thread
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def history(server: Target, template: str) -> Iterator[str]:
    """Where the history of tests/metrics_history is served, which nothing may change."""
    administer(server, f"CREATE DATABASE {HISTORY} TEMPLATE {template} STRATEGY file_copy")
    owner = server.model_copy(update={"dbname": HISTORY})
    database = db.Database(owner, application="history")
    fill(database)
    database.close()
    administer(server, f"ALTER ROLE ratchet_metrics LOGIN PASSWORD '{ROLE_PASSWORD}'")
    role = owner.model_copy(update={"user": "ratchet_metrics", "password": SecretStr(ROLE_PASSWORD)})
    with running(role) as serving:
        yield serving.url
