"""`ratchet convert`: a benchmark as a file of tasks, and what is in it."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.cli.printing.screen import Terminal
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.plan_config import hub_cache
from services.trainer.suites import formats
from services.trainer.tasks import conversion, dataframebench, folder, hub, inputs
from services.trainer.tasks.conversion import Converted, Wanted
from services.trainer.tasks.placed import Split
from services.trainer.tasks.reading import Record

REPO = "bigcode/bigcodebench"
HARD = "-hard"  # the end of the name of the data set that has the hard ones alone
SHOWN = 8  # libraries, and dropped tasks, of a summary; --json has them all


@dataclass(frozen=True)
class BigCodeBench:
    """Where its tasks come from, and where they go."""

    source: str  # a file, or a data set of the hub
    dataset_type: str
    version: str | None
    output: Path | None


def run_bigcodebench(environment: Environment, asked: BigCodeBench, wanted: Wanted, *, as_json: bool) -> None:
    """Write the file and print its statistics. Raises ConfigurationError for whatever is wrong with them."""
    name = f"bigcodebench{HARD}" if asked.dataset_type == "hard" else "bigcodebench"
    output = asked.output or _default(environment, name, wanted.split)
    conversion.check_name(output, wanted.split)
    records, says = _bigcodebench(environment, asked)
    _convert(environment, records, wanted, None, output, says, as_json=as_json)


def run_dataframebench(
    environment: Environment,
    source: Path | None,
    output: Path | None,
    wanted: Wanted,
    library: str,
    *,
    as_json: bool,
) -> None:
    """The same of the package. Raises ConfigurationError also where it is neither named nor installed."""
    split = wanted.split or "train"
    output = output or _default(environment, dataframebench.NAME, split)
    conversion.check_name(output, split)
    source = source or dataframebench.installed()
    if source is None:
        raise ConfigurationError(
            "the package dataframebench is not installed: name its wheel or folder with --input. `pip"
            " download dataframebench==0.1.1 --no-deps --python-version 3.13 --only-binary=:all:` fetches"
            " the wheel, whichever Python runs here"
        )
    records = dataframebench.records(source, split, library)
    says = f"{dataframebench.NAME} {split} ({dataframebench.LICENCE}), {source}"
    _convert(environment, records, wanted, split, output, says, as_json=as_json)


def _bigcodebench(environment: Environment, asked: BigCodeBench) -> tuple[Sequence[Record], str]:
    """Its records, and where they are from."""
    path, is_hard = Path(asked.source).expanduser(), asked.dataset_type == "hard"
    if path.is_file():
        if is_hard:
            raise ConfigurationError(
                f"--dataset-type hard of {path}: a file does not say which of its tasks are hard. Give"
                f" --input {REPO}{HARD}, or a file of that data set as regular"
            )
        return inputs.read(path), str(path)
    if asked.source.count("/") != 1 or path.suffix:
        raise ConfigurationError(
            f"--input {asked.source}: there is no such file; expected one, or OWNER/NAME of the hub as {REPO}"
        )
    repo = asked.source + HARD if is_hard and not asked.source.endswith(HARD) else asked.source
    settings = environment.settings
    fetched = hub.fetch(repo, asked.version, token=settings.hub_token, cache=hub_cache(settings.cache_dir))
    return fetched.records, fetched.says


def _convert(
    environment: Environment,
    records: Sequence[Record],
    wanted: Wanted,
    given: Split | None,
    output: Path,
    says: str,
    *,
    as_json: bool,
) -> None:
    benchmarks = folder.benchmarks(environment.settings.benchmarks_dir)
    converted = conversion.convert(records, wanted, benchmarks, given)
    conversion.write(converted, output, wanted.split)
    found = document(converted, wanted, output, says)
    if as_json:
        print(json.dumps(found))
        return
    console = Terminal(sys.stdout)
    console.print(table(found))
    for line in remarks(found, output, environment.settings.tasks_dir):
        console.print(Text(inert(line)))


def document(converted: Converted, wanted: Wanted, output: Path, says: str) -> Json:
    about = {"output": str(output), "source": says, "split": wanted.split or "both"}
    return about | conversion.statistics(converted)


def table(found: Json) -> Table:
    """The statistics, a row each."""
    made = Table(box=None, show_header=False)
    libraries = [f"{name} {count}" for name, count in found["libraries"].items()]
    rows = {
        "source": found["source"],
        "output": found["output"],
        "split": found["split"],
        "tasks": f"{found['tasks']:,}",
        "libraries": _some(libraries) or "not named",
        "prompt, characters": _spread(found["prompt_characters"]),
        "test, characters": _spread(found["test_characters"]),
        "tests a task": _spread(found["tests_per_task"]),
        "not wanted": f"{found['left_for_elsewhere']:,}",
        "dropped": f"{len(found['dropped']):,}",
    }
    for name, value in rows.items():
        made.add_row(name, Text(inert(value)))
    return made


def remarks(found: Json, output: Path, tasks_dir: Path) -> list[str]:
    """What is to be said beside the table."""
    lines = [f"  {name}: {why}" for name, why in list(found["dropped"].items())[:SHOWN]]
    if len(found["dropped"]) > SHOWN:
        lines.append(f"  and {len(found['dropped']) - SHOWN} more; --json has them all")
    is_set = output.name.endswith(formats.SUFFIXES) and output.absolute().parent == tasks_dir.absolute()
    if is_set:
        lines.append("`ratchet tasks check` runs the references, `ratchet tasks` lists what can be used")
    else:
        lines.append(f"a task set is a file NAME.jsonl or NAME.train.jsonl in {tasks_dir} (TASKS_DIR)")
    return lines


def _default(environment: Environment, name: str, split: Split | None) -> Path:
    return environment.settings.tasks_dir / (f"{name}.{split}.jsonl" if split else f"{name}.jsonl")


def _spread(values: Mapping[str, float]) -> str:
    return f"{values['least']:,} to {values['most']:,}, median {values['median']:,}"


def _some(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more
