"""What `ratchet` runs with."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from services.cli import environment
from services.core.errors import ConfigurationError
from services.core.target import Target

TARGET = Target(host="127.0.0.1", port=5433, dbname="ratchet", user="ratchet", password=SecretStr("owner's"))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("NAME=value", "value"),
        ("  export NAME = value  ", "value"),
        ("NAME=", ""),
        ("NAME='a # b'", "a # b"),
        ('NAME="a b" # why', "a b"),
        ("NAME=a # why", "a"),
        ("NAME=a#b", "a#b"),
        ("NAME= # why", ""),
        ("NAME=a=b", "a=b"),
    ],
)
def test_an_env_file_reads_as_compose_reads_it(line, value):
    """Quotes, `export`, comments and empty values mean what they mean to Compose."""
    assert environment.parse(f"# a comment\n\n{line}\n") == {"NAME": value}


def test_a_line_that_is_no_assignment_is_named_by_its_number_alone():
    """The line may hold a secret: the message does not repeat it."""
    with pytest.raises(ConfigurationError, match="line 2") as caught:
        environment.parse("A=1\nhunter2\n")
    assert "hunter2" not in str(caught.value)


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(tmp_path):
    """MIN_NEW_FILES: 100 by default, overridden by .env, overridden by the environment."""
    assert environment.read({}, tmp_path).settings.min_new_files == 100
    (tmp_path / ".env").write_text("MIN_NEW_FILES=200\n")
    assert environment.read({}, tmp_path).settings.min_new_files == 200
    assert environment.read({"MIN_NEW_FILES": "300"}, tmp_path).settings.min_new_files == 300


def test_a_small_machine_trains_the_demo_recipe_with_the_usual_threshold(tmp_path):
    """Local defaults change when to train and with what, never what is good enough."""
    settings = environment.read({}, tmp_path).settings
    assert (settings.recipe, settings.quality_threshold) == ("demo", 70)


def test_directories_count_from_where_they_are_named(tmp_path):
    """Relative to the working directory in the environment, to the project in .env and by default."""
    (tmp_path / ".env").write_text("ADAPTERS_DIR=out\n")
    settings = environment.read({"INGEST_DIR": "code"}, tmp_path, here=Path("/elsewhere")).settings
    assert settings.ingest_dir == Path("/elsewhere/code")
    assert settings.adapters_dir == tmp_path / "out"
    assert settings.ratchet_home == tmp_path / ".ratchet"


def test_state_follows_its_home(tmp_path):
    """Logs, checkpoints and caches lie below RATCHET_HOME unless they are named."""
    settings = environment.read({"RATCHET_HOME": str(tmp_path / "h"), "CACHE_DIR": "/c"}, tmp_path).settings
    assert settings.logs_dir == tmp_path / "h" / "logs"
    assert settings.cache_dir == Path("/c")


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, False),
        ({"POSTGRES_PASSWORD": "made-for-compose"}, False),
        ({"POSTGRES_HOST": "db"}, True),
        ({"DATABASE_URL": "postgresql://u:p@db/ratchet"}, True),
        ({"DATABASE_URL": ""}, False),
    ],
)
def test_only_a_url_or_a_host_names_a_database(tmp_path, variables, named):
    """A password alone, as Compose's .env has it, does not keep the embedded server from starting."""
    assert environment.read(variables, tmp_path).names_database is named


def test_an_empty_value_in_the_environment_unsets_what_the_file_says(tmp_path):
    """DATABASE_URL= on the command line brings the embedded server back."""
    (tmp_path / ".env").write_text("DATABASE_URL=postgresql://u:p@db/ratchet\n")
    assert not environment.read({"DATABASE_URL": ""}, tmp_path).names_database


def test_a_service_logs_in_as_its_own_role_and_knows_no_other_login(tmp_path):
    """The owner's URL and password stay with the supervisor."""
    variables = {"DATABASE_URL": "postgresql://owner:hunter2@db/ratchet", "POSTGRES_PASSWORD": "hunter2"}
    served = environment.read(variables, tmp_path).for_service("trainer", TARGET)
    assert served["POSTGRES_USER"] == "ratchet_trainer"
    assert served["POSTGRES_PASSWORD_FILE"] == str(tmp_path / ".ratchet/secrets/trainer/password")
    assert "hunter2" not in "".join(served.values())


def test_what_opens_doors_outside_is_the_trainers_alone(tmp_path):
    """Tokens of the hub, of W&B and of webhooks reach no other service."""
    variables = {"HF_TOKEN": "hf_x", "WANDB_API_KEY": "w", "WEBHOOK_URLS": "https://x.example/"}
    served = environment.read(variables, tmp_path)
    assert variables.items() <= served.for_service("trainer", TARGET).items()
    assert not variables.keys() & served.for_service("processor", TARGET).keys()


def test_migrations_run_as_the_owner_and_keep_the_roles_passwords_at_home(tmp_path):
    settings = environment.read({}, tmp_path).as_owner(TARGET)
    assert settings.database() == TARGET
    assert settings.role_secrets_dir == tmp_path / ".ratchet/secrets"


def test_a_misspelt_setting_in_the_file_is_an_error_that_names_the_right_one(tmp_path):
    (tmp_path / ".env").write_text("MIN_NEW_FILE=10\n")
    with pytest.raises(ConfigurationError, match="MIN_NEW_FILES"):
        environment.read({}, tmp_path)
