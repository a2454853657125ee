"""How many processes a round has, on how many machines, and how torchrun is told."""

import logging
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from services.core.errors import ConfigurationError
from services.core.settings import Settings
from services.trainer.recipes.recipe import Recipe

log = logging.getLogger(__name__)
KNOCK = 2.0  # seconds the first machine may take to answer


@dataclass(frozen=True)
class Machines:
    """Machine `number` of `count`, with `processes` of its own; 0 is the first, which has the database."""

    processes: int
    count: int = 1
    number: int = 0
    host: str = ""  # of the first machine, as the others reach it
    port: int = 0

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def options(self, logs: Path) -> list[str]:
        """torchrun's. Several machines have fixed numbers: the round's first process must be on the first."""
        options = ["--nproc-per-node", str(self.processes), "--max-restarts", "0", "--log-dir", str(logs)]
        if self.count == 1:
            here = ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
            return [*options, "--nnodes", "1", "--rdzv-backend", "c10d", *here]
        numbers = ["--nnodes", str(self.count), "--node-rank", str(self.number)]
        return [*options, *numbers, "--master-addr", self.host, "--master-port", str(self.port)]

    def first_answers(self) -> bool:
        """Whether a round waits or runs on the first machine."""
        try:
            with socket.create_connection((self.host, self.port), KNOCK):
                return True
        except OSError:
            return False


def from_settings(settings: Settings) -> Machines:
    """Raises ConfigurationError for numbers that do not go together."""
    processes = settings.nproc_per_node or _gpus() or 1
    if settings.nnodes == 1 and settings.node_rank == 0:
        return Machines(processes)
    if settings.node_rank >= settings.nnodes:
        raise ConfigurationError(
            f"NODE_RANK={settings.node_rank} with NNODES={settings.nnodes}: machines are numbered from 0 to"
            f" {settings.nnodes - 1}, the one with the database is 0"
        )
    if settings.rdzv_endpoint is None:
        raise ConfigurationError(
            f"NNODES={settings.nnodes} needs RDZV_ENDPOINT=HOST:PORT, the same on every machine: where the"
            " others reach machine 0, and a port that is free there"
        )
    host, _, port = settings.rdzv_endpoint.rpartition(":")
    return Machines(processes, settings.nnodes, settings.node_rank, host, int(port))


def for_recipe(settings: Settings, recipe: Recipe) -> Machines:
    """One process for a recipe with objective=reinforcement, which nothing else is written for.

    Raises ConfigurationError for several machines then, and as `from_settings` does.
    """
    found = from_settings(settings)
    if recipe.objective != "reinforcement":
        return found
    if found.count > 1:
        raise ConfigurationError(
            f"NNODES={found.count}: a round with objective=reinforcement ({recipe.name}) runs on one machine"
            " and one device; set NNODES=1, or take another recipe"
        )
    if found.processes > 1:
        log.warning(
            "a round with objective=reinforcement runs on one device: the first of %d", found.processes
        )
    return Machines(1)


def _gpus() -> int:
    """How many GPUs the driver shows, without torch; CUDA_VISIBLE_DEVICES narrows it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([device for device in visible.split(",") if device.strip() not in ("", "-1")])
    return len([path for path in Path("/dev").glob("nvidia[0-9]*") if path.name[6:].isdigit()])
