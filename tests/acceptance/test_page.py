"""The page in a real browser: light, dark, on a phone, with and without JavaScript."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from services.core.db import Database
from services.core.models import Service, ServiceState
from services.core.settings import Target
from tests.integration.metrics.rows import beat, fill
from tests.integration.metrics.server import running

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CONTRAST = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => { for (; node; node = node.parentElement) {
    const colour = parse(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour; } return [255, 255, 255]; };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    if (![...node.childNodes].some(c => c.nodeType === 3 && c.data.trim())) continue;
    if (node.closest("title, desc") || !node.getClientRects().length) continue;
    const style = getComputedStyle(node), svg = node.closest("svg");
    const [a, b] = [light(parse(svg ? style.fill : style.color)), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(node.className + " " + node.textContent.trim().slice(0, 40));
  }
  return bad; }"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield opened
        opened.close()


@pytest.fixture
def address(role_target: Callable[[str], Target], database: Database) -> Iterator[str]:
    """Where the page of a database with realistic rows is served."""
    fill(database)
    with running(role_target("ratchet_metrics")) as server:
        yield server.url


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Open the page in a fresh context; at the end, it must have logged no error."""
    errors: list[str] = []
    contexts = []

    def open_page(**options: Any) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address, wait_until="networkidle")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_themes(visit: Callable[..., Page], scheme: str) -> None:
    """Every text has a contrast of at least 4.5 to what is behind it (WCAG 2.2, 1.4.3)."""
    assert visit(color_scheme=scheme).evaluate(CONTRAST) == []


def test_dark_is_dark(visit: Callable[..., Page]) -> None:
    """prefers-color-scheme chooses the background."""
    colours = [
        visit(color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(250, 249, 245)", "rgb(20, 24, 23)"]


def test_it_fits_a_phone(visit: Callable[..., Page]) -> None:
    """At 360 pixels nothing makes the page scroll sideways."""
    page = visit(viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_it_is_whole_without_javascript(visit: Callable[..., Page]) -> None:
    """Health, progress, curves, ingest counts and verdicts are in the page as served."""
    page = visit(java_script_enabled=False)
    assert page.locator("#status").inner_text() == "ok"
    assert "Round 3 of demo: training" in page.locator("section", has_text="Now").first.inner_text()
    assert page.get_by_role("img").count() == 2
    assert page.locator("text=7.4 % fewer bits than the base model").count() == 1
    assert page.locator("caption", has_text="Files refused, by reason").count() == 1


def test_a_chart_can_be_heard_and_read(visit: Callable[..., Page]) -> None:
    """An image with a name and a description, and its figures in a table below."""
    page = visit()
    chart = page.get_by_role("img", name="Training loss by step")
    assert "from 1.98 nats a token at step 1" in (chart.locator("desc").text_content() or "")
    page.locator("#data-1 summary").click()
    assert page.locator("#data-1 tbody tr").count() == 84


def test_it_follows_what_happens(visit: Callable[..., Page], database: Database) -> None:
    """Without a reload a trainer that fails shows; what was opened stays open."""
    page = visit()
    page.locator("#data-1 summary").click()
    beat(database, Service.TRAINER, ServiceState.ERROR, {"message": "the model is missing"})
    page.wait_for_selector("#status.ill", timeout=20_000)
    assert page.locator("text=error: the model is missing").count() == 1
    assert page.locator("#data-1[open]").count() == 1
