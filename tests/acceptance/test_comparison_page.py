"""The page of a comparison in a real browser: light, dark, on a phone, by keyboard, on paper, harmless."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from services.cli.judging.comparison_page import page as made
from tests.acceptance.browser import CHROMIUM, CONTRAST

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\n"
    "</pre></details><iframe src=file:///etc/passwd></iframe>\x1b]0;owned\x07\u202edetrever\u2066\u200b\n"
    '<a href="javascript:document.title=1">click</a>{{ 7 * 7 }}{% raw %}\n'
)
NAMES = ["base", "demo/round-0001", "/models/<b>bold</b>"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


def document() -> dict[str, Any]:
    """Three models on six items, two of them hostile, one a line that is wider than any screen."""
    texts = ["    return a + b\n", HOSTILE, "x" * 500 + "\n", "def f():\n\treturn 1\n"]
    metrics = {"exact_match": 0.5, "edit_similarity": 0.75}
    subjects = [
        {"name": name, "kind": "adapter", "base_model": HOSTILE, "folder": None, "quantised": False,
         "figures": metrics, "bits_per_byte": 0.5, "tokens_per_second": 9.5, "seconds": 1.0, "from_cache": 0}
        for name in NAMES
    ]  # fmt: skip
    pairs = [
        {"of": name, "against": NAMES[0], "metric": "edit_similarity", "wins": 3, "losses": 1, "ties": 2,
         "p": 0.6, "mean": 0.1, "low": -0.1, "high": 0.3, "groups": 4} for name in NAMES[1:]
    ]  # fmt: skip
    items = [
        {"name": f"{'very/' * 20}long.py:{at}" if at == 2 else f"a.py:{at}", "kind": "line",
         "before": texts[at % 4], "wanted": "    return b + a\n",
         "answers": {name: {"text": texts[(at + turn) % 4], "values": metrics, "results": {HOSTILE: 2}}
                     for turn, name in enumerate(NAMES)}}
        for at in range(6)
    ]  # fmt: skip
    agreements = [{"of": name, "against": NAMES[0], "same": 1, "answers": 6} for name in NAMES[1:]]
    return {
        "asked": {"what": "prompts", "of": HOSTILE, "files": 6}, "device": "2 CPU threads",
        "confidence": 0.95, "subjects": subjects, "pairs": pairs, "agreements": agreements, "items": items,
    }  # fmt: skip


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open the page in a fresh context; it may ask for nothing but itself, and log no error."""
    file = tmp_path / "comparison.html"
    file.write_text(made(document()), encoding="utf-8")
    requests: list[str] = []
    errors: list[str] = []
    contexts = []

    def open_page(**options: Any) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert set(requests) == {file.as_uri()}
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_themes(visit: Callable[..., Page], scheme: str) -> None:
    """Every text, marked or not, has a contrast of at least 4.5 to what is behind it (WCAG 2.2, 1.4.3)."""
    page = visit(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(node => node.open = true)")
    assert page.evaluate(CONTRAST) == []


def test_dark_is_dark(visit: Callable[..., Page]) -> None:
    colours = [
        visit(color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(250, 249, 245)", "rgb(20, 24, 23)"]


def test_what_models_wrote_stays_text(visit: Callable[..., Page]) -> None:
    """No element of it, nothing run, no character that turns or hides what is beside it."""
    page = visit()
    assert page.title().startswith("base")
    assert page.locator("script, iframe, img, a").count() == 0
    text = page.locator("body").text_content() or ""
    assert "<script>" in text
    assert "\\u202e" in text
    assert "{{ 7 * 7 }}" in text
    assert not set(text) & set("\x1b\x07\u202e\u2066\u200b")


def test_it_fits_a_phone(visit: Callable[..., Page]) -> None:
    """At 360 pixels nothing makes the page scroll sideways, not even a line of 500 characters."""
    page = visit(viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_answers_stand_side_by_side_where_there_is_room(visit: Callable[..., Page]) -> None:
    page = visit(viewport={"width": 1280, "height": 900})
    tops = (
        page.locator("details")
        .first.locator(".answers > section")
        .evaluate_all("nodes => nodes.slice(0, 3).map(node => Math.round(node.getBoundingClientRect().top))")
    )
    assert len(set(tops)) == 1


def test_it_can_be_read_by_keyboard(visit: Callable[..., Page]) -> None:
    """The fourth answer is closed; Tab reaches it, Enter opens it, and what is focused shows."""
    page = visit(java_script_enabled=True)
    assert page.locator("details").nth(3).get_attribute("open") is None
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName + document.activeElement.textContent").startswith(
            "SUMMARYa.py:3"
        ):
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator("details").nth(3).get_attribute("open") is not None


def test_it_is_whole_without_javascript_and_on_paper(visit: Callable[..., Page]) -> None:
    page = visit(java_script_enabled=False)
    page.emulate_media(media="print")
    assert page.locator("tbody tr").count() == len(NAMES) + 2
    assert page.locator("details").count() == 6
    assert page.pdf()[:5] == b"%PDF-"
