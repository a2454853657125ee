"""Planted secrets in a real run, from a folder of code to a page: nothing that is written or told holds one.

What the run leaves (tests/planted_run.py) is searched for each secret in each spelling. The same run shows
that the curves of W&B and TensorBoard are the ledger's.
"""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from services.core import db
from services.core.settings import NAMES, PROJECT
from services.core.target import Target
from tests import offline_wandb
from tests.conftest import administer
from tests.integration.trainer.test_round import wait_for
from tests.planted_run import DATABASE, HOOK, INGESTED, PASSWORDS, SETTINGS, WRONG, Left, asked, run
from tests.receiver import free_port


@pytest.fixture(scope="module")
def left(server: Target, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    home = tmp_path_factory.mktemp("planted")
    administer(server, f"CREATE DATABASE {DATABASE} TEMPLATE {template} STRATEGY file_copy")
    for service, password in PASSWORDS.items():
        administer(server, f"ALTER ROLE ratchet_{service} LOGIN PASSWORD '{password}'")
    target = server.model_copy(update={"dbname": DATABASE})
    with closing(db.Database(target, application="test")) as database:
        yield run(home, target, database)
    administer(server, f"DROP DATABASE {DATABASE} WITH (FORCE)")


def spellings(secret: str) -> set[bytes]:
    """As it is, as a URL, a document, Python and base64 have it."""
    quoted = {quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    return {each.encode() for each in {secret, *quoted}} | {base64.b64encode(secret.encode()).rstrip(b"=")}


PLANTED = {
    **{f"password of {service}": password for service, password in PASSWORDS.items()},
    **{name: value for name, value in SETTINGS.items() if name in NAMES},
    "WEBHOOK_URLS": HOOK,
    "a wrong password": WRONG,
    **INGESTED,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_secret_is_nowhere_in_what_was_written_or_told(left: Left, name: str) -> None:
    """Logs, pages, metrics, messages, tables, adapters, W&B, TensorBoard."""
    assert [
        place
        for place, content in left.kept.items()
        if any(each in content for each in spellings(PLANTED[name]))
    ] == []


def test_everything_was_looked_at(left: Left) -> None:
    """A search that finds nothing proves nothing unless it looks at all of it."""
    places = "\n".join(left.kept)
    for part in (
        "trainer.log", "processor.log", "metrics.log", "events.out.tfevents", "records of", "manifest.json",
        "message 0", "table contents", "/metrics as text/plain", "/api/v1/contents", "refused.log",
    ):  # fmt: skip
        assert part in places, part
    pages = b"".join(content for place, content in left.kept.items() if place.startswith("http"))
    assert b"REDACTED_CREDENTIAL_" in pages
    assert b"REDACTED_GITHUB_TOKEN" in left.kept["table contents"]
    assert left.kept["message 0"].startswith(b"{")
    assert "cannot log in" in left.text("refused")


def test_every_line_of_a_json_log_is_an_object_with_its_track_and_round(left: Left) -> None:
    """Also what other libraries log in our processes."""
    assert left.round.state == "promoted", left.round.verdict
    entries = [json.loads(line) for line in left.text("trainer").splitlines() if line.startswith("{")]
    told = [
        entry for entry in entries if entry["service"] == "trainer.round" and "promoted" in entry["message"]
    ]
    assert {(entry["track"], entry["round"]) for entry in told} == {("tiny", 1)}
    assert all({"time", "level", "service", "logger", "message"} <= set(entry) for entry in entries)
    assert all(line.startswith("{") for line in left.text("metrics").splitlines())


def test_tensorboard_shows_the_curve_that_the_ledger_has(left: Left) -> None:
    """Point for point, to the precision of its 32-bit floats."""
    shown = EventAccumulator(str(left.home / "logs" / "tensorboard" / "tiny" / "round-0001"))
    shown.Reload()
    for tag, curve in _curves(left.progress).items():
        points = {point.step: point.value for point in shown.Scalars(tag)}
        assert points == pytest.approx(curve, rel=1e-6), tag
    assert {"train/loss", "eval/eval_loss"} <= set(shown.Tags()["scalars"])


def test_the_profile_tensorboard_serves_these_curves(left: Left) -> None:
    """By the command of docker-compose.yml, which the trainer's image has."""
    compose = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))
    program, *options = compose["services"]["tensorboard"]["command"]
    port = free_port()
    places = {"/data/logs": str(left.home / "logs"), "0.0.0.0": "127.0.0.1", "6006": str(port)}
    for inside, here in places.items():
        options = [option.replace(inside, here) for option in options]
    command = [str(Path(sys.executable).with_name(program)), *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        scalars = f"http://127.0.0.1:{port}/data/plugin/scalars"
        wait_for(lambda: b"tiny/round-0001" in asked(f"{scalars}/tags"), 60)
        shown = json.loads(asked(f"{scalars}/scalars?run=tiny%2Fround-0001&tag=train%2Floss"))
    finally:
        server.terminate()
        server.wait(60)
    curve = _curves(left.progress)["train/loss"]
    assert {step: value for _, step, value in shown} == pytest.approx(curve, rel=1e-6)


def test_wandb_is_told_the_curve_that_the_ledger_has(left: Left) -> None:
    """And which round it is: track, number, snapshot and recipe."""
    (path,) = offline_wandb.runs(left.home / "logs")
    found = offline_wandb.written(path)
    (run,) = [record.run for record in found if record.HasField("run")]
    config = {one.key: json.loads(one.value_json) for one in run.config.update}
    assert (run.run_group, run.display_name) == ("tiny", "tiny-round-0001")
    assert (config["snapshot_hash"], config["lora_r"], config["round"]) == (left.round.snapshot_hash, 8, 1)
    told: dict[str, dict[int, float]] = {}
    for step in offline_wandb.history(left.home / "logs"):
        for name, value in step.items():
            told.setdefault(name, {})[step["_step"]] = value
    for tag, curve in _curves(left.progress).items():
        assert told[tag] == pytest.approx(curve), tag
    assert "predictions" in " ".join(told)


def _curves(progress: list[Any]) -> dict[str, dict[int, float]]:
    """Of the ledger: tag → step → value."""
    curves: dict[str, dict[int, float]] = {}
    for row in progress:
        for name, value in row.metrics.items():
            if isinstance(value, int | float):
                curves.setdefault(f"{row.kind}/{name}", {})[row.step] = float(value)
    return curves
