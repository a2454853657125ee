"""Sets of tasks on their way into the database: read, screened, vetted, written."""

import hashlib
import json
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from services.core.db import Database
from services.core.errors import ConfigurationError
from services.core.settings import Settings
from services.trainer.suites import formats
from services.trainer.suites.formats import Task
from services.trainer.tasks import origins, reading, screening, store, vetting
from services.trainer.tasks.origins import Origin, state_of
from services.trainer.tasks.placed import PlacedTask
from services.trainer.tasks.store import Written
from services.trainer.tasks.vetting import OnDone, OpenSandbox, Vetted

log = logging.getLogger(__name__)
RULES = 1  # raised when the same file would be read, screened or split otherwise
CACHE = "tasks"  # folder below CACHE_DIR


def tasks_of(origin: Origin, settings: Settings) -> list[PlacedTask]:
    """The tasks of a set, with why some are left out, as far as it is known without running anything new."""
    screened = screening.screen(origin.read(), benchmarks(settings.benchmarks_dir))
    return vetting.judged(screened, vetted(origin.name, settings.cache_dir))


def vet(
    origin: Origin,
    settings: Settings,
    sandbox: OpenSandbox,
    on_done: OnDone | None = None,
    *,
    again: bool = False,
) -> list[PlacedTask]:
    """The same, with every reference run that was not yet; see `vetting.vet`."""
    screened = screening.screen(origin.read(), benchmarks(settings.benchmarks_dir))
    return vetting.vet(screened, vetted(origin.name, settings.cache_dir), sandbox, on_done, again=again)


def sync(
    database: Database,
    settings: Settings,
    sandbox: OpenSandbox,
    only: Collection[str] | None = None,
    on_done: OnDone | None = None,
) -> dict[str, Written]:
    """Make the database hold the sets as they are; what became of those that had changed, by name.

    only: these sets, which must be there; None: all, and those that vanished are retired. A set that has
    not changed costs a look at its files. Raises ConfigurationError for a set that cannot be read, after
    the others were; SandboxError where references cannot be run. `on_done` hears of each, and may raise.
    """
    there = origins.check(settings.tasks_dir, only or ())
    wanted = there.values() if only is None else [there[name] for name in dict.fromkeys(only)]
    written: dict[str, Written] = {}
    broken: list[ConfigurationError] = []
    for origin in wanted:
        try:
            became = _sync(database, settings, origin, sandbox, on_done)
        except ConfigurationError as exc:
            broken.append(exc)
            continue
        if became is not None:
            written[origin.name] = became
            log.info("task set %s: %s", origin.name, became)
    if only is None:
        written |= _retire_vanished(database, there)
    if broken:
        raise broken[0]
    return written


def benchmarks(folder: Path) -> list[Task]:
    """HumanEval and the files of the folder of benchmarks: what nothing is trained on."""
    paths = sorted(folder.rglob("*")) if folder.is_dir() else []
    files = [(path, None) for path in paths if path.name.endswith(formats.SUFFIXES)]
    return [*formats.human_eval(), *(each.task for each in reading.read(files))]


def vetted(name: str, cache_dir: Path) -> Vetted:
    """What came of the references of a set."""
    return Vetted(_results(name, cache_dir))


def _sync(
    database: Database, settings: Settings, origin: Origin, sandbox: OpenSandbox, on_done: OnDone | None
) -> Written | None:
    with database.transaction() as tx:
        before = store.signature(tx, origin.name)
    if before == _signature(origin, settings):
        return None
    tasks = vet(origin, settings, sandbox, on_done)
    signature = _signature(origin, settings)  # with the results that came of it

    with database.transaction() as tx:
        return store.write(tx, origin.name, tasks, signature=signature, source=origin.says)


def _retire_vanished(database: Database, there: Mapping[str, Origin]) -> dict[str, Written]:
    written = {}
    with database.transaction() as tx:
        for each in store.sets(tx):
            if each.name not in there and each.signature is not None:
                written[each.name] = store.write(tx, each.name, [], signature=None, source=None)
    return written


def _signature(origin: Origin, settings: Settings) -> str:
    """Of all that decides what a set holds and what of it is left out; the texts themselves are not read."""
    benchmarks_dir = settings.benchmarks_dir
    others = sorted(benchmarks_dir.rglob("*")) if benchmarks_dir.is_dir() else []
    about = [RULES, origin.state, state_of([*others, _results(origin.name, settings.cache_dir)])]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _results(name: str, cache_dir: Path) -> Path:
    return cache_dir / CACHE / f"{name}.json"
