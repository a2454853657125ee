"""`ratchet config show|check`."""

import json

import pytest

from services.cli import environment
from services.cli.operating import config

SECRETS = {
    "DATABASE_URL": "postgresql://me:planted-secret-1@db:5432/ratchet",
    "HF_TOKEN": "hf_planted-secret-2",
    "WEBHOOK_URLS": "https://hooks.example.com/planted-secret-3",
    "WEBHOOK_SECRET": "whsec_" + "cGxhbnRlZC1zZWNyZXQtNC1wbGFudGVk",
    "DASHBOARD_TOKEN": "planted-secret-6-of-the-dashboard",
    "SERVE_BACKEND": "http://me:planted-secret-5@127.0.0.1:8001",
}


@pytest.fixture
def layers(monkeypatch, tmp_path):
    """`layers(env_file, **variables)`: what the commands then see."""

    def chosen(env_file: str = "", **variables: str):
        (tmp_path / ".env").write_text(env_file)
        (tmp_path / ".env").chmod(0o600)
        found = environment.layers(variables, project=tmp_path)
        monkeypatch.setattr(environment, "layers", lambda: found)
        return found

    return chosen


def shown(capsys, **options) -> dict[str, dict[str, object]]:
    config.show(as_json=True, **({"changed": False} | options))
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["settings"]}


def test_every_setting_says_who_set_it(layers, capsys) -> None:
    layers("MIN_NEW_FILES=7\nQUALITY_THRESHOLD=80\nRECIPE=\n", MIN_NEW_FILES="9", LOG_LEVEL="")
    told = shown(capsys)
    assert (told["MIN_NEW_FILES"]["value"], told["MIN_NEW_FILES"]["origin"]) == (9, "environment")
    assert (told["QUALITY_THRESHOLD"]["value"], told["QUALITY_THRESHOLD"]["origin"]) == (80, ".env")
    assert (told["CHECK_INTERVAL"]["value"], told["CHECK_INTERVAL"]["origin"]) == (5.0, "local")
    assert told["LOG_LEVEL"]["origin"] == "default"  # set to nothing is not set
    assert told["RECIPE"]["origin"] == "default"
    assert told["LOGS_DIR"]["origin"] == "local"


def test_changed_leaves_out_what_the_program_has_by_itself(layers, capsys) -> None:
    layers(QUALITY_THRESHOLD="80")
    told = shown(capsys, changed=True)
    assert "QUALITY_THRESHOLD" in told
    assert "MAX_ATTEMPTS" not in told


@pytest.mark.parametrize("as_json", [True, False])
def test_no_secret_is_ever_shown(layers, capsys, as_json) -> None:
    layers(**SECRETS)
    config.show(changed=False, as_json=as_json)
    config.check(as_json=as_json)
    said = "".join(capsys.readouterr())
    assert "planted" not in said
    assert "cGxhbnRlZC" not in said
    assert "***" in said


def test_show_works_where_settings_are_wrong_and_says_so(layers, capsys) -> None:
    layers(MIN_NEW_FILES="many", QUALITY_TRESHOLD="70")
    config.show(changed=False, as_json=False)
    said = capsys.readouterr().out
    assert "wrong: MIN_NEW_FILES='many'" in said
    assert "wrong: QUALITY_TRESHOLD is not a setting: did you mean QUALITY_THRESHOLD?" in said


def test_check_names_everything_at_once(layers, capsys) -> None:
    layers(MIN_NEW_FILES="many", QUALITY_TRESHOLD="70", RECIPE="demmo")
    assert not config.check(as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert [each["check"] for each in told["findings"] if each["status"] == "error"] == [
        "settings", "settings", "recipe",
    ]  # fmt: skip


def test_check_of_what_is_well_says_so(layers, capsys) -> None:
    layers()
    assert config.check(as_json=False)
    assert capsys.readouterr().out == "all is well\n"


def test_an_invalid_secret_is_not_quoted(layers, capsys) -> None:
    layers(WEBHOOK_SECRET="not-a-signing-secret-planted")
    assert not config.check(as_json=False)
    assert "planted" not in capsys.readouterr().out
