"""What every page owes everybody: axe-core finds nothing, a phone is wide enough, nothing hostile runs."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.acceptance.browser import CHROMIUM, COLOURS, axe, before_paint, first_paint, history_pages

PATHS = history_pages()
OVERRIDING = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\x1b\x07]")
MARKUP = """[...document.querySelectorAll("img[src=x], i, b, script:not([src])")]
  .filter(node => !node.textContent || /2026|second|self.name|owned/.test(node.textContent)).length"""
MOST_BEFORE_PAINT = 100_000  # bytes, uncompressed

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


@pytest.fixture
def visit(browser: Browser, history: str) -> Iterator[Callable[..., Page]]:
    """Open a page of the history in a fresh context."""
    contexts = []

    def open_page(path: str, **options: Any) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.goto(history + path, wait_until="load")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing(visit: Callable[..., Page], path: str) -> None:
    """All rules in the light theme; in the dark one those of colour, for nothing else differs."""
    page = visit(path, reduced_motion="reduce")
    assert axe(page, path, "light") + axe(page, path, "dark", rules=COLOURS) == []


@pytest.mark.parametrize("path", PATHS)
def test_it_fits_a_phone_and_nothing_hostile_runs(visit: Callable[..., Page], path: str) -> None:
    """At 360 pixels nothing scrolls sideways; no name or code of others is markup, script or bidi control."""
    page = visit(path, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert "owned" not in page.title()
    assert page.evaluate(MARKUP) == 0
    assert OVERRIDING.findall(page.locator("body").inner_text()) == []


@pytest.mark.parametrize("path", ["/", "/ingest", "/rounds"])
def test_little_must_come_before_it_is_painted(browser: Browser, history: str, path: str) -> None:
    """The page, its style sheets, a script of a few lines. bench/metrics.py measures how long it takes."""
    assert first_paint(browser, history + path) > 0
    came = before_paint(browser, history + path)
    assert [name for name in came if name.endswith(".js")] == ["/static/theme.js"]
    assert sum(came.values()) < MOST_BEFORE_PAINT


def test_a_keyboard_comes_to_the_content_first(visit: Callable[..., Page]) -> None:
    """The first stop of the tab key leads past the navigation, and can be seen."""
    page = visit("/")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    assert (skip.bounding_box() or {"y": -1})["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "live"


def test_the_theme_is_chosen_and_remembered(visit: Callable[..., Page]) -> None:
    """The button goes from the system's theme to light to dark; the next page is dark at once."""
    page = visit("/", color_scheme="light")
    button = page.locator("#theme")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button.click()
    button.click()
    dark = page.evaluate(background)
    page.goto(page.url.rstrip("/") + "/alerts", wait_until="commit")
    page.wait_for_selector("#live")
    assert dark != light
    assert page.evaluate(background) == dark
    assert button.inner_text() == "Theme: dark"
