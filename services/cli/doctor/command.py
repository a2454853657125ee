"""`ratchet doctor`: every check there is, what each found, and whether Ratchet can start."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rich.text import Text

from services.cli import environment as environments
from services.cli.doctor import accelerator, configuration, database, machine, model, surroundings
from services.cli.doctor.examination import count, examine
from services.cli.doctor.finding import Check, Finding, Status, error
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.cli.printing.screen import Terminal
from services.core import settings
from services.core.errors import ConfigurationError

STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.ERROR: "bold red", Status.SKIPPED: "dim"}
CHECKS: Mapping[str, Check] = {  # in the order in which they are told
    "recipe": configuration.recipe,
    "webhooks": configuration.webhooks,
    "machine": machine.processors,
    "memory": machine.memory,
    "disk": machine.disks,
    "gpu": accelerator.graphics,
    "torch": accelerator.torch,
    "model": model.base_model,
    "sandbox": surroundings.cage,
    "database": database.postgres,
    "ports": surroundings.ports,
    "docker": surroundings.containers,
}


def run(*, webhooks: bool, as_json: bool) -> bool:
    """Print what was found; whether nothing of it is an error."""
    begun = time.monotonic()
    found = findings(webhooks=webhooks)
    seconds = round(time.monotonic() - begun, 2)
    errors, warnings = count(found, Status.ERROR), count(found, Status.WARNING)
    if as_json:
        told = {"ok": not errors, "errors": errors, "warnings": warnings, "seconds": seconds}
        print(json.dumps(told | {"findings": [finding.as_json() for finding in found]}))
    else:
        console = Terminal(sys.stdout)
        for line in lines(found):
            console.print(line)
        console.print(summary(errors, warnings, seconds))
    return not errors


def findings(*, webhooks: bool = False) -> list[Finding]:
    """All of them: of the settings first, since the other checks go by those that are possible."""
    try:
        layers = environments.layers()
    except ConfigurationError as exc:
        return [error("settings", str(exc), "correct that line: .env.example shows how one reads")]
    here = Environment(layers.variables, settings.examine(layers.variables)[0])
    asked: dict[str, Check] = {"addresses": surroundings.addresses} if webhooks else {}
    checks: dict[str, Check] = {"settings": partial(_settings, layers), **CHECKS, **asked}
    return examine(checks, here)


def _settings(layers: environments.Layers, _environment: Environment) -> Iterator[Finding]:
    return configuration.settings(layers)


def lines(found: Sequence[Finding]) -> Iterator[Text]:
    """A line a finding, and below it the cure."""
    wide = max(len(finding.check) for finding in found)
    for finding in found:
        mark = (f"{finding.status:<8}", STYLES[finding.status])
        yield Text.assemble(mark, f"{finding.check:<{wide}}  {inert(finding.says)}")
        if finding.cure is not None:
            yield Text(f"{'':<8}{'':<{wide}}  → {inert(finding.cure)}")


def summary(errors: int, warnings: int, seconds: float) -> str:
    parts = [_many(errors, "error"), _many(warnings, "warning")]
    if errors:
        return f"{' and '.join(parts)} in {seconds:.1f} s: cure what is marked error, and ask again"
    if warnings:
        return f"{parts[1]} in {seconds:.1f} s, no error: Ratchet can run here"
    return f"all is well ({seconds:.1f} s): Ratchet can run here"


def _many(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
