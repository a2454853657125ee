"""`ratchet config show|check`: every setting, its value and who says so; what is wrong with them."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import SecretStr

from services.cli import environment as environments
from services.cli.doctor import configuration
from services.cli.doctor.finding import Finding, Status
from services.cli.environment import Environment, Layers
from services.cli.printing.inert import inert
from services.core.models import Json
from services.core.settings import NAMES, REDACTED, Settings, examine

PASSWORD = re.compile(r"(?<=://)([^\s:/@]*):([^\s@]+)@")  # of a URL
ORIGINS = {
    environments.ENVIRONMENT: "the environment",
    environments.FILE: ".env",
    environments.LOCAL: "default of a local run",
    environments.PROGRAM: "default",
}


def show(*, changed: bool, as_json: bool) -> None:
    """Print every setting, also of an environment in which some are wrong."""
    layers = environments.layers()
    settings, problems = examine(layers.variables)
    rows = [
        row for row in described(settings, layers) if not changed or row["origin"] != environments.PROGRAM
    ]
    if as_json:
        print(json.dumps({"settings": rows, "problems": problems}))
    else:
        print("\n".join(lines(rows, problems)))


def check(*, as_json: bool) -> bool:
    """Print what is wrong, all at once; whether nothing is. Raises ConfigurationError for a broken `.env`."""
    layers = environments.layers()
    here = Environment(layers.variables, examine(layers.variables)[0])
    found = [
        *configuration.settings(layers),
        *configuration.recipe(here),
        *configuration.webhooks(here),
    ]
    wrong = [finding for finding in found if finding.status is Status.ERROR]
    if as_json:
        print(json.dumps({"ok": not wrong, "findings": [finding.as_json() for finding in found]}))
    else:
        print(
            "\n".join(_finding(finding) for finding in found if finding.status is not Status.OK)
            or "all is well"
        )
    return not wrong


def described(settings: Settings, layers: Layers) -> list[Json]:
    """Name, value, origin of every setting; never a secret, nor a password inside a URL."""
    return [
        {
            "name": name,
            "value": shown(getattr(settings, field)),
            "origin": layers.origin(name),
            "secret": is_secret(field),
        }
        for name, field in NAMES.items()
    ]


def is_secret(field: str) -> bool:
    return "SecretStr" in str(Settings.model_fields[field].annotation)


def shown(value: Any) -> Any:
    """As one would write it in `.env`; `***` for a secret that is set."""
    match value:
        case SecretStr():
            return REDACTED
        case bool() | int() | float() | None:
            return value
        case tuple():
            return ",".join(map(str, value))
        case _:
            return PASSWORD.sub(rf"\1:{REDACTED}@", str(value))


def lines(rows: Sequence[Json], problems: Sequence[str]) -> Iterator[str]:
    wide = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        yield f"{row['name']:<{wide}}  {_written(row['value']):<32}  {ORIGINS[row['origin']]}".rstrip()
    if not rows:
        yield "nothing is set: the program's own defaults hold"
    for problem in problems:
        yield f"wrong: {inert(problem)}"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "–" if value in (None, "") else inert(f"{value:g}" if isinstance(value, float) else str(value))


def _finding(finding: Finding) -> str:
    cure = f"\n    → {inert(finding.cure)}" if finding.cure else ""
    return f"{finding.status}: {inert(finding.says)}{cure}"
