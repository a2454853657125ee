"""`ratchet experiment run|show|list`: ways of training compared on problems that none has trained on."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from typer import Exit

from services.cli.asking import modelprocess
from services.cli.environment import Environment
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.process import die_with_parent
from services.trainer.experiments import files, store
from services.trainer.experiments.publish import HTML, JSON
from services.trainer.experiments.trials import stages, trials

CHILD = "services.trainer.experiments"


def run(environment: Environment, name: str, *, fresh: bool, as_json: bool) -> None:
    """Run an experiment, or go on with it, and print what it found.

    Raises ConfigurationError for one that cannot be; Exit with the status of the process that trains when
    that fails, which has said why.
    """
    path = files.find(name).resolve()
    files.load(
        path, environment.settings.recipe_overrides
    )  # a mistake is said at once, before torch is there
    root = _root(environment, files.read(path).name)
    if done := _trained(environment, path, fresh=fresh):
        raise Exit(done)
    _print(root, as_json=as_json)


def show(environment: Environment, name: str, *, as_json: bool) -> None:
    """Print what an experiment found. Raises ConfigurationError when it has no report yet."""
    path = files.find(name)
    root = _root(environment, files.read(path).name)
    if not (root / JSON).is_file():
        state = _state(environment, path)
        raise ConfigurationError(
            f"experiment {name} has no report yet, {state['done']} of {state['trials']} trials are done:"
            f" `ratchet experiment run {name}` goes on with it"
        )
    _print(root, as_json=as_json)


def list_all(environment: Environment, *, as_json: bool) -> None:
    """Print the experiments that come with Ratchet, and how far each is here."""
    found = [_state(environment, path) for path in files.available()]
    if as_json:
        print(json.dumps({"experiments": found}))
        return
    table = Table("name", "trials", "report", "what for", box=None)
    for one in found:
        table.add_row(
            one["name"], f"{one['done']}/{one['trials']}", "yes" if one["report"] else "", one["description"]
        )
    Console().print(table)


def _trained(environment: Environment, path: Path, *, fresh: bool) -> int:
    """The exit status of the process that trains. Its progress goes straight to standard error."""
    parent = os.getpid()
    child = subprocess.Popen(
        [sys.executable, "-m", CHILD, str(path), *(["--fresh"] if fresh else [])],
        env={"TOKENIZERS_PARALLELISM": "false", **modelprocess.variables(environment)},
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509  the command has one thread
    )
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            pass  # Ctrl-C reaches the process as well: it saves, says so and leaves


def _print(root: Path, *, as_json: bool) -> None:
    report = store.read(root / JSON)
    if as_json:
        print(json.dumps({**report, "folder": str(root)}))
        return
    console = Console()
    for line in report["conclusions"]:
        console.print(line, highlight=False, markup=False, style="bold")
    console.print(_scores(report["variants"]))
    console.print(_differences(report["differences"]))
    for line in report["cautions"]:
        console.print(f"- {line}", highlight=False, markup=False)
    console.print(f"The whole report: {root / HTML}", highlight=False, markup=False, soft_wrap=True)


def _scores(variants: Sequence[Json]) -> Table:
    ks = list(variants[0]["pass_at"])
    table = Table(
        "variant", *(f"pass@{k}" for k in ks), "pass@1 by seed", "greedy", "bits per byte", box=None
    )
    for one in variants:
        greedy = "" if one["greedy"] is None else f"{one['greedy']:.1%}"
        by_seed = " ".join(f"{value:.1%}" for value in one["by_seed"].values())
        passed = [f"{one['pass_at'][k]:.1%}" for k in ks]
        table.add_row(one["label"], *passed, by_seed, greedy, f"{one['bits_per_byte']:.4f}")
    return table


def _differences(differences: Sequence[Json]) -> Table:
    table = Table("of − against", "k", "points", "interval", "p", "adjusted", "shown", box=None)
    for one in differences:
        interval = f"{100 * one['low']:+.1f} to {100 * one['high']:+.1f}"
        table.add_row(
            f"{one['of']} − {one['against']}",
            str(one["k"]),
            f"{100 * one['difference']:+.1f}",
            interval,
            f"{one['p']:.3g}",
            f"{one['p_adjusted']:.3g}",
            "yes" if one["shown"] else "no",
        )
    return table


def _state(environment: Environment, path: Path) -> Json:
    """How far an experiment is here; of one whose problems cannot be read, without its trials."""
    experiment = files.read(path)
    root = _root(environment, experiment.name)
    names = [task.name for task in files.problems(path, experiment)]
    every = [trial for stage in stages(experiment, names) for trial in trials(experiment, stage)]
    return {
        "name": experiment.name,
        "description": experiment.description,
        "trials": len(every),
        "done": store.done(root, every),
        "report": str(root / JSON) if (root / JSON).is_file() else None,
    }


def _root(environment: Environment, name: str) -> Path:
    return environment.home / "experiments" / name
