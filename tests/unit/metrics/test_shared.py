"""One rendering for all who look at the same moment."""

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Blueprint, Flask, abort, request

from services.metrics import shared
from services.metrics.shared import SharedPages


class Site:
    """An application with one page, which counts how often it was rendered."""

    def __init__(self) -> None:
        self.rendered = 0
        self.version: Hashable = 1
        self.app = Flask(__name__)
        pages = Blueprint("pages", __name__)
        pages.add_url_rule("/<name>", view_func=self.page)
        self.app.register_blueprint(pages)
        reader = lambda: request.headers.get("X-Reader")  # noqa: E731
        self.shared = SharedPages(self.app, lambda: self.version, reader, "asked")
        self.shared.wrap("pages")

    def page(self, name: str) -> str:
        if name == "none":
            abort(404)
        self.rendered += 1
        return f"{name} {self.rendered}"

    def get(self, path: str, reader: str = "") -> str:
        return self.app.test_client().get(path, headers={"X-Reader": reader}).text


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(shared, "FRESH", 60.0)
    return Site()


def test_it_is_rendered_once(site: Site) -> None:
    """For all at once, and until there is something new."""
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(site.get, ["/a"] * 50)) == {"a 1"}
    site.version = 2
    assert site.get("/a") == "a 2"


def test_it_is_as_old_as_it_may_be(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is rendered anew, though nothing is new."""
    assert site.get("/a") == "a 1"
    monkeypatch.setattr(shared, "FRESH", 0.0)
    assert site.get("/a") == "a 2"


def test_what_differs_is_not_shared(site: Site) -> None:
    """Another path, another query, another reader, an outcome of one's own."""
    seen = [site.get("/a"), site.get("/b"), site.get("/a?x=1"), site.get("/a", "ada"), site.get("/a?asked=1")]
    assert len(set(seen)) == 5
    assert site.get("/a?asked=1") not in seen
    assert site.get("/a", "ada") in seen


def test_what_is_no_page_is_not_kept(site: Site) -> None:
    """A 404 is asked for each time; and of many pages only so many are kept."""
    assert site.app.test_client().get("/none").status_code == 404
    for number in range(shared.MOST + 10):
        site.shared._page(number)
    assert len(site.shared._pages) == shared.MOST


def test_what_is_looked_at_is_rendered_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was asked for, by whom; who comes then need not wait. What nobody looks at is left alone."""
    site.get("/a?x=1", "ada")
    site.shared.render_again()
    assert (site.get("/a?x=1", "ada"), site.rendered) == ("a 2", 2)
    monkeypatch.setattr(shared, "LOOKED_AT", 0.0)
    site.shared.render_again()
    assert site.rendered == 2


def test_a_page_that_fails_in_the_background_stays_as_it_was(site: Site) -> None:
    """Whoever asks next is told."""
    site.get("/a")
    (page,) = site.shared._pages.values()
    page.again = lambda: 1 / 0
    site.shared.render_again()
    assert site.get("/a") == "a 1"
