"""`ratchet train --now|pause|resume`: asked of a track, answered by its trainer."""

import json
import threading
from collections.abc import Iterator

import pytest

from services.cli.environment import Environment
from services.cli.training import requests
from services.cli.training.requests import Asked
from services.core.db import Database
from services.core.errors import ConfigurationError
from services.core.models import RequestState, Service, ServiceState
from tests.integration.metrics import rows


@pytest.fixture(autouse=True)
def history(database: Database) -> None:
    rows.fill(database, contents=4)


class Trainer(threading.Thread):
    """Answers what is asked of demo, as services/trainer/daemon/requests.py does."""

    def __init__(self, database: Database, state: RequestState, message: str) -> None:
        super().__init__(daemon=True)
        self._database, self._answer = database, {"state": state, "message": message}
        self.stop = threading.Event()
        self.seen: list[tuple[str, dict[str, str], str]] = []

    def run(self) -> None:
        while not self.stop.wait(0.02):
            with self._database.transaction() as tx:
                for row in tx.all("waiting_requests", track="demo"):
                    self.seen.append((row.kind, row.payload, row.actor))
                    tx.execute("answer_request", request=row.id, **self._answer)


@pytest.fixture
def trainer(database: Database) -> Iterator[Trainer]:
    thread = Trainer(database, RequestState.DONE, "round 4 has begun")
    thread.start()
    yield thread
    thread.stop.set()
    thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "POLL", 0.02)


def test_the_trainers_answer_is_printed(trainer: Trainer, settings: Environment, capsys) -> None:
    assert requests.run(settings, Asked("train", reason="now"), as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == "demo: round 4 has begun"
    ((kind, payload, actor),) = trainer.seen
    assert (kind, payload) == ("train", {"reason": "now"})
    assert actor


def test_as_json_standard_output_is_one_document(trainer: Trainer, settings: Environment, capsys) -> None:
    requests.run(settings, Asked("pause"), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["track"], told["state"]) == ("pause", "demo", "done")


def test_a_refusal_is_a_no(trainer: Trainer, settings: Environment, capsys) -> None:
    trainer._answer = {"state": RequestState.FAILED, "message": "it was not paused"}
    assert not requests.run(settings, Asked("resume"), as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == "demo: it was not paused"


def test_without_waiting_it_is_asked_and_no_more(settings: Environment, database: Database, capsys) -> None:
    assert requests.run(settings, Asked("pause", wait=False), as_json=False)
    assert "asked the trainer of demo (request 1)" in capsys.readouterr().out
    with database.transaction() as tx:
        assert tx.one("request", request=1).state == RequestState.WAITING


def test_nobody_is_waited_for_who_is_not_heard_of(
    settings: Environment, database: Database, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(requests, "UNHEARD", 0.1)
    rows.beat(database, Service.TRAINER, ServiceState.IDLE, {"track": "demo"}, age_seconds=600)
    assert not requests.run(settings, Asked("train"), as_json=False)
    assert "no trainer of demo is heard of: request 1 waits an hour" in capsys.readouterr().out


def test_ctrl_c_leaves_the_request_to_the_trainer(
    settings: Environment, database: Database, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(requests.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        requests.run(settings, Asked("train"), as_json=False)
    assert "request 1 still waits" in capsys.readouterr().out
    with database.transaction() as tx:
        assert tx.one("request", request=1).state == RequestState.WAITING


def test_a_track_that_no_trainer_ever_had_is_an_error(settings: Environment) -> None:
    with pytest.raises(ConfigurationError, match="no track is called 'other'"):
        requests.run(settings, Asked("train", "other"), as_json=False)
