"""docs/how-to/webhooks.md: its receiver works, and it names every kind of event."""

import datetime
import re
import threading
from collections.abc import Iterator
from http.server import HTTPServer

import pytest
from pydantic import SecretStr

from services.core.models import EVENT_GROUPS
from services.core.settings import PROJECT, Settings
from services.trainer.events import SENTENCES
from services.trainer.webhooks.endpoints import Endpoint
from services.trainer.webhooks.message import message
from services.trainer.webhooks.transport import Answer, post
from tests.receiver import SECRET
from tests.unit.trainer.webhooks.test_message import EVENT

PAGE = (PROJECT / "docs" / "how-to" / "webhooks.md").read_text(encoding="utf-8")
(RECEIVER,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(?P<kind>[a-z_.]+)` \| (?P<group>\w+) \| (?P<fields>.*) \|$", re.MULTILINE)
ROWS = {row["kind"]: row for row in ROW.finditer(PAGE)}
FIELDS = {kind: set(re.findall(r"`(\w+)`", row["fields"])) - {"adapter"} for kind, row in ROWS.items()}


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of the receiver that the page shows."""
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    namespace: dict[str, object] = {"__name__": "receiver"}
    exec(RECEIVER, namespace)
    receiver = namespace["Receiver"]
    receiver.log_message = lambda *_: None
    server = HTTPServer(("127.0.0.1", 0), receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def send(address: str, secret: str = SECRET, age: float = 0.0) -> Answer:
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
    return post(Endpoint.of(address), message(EVENT, Settings(webhook_secret=SecretStr(secret)), then))


def test_the_receiver_takes_a_message_and_handles_it_once(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [send(address).status, send(address).status] == [204, 204]
    assert capsys.readouterr().out.count("round.promoted") == 1


def test_the_receiver_refuses_what_is_forged_or_old(address: str) -> None:
    forged = "whsec_" + "A" * 43 + "="
    assert send(address, forged).status == 401
    assert send(address, age=400).status == 401


def test_every_kind_has_its_row_with_its_group_and_its_sentence() -> None:
    documented = {kind: row["group"] for kind, row in ROWS.items()}
    assert documented == {kind: group for group, kinds in EVENT_GROUPS.items() for kind in kinds}
    assert SENTENCES.keys() == documented.keys()


def test_the_page_names_the_groups_that_are_sent_by_default() -> None:
    default = Settings().webhook_events
    assert f"`{','.join(default)}`" in PAGE
