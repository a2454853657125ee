"""Settings: what the environment may say, and what is said about what it may not."""

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from services.core import settings
from services.core.errors import ConfigurationError
from services.core.settings import PROJECT, Settings, from_environment

URL = "postgresql://sam:s3cret%2Fpass@db.example:5433/code"


def test_empty_environment_gives_the_defaults() -> None:
    """No variable is required to read the settings."""
    assert from_environment({}) == Settings()


def test_defaults_of_the_contract() -> None:
    """The documented defaults: 1000 files, 100,000 contents, 300 s, threshold 70, pool 1 to 5, port 8090."""
    read = from_environment({})
    assert (read.min_new_files, read.max_dataset_size, read.check_interval) == (1000, 100_000, 300)
    assert (read.quality_threshold, read.db_pool_min_conn, read.db_pool_max_conn) == (70, 1, 5)
    assert read.metrics_port == 8090


def test_an_empty_value_counts_as_not_set() -> None:
    """Compose passes unset variables on as empty ones."""
    assert from_environment({"MIN_NEW_FILES": "", "HF_TOKEN": " "}) == Settings()


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("MIN_NEW_FILE", "MIN_NEW_FILES"),
        ("POSTGRES_PASWORD", "POSTGRES_PASSWORD"),
        ("QUALITY_TRESHOLD", "QUALITY_THRESHOLD"),
        ("GRADIENT_ACCUMULATION_STEP", "GRADIENT_ACCUMULATION_STEPS"),
        ("WANDB_PROJECTS", "WANDB_PROJECT"),
    ],
)
def test_a_misspelt_name_is_an_error_with_the_right_one(misspelt: str, meant: str) -> None:
    """A slip of the pen is never ignored in silence."""
    with pytest.raises(ConfigurationError, match=rf"{misspelt} is not a setting: did you mean {meant}\?"):
        from_environment({misspelt: "1"})


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "PGHOST", "HF_HOME", "WANDB_DIR", "RATCHET_PARENT_PID", "LOGNAME", "OMP_NUM_THREADS"],
)
def test_names_of_other_programs_are_left_alone(name: str) -> None:
    """The environment is full of names that are not ours."""
    assert from_environment({name: "x"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MIN_NEW_FILES", "0"),
        ("QUALITY_THRESHOLD", "101"),
        ("CHECK_INTERVAL", "often"),
        ("METRICS_PORT", "70000"),
        ("LOG_LEVEL", "loud"),
        ("WANDB_MODE", "sometimes"),
        ("USE_FLASH_ATTENTION", "perhaps"),
    ],
)
def test_an_impossible_value_is_an_error_naming_both(name: str, value: str) -> None:
    """The message has the name as one writes it and the value as it was given."""
    with pytest.raises(ConfigurationError, match=f"{name}='{value}'"):
        from_environment({name: value})


def test_all_wrong_values_are_named_at_once() -> None:
    """One error tells everything that is to be repaired."""
    with pytest.raises(ConfigurationError, match=r"MIN_NEW_FILES.*LORA_R|LORA_R.*MIN_NEW_FILES"):
        from_environment({"MIN_NEW_FILES": "few", "LORA_R": "many"})


def test_overrides_are_those_the_environment_names() -> None:
    """Recipe fields that are not set are not overridden."""
    read = from_environment({"LORA_R": "8", "USE_FLASH_ATTENTION": "false"})
    assert read.recipe_overrides == {"lora_r": 8, "use_flash_attention": False}


def test_a_url_is_taken_apart() -> None:
    """Each part of DATABASE_URL, percent-decoded."""
    target = from_environment({"DATABASE_URL": URL}).database()
    assert (target.host, target.port, target.dbname, target.user) == ("db.example", 5433, "code", "sam")
    assert target.password.get_secret_value() == "s3cret/pass"


def test_a_url_beats_the_parts() -> None:
    """DATABASE_URL wins over POSTGRES_*."""
    read = from_environment({"DATABASE_URL": URL, "POSTGRES_HOST": "other", "POSTGRES_PASSWORD": "x"})
    assert read.database().host == "db.example"


def test_the_default_port_of_a_url() -> None:
    """Without a port: 5432."""
    assert from_environment({"DATABASE_URL": "postgres://a:b@c/d"}).database().port == 5432


@pytest.mark.parametrize(
    ("url", "missing"),
    [
        ("mysql://sam:s3cret@db/code", "scheme"),
        ("postgresql://db/code", "user"),
        ("postgresql://sam@db/code", "password"),
        ("postgresql://sam:s3cret@/code", "host"),
        ("postgresql://sam:s3cret@db", "database name"),
        ("postgresql://sam:s3cret@db:99999/code", "DATABASE_URL must read"),
    ],
)
def test_a_broken_url_says_what_is_missing_without_the_password(url: str, missing: str) -> None:
    """The message helps, and does not repeat the secret."""
    with pytest.raises(ConfigurationError, match=missing) as caught:
        from_environment({"DATABASE_URL": url}).database()
    assert "s3cret" not in str(caught.value)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_password_survives_the_url(password: str) -> None:
    """Percent-encoded, every password comes out of the URL as it went in."""
    url = f"postgresql://sam:{quote(password, safe='')}@db/code"
    target = Settings(database_url=SecretStr(url)).database()
    assert target.password.get_secret_value() == password


def test_a_password_from_a_file(tmp_path) -> None:
    """POSTGRES_PASSWORD_FILE is read without the newline at its end."""
    path = tmp_path / "password"
    path.write_text("from-a-file\n")
    target = from_environment({"POSTGRES_PASSWORD_FILE": str(path)}).database()
    assert target.password.get_secret_value() == "from-a-file"


def test_a_missing_password_file_says_who_writes_it(tmp_path) -> None:
    """The file comes from `ratchet migrate`."""
    with pytest.raises(ConfigurationError, match="ratchet migrate"):
        from_environment({"POSTGRES_PASSWORD_FILE": str(tmp_path / "none")}).database()


def test_no_password_is_an_error_that_says_how_to_make_one() -> None:
    """There is no default password."""
    with pytest.raises(ConfigurationError, match="make env"):
        from_environment({}).database()


def test_secrets_show_in_no_representation() -> None:
    """repr and str of settings and targets hold no secret."""
    secrets = {"DATABASE_URL": URL, "HF_TOKEN": "hf_token_value", "WANDB_API_KEY": "wandb_key_value"}
    read = from_environment({**secrets, "POSTGRES_PASSWORD": "postgres_value"})
    shown = f"{read!r} {read} {read.database()!r} {read.database()}"
    for secret in ("s3cret", "hf_token_value", "wandb_key_value", "postgres_value"):
        assert secret not in shown


def test_an_impossible_secret_is_not_repeated() -> None:
    """The value of a secret setting is left out of every error."""
    assert settings.REDACTED in settings._explain({"loc": ("hf_token",), "msg": "bad"}, {"hf_token": "hf_x"})


def test_every_secret_is_known_to_the_log() -> None:
    """`secrets()` lists the raw values, the decoded password of the URL among them."""
    read = from_environment({"DATABASE_URL": URL, "HF_TOKEN": "hf_x", "WANDB_API_KEY": "w_x"})
    assert {URL, "s3cret/pass", "hf_x", "w_x"} <= set(read.secrets())


def test_every_setting_that_is_secret_is_left_out_of_the_log() -> None:
    """Also one that is added later."""
    fields = Settings.model_fields.items()
    secret = {name for name, field in fields if "SecretStr" in str(field.annotation)}
    held = Settings.model_construct(**{name: SecretStr(f"value-of-{name}") for name in secret})
    assert {f"value-of-{name}" for name in secret} <= set(held.secrets())
    named = {name for name in Settings.model_fields if re.search("password$|secret$|token|_key$", name)}
    assert named <= secret


def test_every_setting_is_listed_in_the_example() -> None:
    """A name that .env.example does not mention cannot be found by anybody."""
    example = (PROJECT / ".env.example").read_text(encoding="utf-8")
    assert [name for name in settings.NAMES if name not in example] == []
