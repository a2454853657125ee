"""Follows `current`: a promoted adapter is loaded beside the one before, then takes its place.

The live adapter changes between two instructions of one thread, so a request is answered by the one or by
the other as a whole; the one before stays loaded until the last answer it began is finished. Of a team every
role's adapter is loaded before any is asked: at no moment do its names stand for adapters of two releases.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.core.errors import ServingError
from services.serving import adapters
from services.serving.adapters import BASE, Served
from services.serving.backend import Backend, BackendUnavailableError
from services.serving.names import Name, parse
from services.serving.shelf import Policy, Shelf
from services.trainer.parity import record

log = logging.getLogger(__name__)
LOOK_SECONDS = 0.1  # between two looks at a link
CHECK_SECONDS = 5.0  # between two looks at what the server has: it may have been started again
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds before an adapter that was refused is tried again
KEPT_SECONDS = 300.0  # that an adapter asked for by name stays loaded


@dataclass(frozen=True)
class Answering:
    """Who answers one request."""

    model: str  # the server's name for it
    adapter: Served | None  # None: the base model


class Follower:
    """One track's adapters in one server."""

    def __init__(self, track_dir: Path, backend: Backend, policy: Policy) -> None:
        self.track = track_dir.name
        self._dir = track_dir
        self._backend = backend
        self._shelf = Shelf(track_dir, backend, policy)
        self._live: str | None = None  # an adapter's name; None: the base model
        self._began = False  # whether `_live` was ever settled
        self._since = _now()
        self._problem: str | None = None  # why `current` is not live
        self._unreachable: str | None = None
        self._tried: str | None = None  # what `current` named when the problem came up
        self._next_try, self._wait = 0.0, FIRST_WAIT  # monotonic seconds, seconds
        self._next_check = 0.0  # monotonic seconds

    # asked by the front

    @asynccontextmanager
    async def answering(self, asked: str) -> AsyncIterator[Answering]:
        """Who answers to this name, held until the answer is complete.

        asked: as `names` has it, or base. Raises ServingError for any other, or one that cannot
        be loaded, BackendUnavailableError before anything was live.
        """
        wanted = None if asked == BASE else self._parsed(asked)
        by_name = wanted is not None and wanted.release is not None
        if wanted is not None and not by_name and not self._began:
            why = self._unreachable or self._problem or "it is being loaded"
            raise BackendUnavailableError(f"{self.track} is not served yet: {why}")
        name = None if wanted is None else wanted.release or self._live
        if wanted is None or name is None:
            yield Answering(BASE, None)
            return
        if name not in self._shelf.loaded or (by_name and not adapters.is_offered(self._dir, name)):
            await self._shelf.load(name)
        loaded = self._shelf.loaded[name]
        model = loaded.adapter.model(wanted.role)
        loaded.users += 1
        try:
            yield Answering(model, loaded.adapter)
        finally:
            loaded.users -= 1
            if by_name:
                loaded.until = time.monotonic() + KEPT_SECONDS

    async def load_again(self, adapter: Served) -> None:
        """The server does not know the adapter any more: it was started again."""
        await self._shelf.load_again(adapter)

    def models(self) -> list[str]:
        """The names that can be asked, those that follow `current` first."""
        named = [name for each in adapters.published(self._dir) for name in self._names(each, each)]
        return [*self._names(self._live, None), BASE, *named]

    def _names(self, release: str | None, shown: str | None) -> list[str]:
        """What a release is asked as: of a team by each role. shown: the release that the names have."""
        roles = () if release is None else adapters.roles(self._dir, release)
        return [Name(role, shown).of(self.track) for role in roles or (None,)]

    @property
    def healthy(self) -> bool:
        """Whether the server answers."""
        return self._shelf.base is not None and self._unreachable is None

    @property
    def ready(self) -> bool:
        """Whether the track is answered, by what was promoted last or by the one before."""
        return self.healthy and self._began

    def status(self) -> dict[str, Any]:
        """What is served and why; for people and probes."""
        live = self._shelf.loaded[self._live].adapter if self._live is not None else None
        return {
            "status": self._state(),
            "track": self.track,
            "serving": None if not self._began else BASE if live is None else live.name,
            "roles": [] if live is None else list(live.roles),
            "sha256": None if live is None else live.digest,
            "since": self._since,
            "parity": None if live is None else record.said(live.parity),
            "servable": live is None or live.parity is not None,
            "current": adapters.current(self._dir) or BASE,
            "problem": self._unreachable or self._problem,
            "server": self._backend.url,
            "loaded": {loaded.adapter.name: loaded.users for loaded in self._shelf.loaded.values()},
        }

    def _state(self) -> str:
        if not self.ready:
            return "unavailable"
        return "behind" if self._problem else "ok"

    # following

    async def run(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            try:
                await self.look()
            except Exception:  # the next look may go well, and what is live is served on
                log.exception("looking at %s failed", self._dir)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Have the server know what it is to serve, make `current` live, and let go of what nobody uses."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            await self._check_server()
        if not self.healthy:
            return
        wanted = adapters.current(self._dir)
        if wanted == self._live and self._began:
            self._problem, self._next_try, self._wait = None, 0.0, FIRST_WAIT
        else:
            await self._move(wanted)
        await self._shelf.let_go(self._live)

    async def _move(self, wanted: str | None) -> None:
        """Make it live; while that fails the one before answers on."""
        if self._problem is not None and time.monotonic() < self._next_try and wanted == self._tried:
            return
        self._tried = wanted
        try:
            if wanted is not None:
                await self._shelf.load(wanted)
        except ServingError as exc:
            if str(exc) != self._problem:
                log.error("%s goes on with %s: %s", self.track, self._words(), exc)
                self._wait = FIRST_WAIT
            self._problem = str(exc)
            self._next_try = time.monotonic() + self._wait
            self._wait = min(2 * self._wait, LONGEST_WAIT)
            if isinstance(exc, BackendUnavailableError):
                self._next_check = 0.0
            return
        before = self._words()
        self._live, self._began, self._problem, self._since = wanted, True, None, _now()
        words = "" if wanted is None else f"; {record.said(self._shelf.loaded[wanted].adapter.parity)}"
        log.info("%s is answered by %s now, before it was %s%s", self.track, wanted or BASE, before, words)

    def _words(self) -> str:
        return (self._live or BASE) if self._began else "nothing"

    def _parsed(self, asked: str) -> Name:
        name = parse(self.track, asked)
        if name is None:
            known = self._names(self._live, None)
            raise ServingError(
                f"the model {asked!r} does not exist: ask {' or '.join(known)} (which follows `current`),"
                f" {known[0]}@round-0001 or any other round, or {BASE}"
            )
        return name

    async def _check_server(self) -> None:
        """Whether it answers, and has what it is to have."""
        try:
            await self._shelf.reconcile()
        except ServingError as exc:
            if str(exc) != self._unreachable:
                log.warning("%s", exc)
            self._unreachable = str(exc)
            self._next_check = time.monotonic() + FIRST_WAIT
            return
        if self._unreachable is not None:
            log.info("%s answers", self._backend.url)
        self._unreachable = None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
