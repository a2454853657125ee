"""What is sent: signed as the specification says, the same at every attempt, harmless in a chat."""

import base64
import datetime
import hashlib
import hmac
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from standardwebhooks import Webhook

from services.core.settings import Settings
from services.trainer.events import Event
from services.trainer.webhooks.message import message
from tests.receiver import SECRET

EVENT = Event(
    7, "0b3d1f0e-7c1c-4a63-8d0e-5a7d2f8f1c11", "round.promoted", "demo", 4, "round-0004",
    {"actor": "gate", "reason": "1.52 % better", "gain_percent": 1.52, "before": "round-0003"},
    datetime.datetime(2026, 11, 21, 17, 30, 5, 250_000, tzinfo=datetime.UTC),
)  # fmt: skip
STANDARD = Settings(webhook_secret=SecretStr(SECRET))
SLACK = Settings(webhook_format="slack")


def now() -> datetime.datetime:
    """Of the test, not of the collection: a message older than five minutes is not verified."""
    return datetime.datetime.now(datetime.UTC)


def test_the_library_signs_as_the_specification_says() -> None:
    """The example of the reference implementations: secret, id, time, body and signature."""
    signer = Webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    at = datetime.datetime.fromtimestamp(1614265330, datetime.UTC)
    signature = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, '{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_is_verified_by_the_library_and_by_hand() -> None:
    """HMAC-SHA256 over id, time and the very bytes of the body."""
    made = message(EVENT, STANDARD, now())
    assert Webhook(SECRET).verify(made.body, dict(made.headers)) == EVENT.as_json()
    signed = f"{made.headers['webhook-id']}.{made.headers['webhook-timestamp']}.".encode() + made.body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    by_hand = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert made.headers["webhook-signature"] == f"v1,{by_hand}"


def test_the_document_has_type_time_and_data() -> None:
    """The time is that of the event, not of the attempt."""
    assert json.loads(message(EVENT, STANDARD, now()).body) == {
        "type": "round.promoted",
        "timestamp": "2026-11-21T17:30:05.250000Z",
        "data": {
            "id": 7, "track": "demo", "round": 4, "adapter": "round-0004", "actor": "gate",
            "reason": "1.52 % better", "gain_percent": 1.52, "before": "round-0003",
        },
    }  # fmt: skip


def test_another_attempt_has_the_same_id_and_body_and_its_own_time() -> None:
    """A receiver knows the event again, and refuses a message that was recorded and played later."""
    first, second = (
        message(EVENT, STANDARD, now()),
        message(EVENT, STANDARD, now() + datetime.timedelta(hours=2)),
    )
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == f"msg_{EVENT.uid}"
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


def test_a_chat_gets_one_line_that_addresses_nobody() -> None:
    made = message(replace(EVENT, payload={"reason": "<!channel> a & b"}, kind="round.refused"), SLACK, now())
    assert json.loads(made.body) == {"text": "demo: round 4 was refused: &lt;!channel&gt; a &amp; b"}
    assert "webhook-signature" not in made.headers


@given(st.text(), st.text())
def test_whatever_an_event_says_it_is_signed_and_verified(said: str, track: str) -> None:
    made = message(replace(EVENT, payload={"reason": said}, track=track), STANDARD, now())
    assert Webhook(SECRET).verify(made.body, dict(made.headers))["data"]["reason"] == said


@pytest.mark.parametrize(
    "change",
    [
        {"body": lambda body: body.replace(b"demo", b"demi")},
        {"webhook-id": lambda name: name + "x"},
        {"webhook-timestamp": lambda at: str(int(at) - 1)},
    ],
)
def test_a_message_that_was_changed_is_not_verified(change) -> None:
    made = message(EVENT, STANDARD, now())
    ((what, how),) = change.items()
    body = how(made.body) if what == "body" else made.body
    headers = {name: how(value) if name == what else value for name, value in made.headers.items()}
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(SECRET).verify(body, headers)
