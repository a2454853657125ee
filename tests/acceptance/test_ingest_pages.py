"""The pages of ingest in a real browser: the line of the threshold moves, and hostile code does nothing."""

from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest
from playwright.sync_api import Browser, Page

from tests import metrics_history
from tests.acceptance.browser import CHROMIUM, visiting

SCORE = 65  # that some contents of the history have, below the threshold in force

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


@pytest.fixture
def visit(browser: Browser, history: str) -> Iterator[Callable[..., Page]]:
    with visiting(browser, history) as visit:
        yield visit


def move(page: Page, score: int) -> None:
    """As a hand does: the value, and that it is moving."""
    page.locator("#threshold").evaluate(
        "(input, score) => { input.value = score;"
        " input.dispatchEvent(new Event('input', { bubbles: true })); }",
        score,
    )


def place(page: Page) -> float:
    return float((page.locator("#threshold-line").get_attribute("x1") or "").rstrip("%"))


def test_the_line_follows_the_hand(visit: Callable[..., Page]) -> None:
    """At once: the line, the bars on either side of it, the words."""
    page = visit("/ingest")
    before = place(page), page.locator("#scores rect.above").count()
    move(page, SCORE)
    assert place(page) < before[0]
    assert page.locator("#scores rect.above").count() > before[1]
    assert page.locator("#said").inner_text().startswith(f"{SCORE} would admit")


def test_script_and_server_say_the_same(visit: Callable[..., Page]) -> None:
    """Word for word, with JavaScript and without, of thresholds that admit more, fewer, all or none."""
    with_script, without = visit("/ingest"), visit("/ingest", java_script_enabled=False)
    for score in (70, SCORE, 71, 0, 100):
        move(with_script, score)
        without.goto(f"{with_script.url.partition('?')[0]}?threshold={score}", wait_until="commit")
        assert with_script.locator("#said").inner_text() == without.locator("#said").inner_text()


def test_without_javascript_a_form_moves_the_line(visit: Callable[..., Page]) -> None:
    """The button sends the value, the page answers with the words."""
    page = visit("/ingest", java_script_enabled=False)
    page.locator("#threshold").fill(str(SCORE))
    page.locator("#try").click()
    assert page.url.endswith(f"threshold={SCORE}")
    assert page.locator("#said").inner_text().startswith(f"{SCORE} would admit")


def test_letting_go_takes_the_lists_along(visit: Callable[..., Page]) -> None:
    """The address names the threshold, and what lies at the line is read again; the line stays."""
    page = visit("/ingest")
    move(page, SCORE)
    page.locator("#threshold").dispatch_event("change")
    page.locator("#at-the-line", has_text=f"At the line of {SCORE}").wait_for(timeout=60_000)
    assert page.url.endswith(f"/ingest?threshold={SCORE}")
    assert page.locator("#said").inner_text().startswith(f"{SCORE} would admit")
    page.locator("#back").click()
    assert page.locator("#threshold").input_value() == "70"


def test_the_line_moves_by_the_keyboard(visit: Callable[..., Page]) -> None:
    page = visit("/ingest")
    page.locator("#threshold").focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#said").inner_text().startswith("69 would admit")


def test_hostile_code_is_shown_as_it_was_written(visit: Callable[..., Page]) -> None:
    """Tag by tag in the text of the page, with nothing of it in its tree."""
    text = metrics_history.HOSTILE[0][1]
    page = visit(f"/contents/{sha256(text).hexdigest()}")
    code = page.locator(".code")
    assert code.locator("li").count() == text.decode().count("\n")
    assert '"""</code></pre><script>document.title = "owned"</script>"""' in code.inner_text()
    assert page.locator(".code script, .code img, .code b").count() == 0
    assert code.locator("mark.escape", has_text="\\u202e").count() == 2
    assert "owned" not in page.title()


def test_hostile_names_lead_to_their_files(visit: Callable[..., Page]) -> None:
    """From the source's page, whose name is hostile too, to the file's."""
    page = visit("/ingest")
    page.get_by_role("link", name=metrics_history.HOSTILE_SOURCE).click()
    page.get_by_role("link", name=metrics_history.MARKUP_NAME).click()
    assert page.locator("h1").inner_text() == metrics_history.MARKUP_NAME


def test_a_line_can_be_linked_to(visit: Callable[..., Page]) -> None:
    """A unit's line in the list of units is the line in the code."""
    page = visit(f"/contents/{sha256(metrics_history.HOSTILE[0][1]).hexdigest()}")
    page.locator("#units summary").click()
    page.locator("#units a").first.click()
    assert page.locator("li:target").get_attribute("id") == "L4"
