"""What `ratchet` runs with: the environment, then `.env`, then defaults for one machine of one's own."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.core.errors import ConfigurationError
from services.core.settings import PROJECT, Settings, from_environment
from services.core.target import Target

LINE = re.compile(r"^\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*?)\s*$")
INLINE_COMMENT = re.compile(r"\s+#.*$")

DEFAULTS = {  # relative paths are below the project folder
    "RATCHET_HOME": ".ratchet",
    "INGEST_DIR": "ingest",
    "BENCHMARKS_DIR": "benchmarks",
    "TASKS_DIR": "tasks",
    "ADAPTERS_DIR": "adapters",
    "RECIPE": "demo",
    "MIN_NEW_FILES": "100",  # the demonstration starts as soon as it can
    "CHECK_INTERVAL": "5",
    "RESCAN_INTERVAL": "15",
}
BELOW_HOME = {"CHECKPOINTS_DIR": "checkpoints", "LOGS_DIR": "logs", "CACHE_DIR": "cache"}
DIRECTORIES = ("RATCHET_HOME", "INGEST_DIR", "ADAPTERS_DIR", "BENCHMARKS_DIR", "TASKS_DIR", *BELOW_HOME)
LOGIN = (
    "DATABASE_URL",
    "POSTGRES_HOST",
    "POSTGRES_PORT",
    "POSTGRES_DB",
    "POSTGRES_USER",
    "POSTGRES_PASSWORD",
    "POSTGRES_PASSWORD_FILE",
)
ENVIRONMENT, FILE, LOCAL, PROGRAM = "environment", ".env", "local", "default"  # layers, the first wins
ALONE = {  # what no other service learns
    "trainer": ("HF_TOKEN", "WANDB_API_KEY", "WEBHOOK_SECRET", "WEBHOOK_URLS"),
    "metrics": ("DASHBOARD_TOKEN",),
}


@dataclass(frozen=True)
class Environment:
    """The variables every part is started with, and the settings they make."""

    variables: Mapping[str, str]
    settings: Settings

    @property
    def home(self) -> Path:
        return self.settings.ratchet_home

    @property
    def names_database(self) -> bool:
        """Whether a PostgreSQL that runs already is named: then no embedded one is started.

        POSTGRES_PASSWORD alone names none: a `.env` made for Compose has it too.
        """
        return any(self.variables.get(name) for name in ("DATABASE_URL", "POSTGRES_HOST"))

    def owner(self) -> Target:
        """The named database, as whom it was named. Raises ConfigurationError without a password."""
        return self.settings.database()

    def at(self, target: Target) -> Settings:
        """The settings, with `target` as the database and its login."""
        login = {
            "database_url": None,
            "postgres_host": target.host,
            "postgres_port": target.port,
            "postgres_db": target.dbname,
            "postgres_user": target.user,
            "postgres_password": target.password,
        }
        return self.settings.model_copy(update=login)

    def as_owner(self, target: Target) -> Settings:
        """The settings of `ratchet migrate` on `target`."""
        return self.at(target).model_copy(update={"role_secrets_dir": self.home / "secrets"})

    def for_service(self, service: str, target: Target) -> dict[str, str]:
        """The variables of one service: its own role on `target`, its password in a file.

        What opens doors outside is the trainer's alone, the dashboard's token that of metrics.
        """
        left = (*LOGIN, *(name for owner, names in ALONE.items() if owner != service for name in names))
        kept = {name: value for name, value in self.variables.items() if name not in left}
        return kept | {
            "POSTGRES_HOST": target.host,
            "POSTGRES_PORT": str(target.port),
            "POSTGRES_DB": target.dbname,
            "POSTGRES_USER": f"ratchet_{service}",
            "POSTGRES_PASSWORD_FILE": str(self.home / "secrets" / service / "password"),
        }


@dataclass(frozen=True)
class Layers:
    """The variables of a local run, each from the first layer that has it."""

    environ: Mapping[str, str]
    written: Mapping[str, str]  # in `.env`
    variables: Mapping[str, str]  # with the defaults, and paths made absolute

    def origin(self, name: str) -> str:
        """Which layer a variable is from; `default` when none sets it, or sets it to nothing."""
        for layer, said in ((ENVIRONMENT, self.environ), (FILE, self.written), (LOCAL, DEFAULTS)):
            if name in said:
                return layer if said[name].strip() else PROGRAM
        return LOCAL if name in BELOW_HOME else PROGRAM


def read(
    environ: Mapping[str, str] | None = None, project: Path = PROJECT, here: Path | None = None
) -> Environment:
    """The environment of a local run: `environ` over `.env` over the defaults.

    A relative path counts from `here` when the environment names it, from the project folder
    when `.env` or a default does. Raises ConfigurationError for a setting that cannot be.
    """
    variables = layers(environ, project, here).variables
    return Environment(variables, from_environment(variables))


def layers(
    environ: Mapping[str, str] | None = None, project: Path = PROJECT, here: Path | None = None
) -> Layers:
    """The same before it is checked. Raises ConfigurationError for a `.env` that cannot be read."""
    environ = os.environ if environ is None else environ
    written = _read_file(project / ".env")
    variables = {**DEFAULTS, **written, **environ}

    def named_from(name: str) -> Path:
        return (here or Path.cwd()) if environ.get(name) else project

    home = Path()
    for name in DIRECTORIES:
        value = variables.get(name, "").strip()
        if not value:
            path = project / DEFAULTS[name] if name in DEFAULTS else home / BELOW_HOME[name]
        else:
            path = named_from(name) / value
        if name == "RATCHET_HOME":
            path = home = path.resolve()  # one name a home, however it was reached
        variables[name] = os.path.abspath(path)  # a link to elsewhere stays a link
    if socket := variables.get("SANDBOX_SOCKET", "").strip():
        variables["SANDBOX_SOCKET"] = os.path.abspath(named_from("SANDBOX_SOCKET") / socket)
    if (recipe := variables["RECIPE"].strip()).endswith((".yaml", ".yml")):  # a path; otherwise a name
        variables["RECIPE"] = os.path.abspath(named_from("RECIPE") / recipe)
    return Layers(environ, written, variables)


def _read_file(path: Path) -> dict[str, str]:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc
    except ConfigurationError as exc:
        raise ConfigurationError(f"{path}, {exc}") from exc


def parse(text: str) -> dict[str, str]:
    """The variables of an env file as Compose reads it, without its ${…} substitution.

    NAME=value lines, comments, `export`, quotes around a value; ` #` begins a comment behind an
    unquoted one. Raises ConfigurationError with the number of a line that is none of these; never
    its text, which may hold a secret.
    """
    variables = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.match(line)
        if match is None:
            raise ConfigurationError(f"line {number}: expected NAME=value or a comment")
        variables[match["name"]] = _unquote(match["value"])
    return variables


def _unquote(value: str) -> str:
    for quote in "'\"":
        if value.startswith(quote) and (end := value.find(quote, 1)) > 0:
            return value[1:end]
    return INLINE_COMMENT.sub("", f" {value}").strip()
