"""What a server has in its memory: releases loaded for a track, kept while they are asked, and let go."""

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from pathlib import Path

from services.core.errors import ServingError
from services.serving import adapters, loading
from services.serving.adapters import BASE, Served
from services.serving.backend import Backend, BackendUnavailableError
from services.serving.names import parse
from services.trainer.parity import record

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Policy:
    """What may be served."""

    max_rank: int  # the server's --max-lora-rank
    without_parity: bool  # whether an adapter goes live whose parity was not measured


@dataclass
class Loaded:
    """A release in the server's memory: an adapter, or all of a team's."""

    adapter: Served
    users: int = 0  # answers that are being written
    until: float = 0.0  # monotonic seconds; how long it stays without users, unless it is live


class Shelf:
    """One track's releases in one server."""

    def __init__(self, track_dir: Path, backend: Backend, policy: Policy) -> None:
        self._track = track_dir.name
        self._dir = track_dir
        self._backend = backend
        self._policy = policy
        self.loaded: dict[str, Loaded] = {}  # by the release's name
        self.base: str | None = None  # what the server was started with; None: it was never reached
        self._changing = asyncio.Lock()  # one load or unload at a time

    async def load(self, name: str) -> None:
        """Have the release in the server's memory. Raises ServingError when it cannot be."""
        async with self._changing:
            found = await asyncio.to_thread(adapters.open_adapter, self._dir, name, self._policy.max_rank)
            if name in self.loaded:
                self.loaded[name].adapter = found  # its parity may have been measured meanwhile
                return
            self._check_base(found)
            self._check_parity(found)
            began = time.perf_counter()
            await loading.load(self._backend, found)
            self.loaded[name] = Loaded(found)
            log.info("loaded %s in %.2f s from %s", found, time.perf_counter() - began, found.folder)

    async def load_again(self, adapter: Served) -> None:
        """The server does not know the adapter any more: it was started again."""
        async with self._changing:
            await loading.load(self._backend, adapter)

    async def let_go(self, live: str | None) -> None:
        """Unload what is neither live nor used nor was asked for lately; and what is not offered any more."""
        now = time.monotonic()
        for name, loaded in list(self.loaded.items()):
            wanted = name == live or loaded.users
            if wanted or (now < loaded.until and adapters.is_offered(self._dir, name)):
                continue
            async with self._changing:
                if loaded.users:
                    continue
                del self.loaded[name]
                await loading.unload(self._backend, loaded.adapter)

    async def reconcile(self) -> None:
        """With what the server has: nothing, when it was started again; then all of it is loaded anew.

        Raises ServingError when the server does not answer, or serves something else.
        """
        there = await self._backend.models()
        if BASE not in there:
            raise BackendUnavailableError(
                f"{self._backend.url} serves {', '.join(there) or 'nothing'}: start it with"
                f" --served-model-name {BASE}"
            )
        self.base = there[BASE]
        for loaded in list(self.loaded.values()):
            was = loaded.adapter
            parity = record.of_release(self._dir, was.name, was.roles)  # measured meanwhile
            loaded.adapter = replace(was, parity=parity)
            if not was.parts.keys() <= there.keys():
                await self.load_again(loaded.adapter)
        for model in there:
            await self._forget_unknown(model)

    async def _forget_unknown(self, model: str) -> None:
        """An adapter of this track that an earlier front had loaded."""
        name = parse(self._track, model)
        if name is None or name.release is None:
            return
        if name.release == adapters.current(self._dir) or name.release in self.loaded:
            return
        if name.role is not None and name.role not in adapters.roles(self._dir, name.release):
            return  # of another track, whose name begins like this one's
        async with self._changing:
            if name.release not in self.loaded:
                await self._backend.unload(model)

    def _check_base(self, adapter: Served) -> None:
        """A hub id or a wheel's file can be compared; what a folder holds, only the server knows."""
        served, wanted = self.base, adapter.base_model
        comparable = served and not any(name.startswith(("/", ".")) for name in (served, wanted))
        if comparable and served != wanted:
            raise ServingError(
                f"{adapter} is an adapter of {wanted}, and the server was started with {served}"
            )

    def _check_parity(self, adapter: Served) -> None:
        if adapter.parity is None and not self._policy.without_parity:
            raise ServingError(
                f"parity of {adapter} is not measured: run `ratchet parity {adapter.name}`, or set"
                " SERVE_WITHOUT_PARITY=true"
            )
