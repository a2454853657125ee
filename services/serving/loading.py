"""A release's adapters in and out of a server: of a team all of them, or none."""

import contextlib
import logging

from services.core.errors import ServingError
from services.serving.adapters import Served
from services.serving.backend import Backend

log = logging.getLogger(__name__)


async def load(backend: Backend, release: Served) -> None:
    """Raises ServingError when one is refused; those that went in before it are taken out again."""
    done: list[str] = []
    try:
        for model, folder in release.parts.items():
            await backend.load(model, folder)
            done.append(model)
    except ServingError:
        for model in done:
            with contextlib.suppress(ServingError):
                await backend.unload(model)
        raise


async def unload(backend: Backend, release: Served) -> None:
    """What cannot be unloaded is said, and forgotten: no name leads to it any more."""
    for model in release.parts:
        try:
            await backend.unload(model)
            log.info("unloaded %s", model)
        except ServingError as exc:
            log.warning("%s", exc)
