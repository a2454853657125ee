"""Signing in and asking a trainer for something, as a person does it: in a browser."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from services.core.db import Database
from services.core.target import Target
from tests.acceptance.browser import CHROMIUM, axe
from tests.integration.metrics.rows import fill
from tests.integration.metrics.server import running

TOKEN = "of-a-dashboard-in-tests-0123456789"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


@pytest.fixture
def page(browser: Browser, role_target: Callable[[str], Target], database: Database) -> Iterator[Page]:
    """The overview of a track on which no round runs, for somebody who has not signed in."""
    fill(database, running=False)
    with running(role_target("ratchet_metrics"), DASHBOARD_TOKEN=TOKEN) as server:
        context = browser.new_context()
        opened = context.new_page()
        opened.goto(server.url, wait_until="load")
        yield opened
        context.close()


def test_a_browser_signs_in_and_asks(page: Page, database: Database) -> None:
    """By the link beside what can be asked; what came of it stands on the page one comes back to."""
    page.get_by_role("link", name="Pause: sign in").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_label("Your name").fill("ada")
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#outcome")).to_contain_text("pause, asked of the trainer of demo")
    assert axe(page, "/?asked", "light") + axe(page, "/?asked", "dark") == []
    with database.transaction() as transaction:
        transaction._cursor.execute("SELECT kind, track, actor, state FROM requests")
        assert [tuple(row) for row in transaction._cursor.fetchall()] == [("pause", "demo", "ada", "waiting")]
