"""Pages rendered once for all who ask, and again in the background while somebody looks at them.

`create_app` wraps the views of the blueprint `pages` with it: a page needs to do nothing for it, and must
tell everybody the same. It is rendered when nobody has asked for it lately or an event was heard of, and for
a while after that with every new snapshot, so that who looks again need not wait; for each who is signed in
apart, since buttons are forms then; and whenever it shows what came of a request.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from flask import Flask, request

from services.metrics.front import same_for_all

log = logging.getLogger(__name__)
FRESH = 2.0  # seconds a page is shown; with every snapshot, once a second, those looked at are made anew
LOOKED_AT = 20.0  # seconds since it was asked for: pages ask again every 15
MOST, MOST_AGAIN = 200, 8  # pages kept, and of them rendered again
Render = Callable[[], Any]


@dataclass
class Rendered:
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: Hashable = None
    at: float = 0.0  # monotonic seconds
    asked_at: float = 0.0
    body: bytes | None = None
    again: Render | None = None  # the view, as it was asked for last

    def show(self, text: str, version: Hashable) -> None:
        """From now on."""
        self.version, self.at, self.body = version, time.monotonic(), text.encode()


class SharedPages:
    def __init__(
        self, app: Flask, version: Callable[[], Hashable], reader: Callable[[], Hashable], own: str
    ) -> None:
        """version: changes with every event; reader: who asks; own: a parameter of what is for one alone."""
        self._app = app
        self._version, self._reader, self._own = version, reader, own
        self._pages: OrderedDict[Hashable, Rendered] = OrderedDict()
        self._lock = threading.Lock()

    def wrap(self, blueprint: str) -> None:
        for name, view in self._app.view_functions.items():
            if name.startswith(f"{blueprint}."):
                self._app.view_functions[name] = self._shared(view)

    def render_again(self) -> None:
        """What somebody looks at, the last asked for first. In the background: raises nothing."""
        now = time.monotonic()
        with self._lock:
            pages = [page for page in reversed(self._pages.values()) if now - page.asked_at < LOOKED_AT]
        for page in pages[:MOST_AGAIN]:
            try:
                version = self._version()
                answer = page.again() if page.again is not None else None
            except Exception:  # it is not there any more, or the database is away: who asks is told
                log.debug("a page could not be rendered again", exc_info=True)
                answer = None
            if isinstance(answer, str):
                page.show(answer, version)

    def _shared(self, view: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(view)
        def serve(**parameters: Any) -> Any:
            if request.method not in ("GET", "HEAD") or self._own in request.args:
                return view(**parameters)
            page = self._page((self._reader(), request.full_path))
            same_for_all(lambda: self._shown(page))
            if (body := self._shown(page)) is not None:
                return body
            with page.lock:  # one renders, the others wait for it
                if (body := self._shown(page)) is not None:
                    return body
                version = self._version()
                answer = view(**parameters)
                if isinstance(answer, str):
                    page.show(answer, version)
                    page.again = self._as_asked(view, parameters)
                return answer

        return serve

    def _shown(self, page: Rendered) -> bytes | None:
        """The page to somebody who asks for it now; None when it has to be rendered."""
        page.asked_at = now = time.monotonic()
        is_good = page.version == self._version() and now - page.at < FRESH
        return page.body if is_good else None

    def _as_asked(self, view: Callable[..., Any], parameters: dict[str, Any]) -> Render:
        """The view in a request like this one."""
        asked = {"path": request.full_path, "base_url": request.host_url}
        headers = {name: value for name in ("Cookie",) if (value := request.headers.get(name))}

        def render() -> Any:
            with self._app.test_request_context(**asked, headers=headers):
                return view(**parameters)

        return render

    def _page(self, key: Hashable) -> Rendered:
        with self._lock:
            page = self._pages.pop(key, None) or Rendered()
            self._pages[key] = page
            if len(self._pages) > MOST:
                self._pages.popitem(last=False)
            return page
