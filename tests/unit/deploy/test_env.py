"""`.env.example` lists every setting, and `make env` makes a usable .env of it."""

import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from services.core.errors import ConfigurationError
from services.core.settings import NAMES, Settings, from_environment

PROJECT = Path(__file__).resolve().parents[3]
EXAMPLE = (PROJECT / ".env.example").read_text(encoding="utf-8")
LINE = re.compile(r"^#?(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)$", re.MULTILINE)
LISTED = {found["name"]: found["value"] for found in LINE.finditer(EXAMPLE)}
DIRECTORIES = {name for name in NAMES if name.endswith("_DIR")}


def compose_variables() -> set[str]:
    """The names that the Compose files themselves read."""
    text = "".join(
        (PROJECT / name).read_text(encoding="utf-8") for name in ("docker-compose.yml", "deploy/gpu.yml")
    )
    return set(re.findall(r"\$\{([A-Z_]+)", text)) | {"COMPOSE_FILE", "COMPOSE_PROFILES"}


def test_every_setting_is_listed() -> None:
    """What services.core.settings reads, the file explains."""
    assert set(NAMES) - set(LISTED) == set()


def test_every_listed_name_is_read_by_something() -> None:
    """By the settings or by the Compose files."""
    assert set(LISTED) - set(NAMES) - compose_variables() == set()


def test_every_name_the_compose_files_read_is_listed() -> None:
    """But the project's name, which Compose sets."""
    assert compose_variables() - set(LISTED) == {"COMPOSE_PROJECT_NAME"}


@pytest.mark.parametrize("name", sorted(set(NAMES) - DIRECTORIES))
def test_the_default_listed_is_the_default(name: str) -> None:
    """The value beside a setting is the one it has without the line."""
    default = Settings.model_fields[NAMES[name]].default
    listed = from_environment({name: LISTED[name]})
    assert getattr(listed, NAMES[name]) == default


@pytest.mark.parametrize("name", sorted(DIRECTORIES - {"ROLE_SECRETS_DIR"}))
def test_a_directory_is_listed_as_a_path_that_compose_takes(name: str) -> None:
    """With ./ before it: Compose takes a bare name for a volume."""
    assert LISTED[name] == f"./{Settings.model_fields[NAMES[name]].default}"


def test_only_the_password_is_for_the_user_to_set() -> None:
    """Every other line is a comment."""
    assert re.findall(r"^([A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE) == [("POSTGRES_PASSWORD", "")]


def test_every_line_uncommented_is_accepted() -> None:
    """No name in the file is taken for a misspelt setting."""
    from_environment({name: value for name, value in LISTED.items() if name != "POSTGRES_PASSWORD"})


def test_a_misspelt_line_is_named() -> None:
    """What migrate, which reads all of .env, says about it."""
    with pytest.raises(ConfigurationError, match="did you mean MIN_NEW_FILES"):
        from_environment({**LISTED, "MIN_NEW_FILE": "5"})


def test_defaults_of_the_compose_files_agree_with_the_file() -> None:
    """`${NAME:-value}` in docker-compose.yml says what .env.example says."""
    text = (PROJECT / "docker-compose.yml").read_text(encoding="utf-8")
    given = dict(re.findall(r"\$\{([A-Z_]+):-([^}]*)\}", text))
    differing = {name for name, value in given.items() if LISTED.get(name, value) != value}
    assert differing == {"RECIPE"}  # demo: the base file runs anywhere


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "deploy").mkdir()
    shutil.copy(PROJECT / ".env.example", tmp_path)
    shutil.copy(PROJECT / "deploy" / "env.sh", tmp_path / "deploy")
    return tmp_path


def make_env(checkout: Path) -> str:
    subprocess.run(["sh", "deploy/env.sh"], cwd=checkout, check=True, capture_output=True)
    return (checkout / ".env").read_text(encoding="utf-8")


def secret_in(text: str, name: str = "POSTGRES_PASSWORD") -> str:
    found = re.search(rf"^{name}=(.*)$", text, re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "DASHBOARD_TOKEN"])
def test_make_env_writes_long_random_secrets(checkout: Path, name: str) -> None:
    """48 hexadecimal digits, 192 bits."""
    assert re.fullmatch("[0-9a-f]{48}", secret_in(make_env(checkout), name))


def test_make_env_keeps_secrets_from_other_users(checkout: Path) -> None:
    """.env is readable by its owner only."""
    make_env(checkout)
    assert stat.S_IMODE((checkout / ".env").stat().st_mode) == 0o600


def test_make_env_changes_nothing_that_is_set(checkout: Path) -> None:
    """A second run leaves the file as it is."""
    assert make_env(checkout) == make_env(checkout)


def test_make_env_fills_in_a_password_that_is_missing(checkout: Path) -> None:
    """The other lines of an existing .env stay."""
    (checkout / ".env").write_text("MIN_NEW_FILES=5\nPOSTGRES_PASSWORD=\n", encoding="utf-8")
    text = make_env(checkout)
    token = secret_in(text, "DASHBOARD_TOKEN")
    assert text == f"MIN_NEW_FILES=5\nPOSTGRES_PASSWORD={secret_in(text)}\nDASHBOARD_TOKEN={token}\n"
    assert secret_in(text)


def test_make_env_makes_the_folders_that_compose_mounts(checkout: Path) -> None:
    """As the user who runs it; Docker would make them root's."""
    make_env(checkout)
    made = {path.name for path in checkout.iterdir() if path.is_dir()} - {"deploy"}
    compose = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))
    mounts = [mount for service in compose["services"].values() for mount in service.get("volumes", [])]
    assert made == {found[1] for mount in mounts if (found := re.search(r":-\./(\w+)\}", mount))}
