"""Settings: read from the environment, here and nowhere else.

Every name is listed in `.env.example`. A name that is almost one of them, or a value that cannot
be, is a ConfigurationError that names the nearest valid one.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from services.core.errors import ConfigurationError
from services.core.setting_values import (
    Addresses,
    EventGroups,
    Listed,
    SigningSecret,
    Token,
    secret_parts,
    split_list,
)
from services.core.target import Target, from_url

PROJECT = Path(__file__).resolve().parents[2]  # where sql/ and recipes/ are
SIMILAR = 0.86  # difflib ratio above which an unknown name is taken for a slip of the pen
REDACTED = "***"


class Settings(BaseModel):
    """All settings of all services; each field's environment name is its own in capitals."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    # PostgreSQL: a URL, or its parts; the password may lie in a file
    database_url: SecretStr | None = None
    postgres_host: str = "127.0.0.1"
    postgres_port: int = Field(default=5432, ge=1, le=65535)
    postgres_db: str = "ratchet"
    postgres_user: str = "ratchet"
    postgres_password: SecretStr | None = None
    postgres_password_file: Path | None = None
    db_pool_min_conn: int = Field(default=1, ge=0, le=100)
    db_pool_max_conn: int = Field(default=5, ge=1, le=100)
    role_secrets_dir: Path | None = None  # migrate writes each role's password below it

    # Directories
    ratchet_home: Path = Path(".ratchet")
    ingest_dir: Path = Path("ingest")
    adapters_dir: Path = Path("adapters")
    checkpoints_dir: Path = Path("checkpoints")
    logs_dir: Path = Path("logs")
    cache_dir: Path = Path("cache")

    # When to train, and on what
    recipe: str = "qwen14b-qlora"
    min_new_files: int = Field(default=1000, ge=1)
    max_dataset_size: int = Field(default=100_000, ge=1)
    quality_threshold: int = Field(default=70, ge=0, le=100)
    check_interval: float = Field(default=300.0, gt=0)  # seconds between two polls
    rescan_interval: float = Field(default=60.0, gt=0)  # seconds between two full walks

    # What comes in
    processor_workers: int = Field(default=0, ge=0, le=64)  # 0: one a core
    decontaminate: bool = True  # refuse what holds tasks of benchmarks
    benchmarks_dir: Path = Path("benchmarks")  # beside HumanEval, what no text may hold
    tasks_dir: Path = Path("tasks")  # sets of programs to be written, with their tests
    licence_allow: Listed = ()  # SPDX identifiers, * for any characters; empty: all
    licence_deny: Listed = ()

    # When a round counts as stuck
    stall_timeout: float = Field(default=60.0, gt=0)  # seconds without progress in a running phase
    load_timeout: float = Field(default=1800.0, gt=0)  # seconds a model may take to load
    max_attempts: int = Field(default=5, ge=1)  # crashes after which a round is set aside
    nproc_per_node: int = Field(default=0, ge=0)  # training processes; 0: one a GPU, or one
    nnodes: int = Field(default=1, ge=1)  # machines that share a round
    node_rank: int = Field(default=0, ge=0)  # of this machine; 0 has the database
    rdzv_endpoint: str | None = Field(default=None, pattern=r"^[^\s:]+:[1-9][0-9]{0,4}$")

    # What becomes of adapters that learned from what `ratchet forget` takes back
    forget_policy: str = Field(default="refuse", pattern="^(refuse|warn)$")

    # Overrides of the recipe, by name
    batch_size: int | None = None
    gradient_accumulation_steps: int | None = None
    max_length: int | None = None
    learning_rate: float | None = None
    lora_r: int | None = None
    use_flash_attention: bool | None = None
    dataloader_num_workers: int | None = None

    # Where generated programs run
    sandbox_socket: Path | None = None  # of the sandbox service; None: one is started where it is needed
    allow_unsandboxed: bool = False  # run them without any isolation where bubblewrap does not work

    # Others' services
    hf_token: SecretStr | None = None
    wandb_api_key: SecretStr | None = None
    wandb_project: str = "ratchet"
    wandb_entity: str | None = None
    wandb_mode: str | None = Field(default=None, pattern="^(online|offline|disabled)$")

    # Webhooks: where events are sent
    webhook_urls: Addresses | None = None  # between commas
    webhook_secret: SigningSecret | None = None  # that messages are signed with
    webhook_events: EventGroups = ("promotion", "refusal", "rollback", "failure", "forgetting", "stall")
    webhook_format: str = Field(default="standard", pattern="^(standard|slack)$")

    # Serving
    serve_host: str = "127.0.0.1"
    serve_port: int = Field(default=8000, ge=1, le=65535)
    serve_backend: str = Field(default="http://127.0.0.1:8001", pattern=r"^https?://[^\s/]+$")  # a vLLM
    serve_max_lora_rank: int = Field(default=256, ge=1, le=512)  # that server's --max-lora-rank
    serve_without_parity: bool = True  # an adapter may go live before `ratchet parity` has measured it

    # The metrics service
    metrics_host: str = "127.0.0.1"
    metrics_port: int = Field(default=8090, ge=1, le=65535)
    metrics_trusted_hosts: Listed = ()  # names in addresses, beside its own
    metrics_show_code: bool = True
    dashboard_token: Token | None = None  # for every write; None: nothing can be written through it
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    log_format: str = Field(default="text", pattern="^(text|json)$")

    @property
    def hub_token(self) -> str | None:
        """The model hub's, in the clear."""
        return None if self.hf_token is None else self.hf_token.get_secret_value()

    @property
    def recipe_overrides(self) -> dict[str, int | float | bool]:
        """The recipe fields that the environment sets, by field name."""
        names = RECIPE_OVERRIDES
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def database(self) -> Target:
        """Where to log in; raises ConfigurationError when there is no password to do it with."""
        if self.database_url is not None:
            return from_url(self.database_url.get_secret_value())
        password = self.postgres_password
        if password is None and self.postgres_password_file is not None:
            try:
                password = SecretStr(self.postgres_password_file.read_text(encoding="utf-8").strip())
            except OSError as exc:
                raise ConfigurationError(
                    f"POSTGRES_PASSWORD_FILE={self.postgres_password_file} cannot be read"
                    f" ({exc.strerror}): `ratchet migrate` writes it, run that first"
                ) from exc
        if not (password and password.get_secret_value()):
            raise ConfigurationError(
                "no database password: set POSTGRES_PASSWORD, POSTGRES_PASSWORD_FILE or DATABASE_URL"
                " (`make env` writes a fresh one to .env)"
            )
        return Target(
            host=self.postgres_host,
            port=self.postgres_port,
            dbname=self.postgres_db,
            user=self.postgres_user,
            password=password,
        )

    def secrets(self) -> list[str]:
        """Every secret value, for the log to leave out."""
        held = [getattr(self, name) for name in type(self).model_fields]
        values = [secret.get_secret_value() for secret in held if isinstance(secret, SecretStr)]
        if self.webhook_urls is not None:
            values += secret_parts(split_list(self.webhook_urls.get_secret_value()))
        try:
            values.append(self.database().password.get_secret_value())
        except ConfigurationError:
            pass
        return [value for value in values if value]


RECIPE_OVERRIDES = (
    "batch_size",
    "gradient_accumulation_steps",
    "max_length",
    "learning_rate",
    "lora_r",
    "use_flash_attention",
    "dataloader_num_workers",
)
NAMES = {name.upper(): name for name in Settings.model_fields}


def from_environment(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings as the environment has them; an empty value counts as not set.

    Raises ConfigurationError for a value that cannot be and for a name that is almost a setting.
    """
    settings, problems = examine(os.environ if environ is None else environ)
    if problems:
        raise ConfigurationError("; ".join(problems))
    return settings


def examine(environ: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """The settings without those that cannot be, and a sentence for each thing that is wrong."""
    problems = [
        f"{name} is not a setting: did you mean {nearest[0]}? (.env.example lists them all)"
        for name in environ
        if name not in NAMES and not _is_other_programs(name)
        if (nearest := difflib.get_close_matches(name, NAMES, 1, SIMILAR))
    ]
    values = {field: environ[name] for name, field in NAMES.items() if environ.get(name, "").strip()}
    try:
        return Settings.model_validate(values), problems
    except ValidationError as exc:
        wrong = exc.errors()
        problems += [_explain(error, values) for error in wrong]
        sound = {field: value for field, value in values.items() if field not in {e["loc"][0] for e in wrong}}
        return Settings.model_validate(sound), problems


def _is_other_programs(name: str) -> bool:
    """Names that other programs define and that happen to be near one of ours."""
    foreign = name.startswith(("WANDB_", "HF_", "PG", "GIT_", "RATCHET_"))
    return foreign and not difflib.get_close_matches(name, NAMES, 1, 0.93)


def _explain(error: ErrorDetails, values: Mapping[str, str]) -> str:
    field = str(error["loc"][0])
    secret = "SecretStr" in str(Settings.model_fields[field].annotation)
    value = REDACTED if secret else values.get(field)
    return f"{field.upper()}={value!r}: {error['msg']} (.env.example says what it means)"
