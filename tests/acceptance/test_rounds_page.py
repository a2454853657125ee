"""The pages of rounds and adapters in a real browser: live where JavaScript runs, whole where it does not."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Page
from pydantic import SecretStr

from services.core.db import Database, as_json
from services.core.target import Target
from tests.acceptance.browser import CHROMIUM, visiting
from tests.conftest import ROLE_PASSWORD
from tests.integration.metrics.server import running
from tests.integration.metrics.test_rounds import database_of
from tests.metrics_history import RUNNING_STEP, TRACK, fill
from tests.metrics_history.filling import beat

PATIENT = 60_000  # milliseconds until what happened is on the page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def past(server: Target, template: str) -> Iterator[Database]:
    """A history that tests may add to."""
    with (
        database_of(server, template, "rounds_in_a_browser") as target,
        closing(Database(target)) as database,
    ):
        fill(database)
        yield database


@pytest.fixture(scope="module")
def address(past: Database) -> Iterator[str]:
    login = {"user": "ratchet_metrics", "password": SecretStr(ROLE_PASSWORD)}
    with running(past.target.model_copy(update=login)) as server:
        yield server.url


@pytest.fixture
def visit(browser: Browser, address: str, past: Database) -> Iterator[Callable[..., Page]]:
    beat(past, datetime.now(UTC))
    with visiting(browser, address) as visit:
        yield visit


def learn(database: Database, step: int) -> None:
    """The running round goes on: a point of its curve, a line of its log, a beat."""
    with database.transaction() as tx:
        tx._cursor.execute("SELECT id FROM rounds WHERE state = 'open'")
        round_id = tx._cursor.fetchone()[0]
        metrics = as_json({"loss": 0.123, "grad_norm": 0.4, "learning_rate": 1e-4, "tokens_per_s": 900.0})
        tx.execute("record_progress", round_id=round_id, kind="train", step=step, metrics=metrics)
        tx.execute(
            "record_round_log", round_id=round_id, at=[datetime.now(UTC)], levels=["INFO"],
            lines=[f"train step {step}: loss 0.123"],
        )  # fmt: skip
        tx._cursor.execute(
            "UPDATE heartbeats SET beat_at = now(), detail = detail || %s WHERE service = 'trainer'",
            (as_json({"step": step, "loss": 0.123}),),
        )


def test_a_round_under_way_is_followed(visit: Callable[..., Page], past: Database) -> None:
    """Without a reload its figures, curve and log go on; what was opened stays open, what was drawn stays."""
    page = visit(f"/rounds/{TRACK}/6")
    page.locator(".plot[role=img] canvas").first.wait_for()
    page.evaluate("document.querySelector('.plot').dataset.same = 'yes'")
    page.locator("#all-settings summary").click()
    step = RUNNING_STEP + 2
    learn(past, step)
    page.locator(f".plot[aria-label*='0.123 at step {step}']").wait_for(timeout=PATIENT)
    assert f"{step} of" in page.locator("#live .figures").first.inner_text()
    assert f"train step {step}: loss 0.123" in page.locator(".log").inner_text()
    assert page.locator("#all-settings[open]").count() == 1
    assert page.locator(".plot[data-same=yes] canvas").count() == 1


def test_every_chart_is_an_image_with_words_and_figures(visit: Callable[..., Page]) -> None:
    page = visit(f"/rounds/{TRACK}/3")
    page.locator(".plot[role=img] canvas").nth(5).wait_for()
    for chart in page.locator(".plot[role=img]").all():
        assert " at step " in (chart.get_attribute("aria-label") or "")
    page.locator("#data-4 summary").click()
    assert page.locator("#data-4 tbody tr").count() > 100


@pytest.mark.parametrize(
    "path", [f"/rounds/{TRACK}/4", "/rounds", "/adapters", f"/adapters/{TRACK}/round-0003"]
)
def test_it_is_whole_without_javascript(visit: Callable[..., Page], path: str) -> None:
    page = visit(path, java_script_enabled=False)
    assert page.locator("main").inner_text().count("round") > 3
    if "/rounds/" in path:
        assert page.locator("figure.chart svg[role=img]:visible").count() == 6
        assert page.locator("figure.interval svg[role=img]").count() == 1


@pytest.mark.parametrize(
    "path",
    ["/rounds", f"/rounds/{TRACK}/1", "/adapters", f"/adapters/{TRACK}/round-0004",
     f"/adapters/compare?a={TRACK}/round-0001&b={TRACK}/round-0003"],
)  # fmt: skip
def test_it_fits_a_phone(visit: Callable[..., Page], path: str) -> None:
    """At 360 pixels nothing makes the page scroll sideways, hostile names and all."""
    page = visit(path, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_bar_of_the_timeline_leads_to_its_round(visit: Callable[..., Page]) -> None:
    page = visit("/rounds")
    page.locator("figure.timeline a").nth(1).click()
    page.wait_for_url(f"**/rounds/{TRACK}/2")
    assert page.locator("h1").inner_text() == f"Round 2 of {TRACK}"


def test_two_adapters_are_chosen_and_compared(visit: Callable[..., Page]) -> None:
    page = visit("/adapters/compare")
    page.locator("select[name=a]").select_option(f"{TRACK}/round-0001")
    page.locator("select[name=b]").select_option(f"{TRACK}/round-0003")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/adapters/compare?a=*")
    assert page.locator("figure.chart.drawn").first.locator(".u-series").count() == 3  # the steps, A and B
    page.locator("summary", has_text="what both wrote").first.click()
    assert page.locator("details[open] .pair pre").count() >= 2
