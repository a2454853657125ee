"""Settings and recipe: are they all known, possible, and kept from others?"""

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from services.cli.doctor.finding import Finding, error, ok, warning
from services.cli.environment import Environment, Layers
from services.core.errors import ConfigurationError
from services.core.settings import NAMES, PROJECT, examine
from services.trainer.recipes import files as recipe_files
from services.trainer.webhooks import endpoints

LISTED = re.compile(r"^#?(?P<name>[A-Z][A-Z0-9_]*)=", re.MULTILINE)
CURE = "correct it where it is set; `ratchet config show` says where, .env.example what it means"


def settings(layers: Layers, project: Path = PROJECT) -> Iterator[Finding]:
    """What is misspelt, impossible, unknown to everybody, or can be read by others."""
    problems = examine(layers.variables)[1]
    for problem in problems:
        yield error("settings", problem.partition(" (.env.example")[0], CURE)
    yield from unknown(layers.written, project)
    yield from readable(project / ".env")
    if not problems:
        said = [
            f"{len(names)} from {layer}"
            for layer in ("environment", ".env")
            if (names := [name for name in NAMES if layers.origin(name) == layer])
        ]
        yield ok("settings", f"all are possible: {', '.join(said) or 'none is set, the defaults hold'}")


def unknown(written: Mapping[str, str], project: Path) -> Iterator[Finding]:
    """Names in `.env` that neither Ratchet nor its Compose files read. No list of them: nothing is said."""
    try:
        text = (project / ".env.example").read_text(encoding="utf-8")
    except OSError:
        return
    known = {match["name"] for match in LISTED.finditer(text)} | NAMES.keys()
    for name in sorted(written.keys() - known):
        yield warning("settings", f"{name} in .env is no setting: nothing reads it", "take the line out")


def readable(path: Path) -> Iterator[Finding]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return
    if mode & 0o077:
        yield warning("settings", f"{path} holds passwords and others may read it", f"chmod 600 {path}")


def recipe(environment: Environment) -> Iterable[Finding]:
    """That the recipe exists and holds together, with what the environment overrides."""
    chosen = environment.settings
    try:
        found = recipe_files.load(chosen.recipe, chosen.recipe_overrides)
    except ConfigurationError as exc:
        return [error("recipe", str(exc), "`ratchet recipe list` has those there are")]
    overrides = ", ".join(name.upper() for name in chosen.recipe_overrides)
    said = f"{found.name}: {found.base_model}, {found.method}"
    return [ok("recipe", said + (f"; the environment overrides {overrides}" if overrides else ""))]


def webhooks(environment: Environment) -> Iterable[Finding]:
    """That messages could be sent where WEBHOOK_URLS says; nobody is asked."""
    try:
        named = endpoints.from_settings(environment.settings)
    except ConfigurationError as exc:
        return [error("webhooks", str(exc), "docs/how-to/webhooks.md says what is needed")]
    names = ", ".join(endpoint.name for endpoint in named)
    return [ok("webhooks", f"{names}: `ratchet webhook test` sends each an event")] if named else []
