"""The overview in a real browser: light, dark, on a phone, with and without JavaScript."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from services.core.db import Database
from services.core.models import Service, ServiceState
from services.core.target import Target
from tests.acceptance.browser import CHROMIUM, CONTRAST, visiting
from tests.integration.metrics.rows import beat, fill
from tests.integration.metrics.server import running

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


@pytest.fixture
def address(role_target: Callable[[str], Target], database: Database) -> Iterator[str]:
    """Where the page of a database with realistic rows is served."""
    fill(database)
    with running(role_target("ratchet_metrics")) as server:
        yield server.url


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    with visiting(browser, address) as visit:
        yield visit


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
    assert colours == ["rgb(247, 246, 242)", "rgb(18, 22, 21)"]


def test_it_fits_a_phone(visit: Callable[..., Page]) -> None:
    """At 360 pixels nothing makes the page scroll sideways."""
    page = visit(viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_it_is_whole_without_javascript(visit: Callable[..., Page]) -> None:
    """Health, progress, curves, counts and verdicts are in the page as served; no idle button."""
    page = visit(java_script_enabled=False)
    assert page.locator("#status").inner_text().endswith("ok")
    assert "Training round 3 of demo" in page.locator("section", has_text="Step").first.inner_text()
    assert page.get_by_role("img").count() == 2
    assert page.locator("text=0.2 % fewer bits than the champion").count() == 1
    assert page.get_by_role("link", name="Reload").count() == 1
    assert page.locator("#theme").is_hidden()


def test_a_chart_can_be_heard_and_read(visit: Callable[..., Page]) -> None:
    """An image with a description, drawn by uPlot, and its figures in a table below."""
    page = visit()
    chart = page.locator(".plot[role=img]").first
    assert "from 1.98 nats a token at step 1" in (chart.get_attribute("aria-label") or "")
    assert chart.locator("canvas").count() == 1
    page.locator("#data-1 summary").click()
    assert page.locator("#data-1 tbody tr").count() == 84


def test_a_noisy_loss_is_smoothed_if_asked(visit: Callable[..., Page]) -> None:
    """What was chosen for one chart is remembered for the next visit."""
    page = visit()
    page.locator(".smooth input").uncheck()
    page.reload()
    assert not page.locator(".smooth input").is_checked()
    assert "smoothed" not in page.locator(".plot").first.inner_text()


def test_it_follows_what_happens(visit: Callable[..., Page], database: Database) -> None:
    """Without a reload a trainer that fails shows; what was opened stays open, what was drawn stays drawn."""
    page = visit()
    page.locator("#data-1 summary").click()
    page.evaluate("document.querySelector('.plot').dataset.same = 'yes'")
    beat(database, Service.TRAINER, ServiceState.ERROR, {"message": "the model is missing"})
    page.wait_for_selector("#status.ill", timeout=60_000)
    assert page.locator("text=error: the model is missing").count() == 1
    assert page.locator("#data-1[open]").count() == 1
    assert page.locator(".plot[data-same=yes] canvas").count() == 1


def test_it_asks_for_nothing_while_nobody_looks(visit: Callable[..., Page]) -> None:
    """A page in the background gives its stream back: a browser has six connections a host."""
    page = visit()
    page.wait_for_function("() => document.getElementById('live') && window.htmx")
    page.evaluate("""() => {
      window.returned = 0;
      const close = EventSource.prototype.close;
      EventSource.prototype.close = function () { window.returned += 1; close.call(this); };
      Object.defineProperty(document, "hidden", { value: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }""")
    assert page.evaluate("window.returned") == 1


def test_what_was_typed_stays(visit: Callable[..., Page]) -> None:
    """A page that is taken again leaves a field alone that somebody has begun to fill in."""
    page = visit()
    kept = page.evaluate("""() => {
      const form = document.createElement("form");
      form.innerHTML = "<input name=reason><input name=other value=a><select><option>1<option>2</select>";
      form.elements.reason.value = "because";
      form.elements[2].selectedIndex = 1;
      const fresh = "<input name=reason><input name=other value=b><select><option>1<option>2</select>";
      Idiomorph.morph(form, `<form>${fresh}</form>`);
      return [...form.elements].map(field => field.value);
    }""")
    assert kept == ["because", "b", "2"]
