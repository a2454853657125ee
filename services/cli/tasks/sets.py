"""`ratchet tasks`: the sets that reinforcement can learn from, and what of them is left out and why."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.sandbox import Sandbox
from services.trainer.tasks import folder, origins, vetting
from services.trainer.tasks.origins import Origin
from services.trainer.tasks.placed import SPLITS, PlacedTask

BETWEEN = 10.0  # seconds between two lines of progress where nobody watches a terminal
REASON = 100  # characters of it in a list; --json has all of them


@dataclass(frozen=True)
class Listed:
    """A set as it can be used, or why it cannot be read."""

    origin: Origin
    tasks: Sequence[PlacedTask] = ()
    untried: int = 0  # references that were not run yet
    problem: str | None = None

    @property
    def is_usable(self) -> bool:
        return any(each.excluded is None for each in self.tasks)

    def as_json(self) -> Json:
        usable = Counter(each.split for each in self.tasks if each.excluded is None)
        reasons = Counter(_short(each.excluded) for each in self.tasks if each.excluded is not None)
        return {
            "set": self.origin.name,
            "source": self.origin.says,
            "tasks": len(self.tasks),
            **{split: usable[split] for split in SPLITS},
            "excluded": dict(reasons.most_common()),
            "untried": self.untried,
            "problem": self.problem,
        }


def run_list(environment: Environment, *, as_json: bool) -> None:
    """Print every set. Raises ConfigurationError for files that contradict one another."""
    there = origins.origins(environment.settings.tasks_dir)
    _print([_listed(each, environment) for each in there.values()], as_json=as_json)


def run_set(environment: Environment, name: str, *, excluded: bool, as_json: bool) -> None:
    """Print the tasks of a set. Raises ConfigurationError where there is no such set, or it is broken."""
    origin = origins.check(environment.settings.tasks_dir, [name])[name]
    tasks = folder.tasks_of(origin, environment.settings)
    shown = [each for each in tasks if each.excluded is not None or not excluded]
    if as_json:
        print(json.dumps({"set": name, "tasks": [_document(each) for each in shown]}))
    else:
        print("\n".join(_tasks(shown)))


def run_check(environment: Environment, name: str | None, *, as_json: bool) -> bool:
    """Run the references of one set or of all; whether each can be used.

    Raises SandboxError where programs cannot be run, ConfigurationError as the others do.
    """
    settings = environment.settings
    there = origins.check(settings.tasks_dir, [name] if name else [])
    found = []
    for origin in [there[name]] if name else there.values():
        progress = Progress(origin.name)
        try:
            tasks = folder.vet(origin, settings, lambda: _sandbox(environment), progress.step, again=True)
            found.append(Listed(origin, tasks))
        except ConfigurationError as exc:
            found.append(Listed(origin, problem=str(exc)))
        finally:
            progress.end()
    _print(found, as_json=as_json)
    return all(each.is_usable for each in found)


class Progress:
    """How many references of a set were run: over itself on a terminal, else a line now and then."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def step(self, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self._shown >= (0.1 if self._terminal else BETWEEN):
            self._shown = now
            start, end = ("\r", "") if self._terminal else ("", "\n")
            says = f"{start}{self._name}: {done:,} of {of:,} references"
            print(says, end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _sandbox(environment: Environment) -> AbstractContextManager[Sandbox]:
    settings = environment.settings
    return Sandbox.open(settings.sandbox_socket, allow_unsandboxed=settings.allow_unsandboxed)


def _listed(origin: Origin, environment: Environment) -> Listed:
    settings = environment.settings
    try:
        tasks = folder.tasks_of(origin, settings)
    except ConfigurationError as exc:
        return Listed(origin, problem=str(exc))
    return Listed(origin, tasks, vetting.unknown(tasks, folder.vetted(origin.name, settings.cache_dir)))


def _print(found: Sequence[Listed], *, as_json: bool) -> None:
    documents = [each.as_json() for each in found]
    print(json.dumps({"sets": documents}) if as_json else "\n".join(_sets(documents)))


def _sets(documents: Sequence[Json]) -> Iterator[str]:
    width = max(6, *(len(inert(each["set"])) for each in documents))
    yield f"{'set':<{width}}{'train':>7}{'valid.':>8}{'test':>7}{'left out':>10}{'untried':>9}  source"
    for each in documents:
        left_out = sum(each["excluded"].values())
        yield (
            f"{inert(each['set']):<{width}}{each['train']:>7,}{each['validation']:>8,}{each['test']:>7,}"
            f"{left_out:>10,}{each['untried']:>9,}  {inert(each['source'])}"
        )
        for reason, count in each["excluded"].items():
            yield f"{'':<{width}}  {count:,} × {inert(reason)[:REASON]}"
        if each["problem"]:
            yield f"{'':<{width}}  {inert(each['problem'])}"
    if any(each["untried"] for each in documents):
        yield "`ratchet tasks check` runs the references that were not tried yet"


def _tasks(tasks: Sequence[PlacedTask]) -> Iterator[str]:
    if not tasks:
        yield "no task"
        return
    width = max(len(inert(each.task.name)) for each in tasks)
    for each in sorted(tasks, key=lambda each: SPLITS.index(each.split)):
        says = f"left out: {each.excluded}"[:REASON] if each.excluded else each.group
        yield f"{each.split:<10}  {inert(each.task.name):<{width}}  {inert(says)}"


def _document(each: PlacedTask) -> Json:
    task = each.task
    return {
        "name": task.name,
        "split": each.split,
        "group": each.group,
        "style": task.style,
        "entry_point": task.entry_point,
        "source": each.source,
        "sha256": task.key,
        "excluded": each.excluded,
        "prompt": task.prompt,
    }


def _short(reason: str) -> str:
    """Without what is of one task alone."""
    return reason.partition(" (")[0] if "reference" not in reason else reason
