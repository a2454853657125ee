"""Chromium without a window, and what is asked of every page in it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from tests.metrics_history import HOSTILE, HOSTILE_SOURCE, TEAM, TRACK

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
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
COLOURS = ("color-contrast", "link-in-text-block")  # axe's rules that a theme can break
STANDARDS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")  # tags of axe's rules
# Every text whose contrast to what is behind it is below 4.5
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

# Path and bytes of the page and of every resource that keeps it from being painted
BEFORE_PAINT = """() => ["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind))
  .filter(each => each.entryType === "navigation" || each.renderBlockingStatus === "blocking")
  .map(each => [new URL(each.name).pathname, each.decodedBodySize])"""


@dataclass(frozen=True)
class Violation:
    """A rule of axe-core that an element of a page breaks."""

    path: str
    scheme: str
    rule: str
    element: str  # its HTML, cut
    why: str


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        try:
            yield opened
        finally:
            opened.close()


def history_pages() -> list[str]:
    """The path of every kind of page, of what tests/metrics_history tells of."""
    content = sha256(HOSTILE[0][1]).hexdigest()
    return [
        "/",
        "/ingest",
        "/ingest/rejections",
        f"/ingest/sources/{quote(HOSTILE_SOURCE, safe='')}",
        f"/contents/{content}",
        "/rounds",
        f"/rounds/{TRACK}/4",
        f"/rounds/{TRACK}/6",
        f"/rounds/{TEAM}/1",
        "/adapters",
        f"/adapters/{TRACK}/round-0003",
        f"/adapters/{TEAM}/round-0001",
        f"/adapters/compare?a={TRACK}/round-0001&b={TRACK}/round-0003",
        "/alerts",
        "/api",
        "/login",
        "/nothing-is-here",
    ]


def axe(page: Page, path: str, scheme: Scheme, rules: Sequence[str] | None = None) -> list[Violation]:
    """What axe-core finds wrong with the page as it is now, in one theme, by all rules or by those named."""
    page.emulate_media(color_scheme=scheme)
    asked = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": STANDARDS}
    options = {"resultTypes": ["violations"], "runOnly": asked}
    found = Axe().run(page, options=options).response["violations"]
    return [
        Violation(path, scheme, rule["id"], node["html"][:160], node["failureSummary"])
        for rule in found
        for node in rule["nodes"]
    ]


def axe_violations(address: str, paths: Sequence[str] | None = None) -> list[Violation]:
    """What axe-core finds wrong with the pages below `address` (http://host:port), in both themes.

    Without `paths`, those of the history in tests/metrics_history, which the server must then serve.
    """
    found = []
    with chromium() as browser:
        page = browser.new_page(reduced_motion="reduce")
        for path in history_pages() if paths is None else paths:
            page.goto(address + path, wait_until="load")
            for scheme in SCHEMES:
                found += axe(page, path, scheme)
    return found


def first_paint(browser: Browser, url: str) -> float:
    """Milliseconds until Chromium first paints content, in a fresh context with empty caches."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url, wait_until="load")
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    context.close()
    return float(painted)


def before_paint(browser: Browser, url: str) -> dict[str, int]:
    """What Chromium waits for before it paints: path → bytes, of the page itself and of what it names."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url, wait_until="load")
    came: list[tuple[str, int]] = page.evaluate(BEFORE_PAINT)
    context.close()
    return dict(came)


@contextmanager
def visiting(browser: Browser, base: str) -> Iterator[Callable[..., Page]]:
    """Opens a path below `base`, each in a context of its own with the options of `Browser.new_context`.

    At the end no page may have logged an error or opened a dialog.
    """
    errors: list[str] = []
    contexts = []

    def dismiss(dialog: Dialog) -> None:
        errors.append(dialog.message)
        dialog.dismiss()

    def open_page(path: str = "", **options: Any) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", dismiss)
        page.goto(base + path, wait_until="load")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
