"""What is sent about an event: JSON signed as Standard Webhooks has it, or one line for a chat."""

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass

from standardwebhooks import Webhook

from services.core.settings import Settings
from services.trainer.events import Event, sentence


@dataclass(frozen=True)
class Message:
    body: bytes
    headers: Mapping[str, str]


def message(event: Event, settings: Settings, now: datetime.datetime) -> Message:
    """The message of this attempt: the body and `webhook-id` are the same in every one.

    Signed with WEBHOOK_SECRET, if there is one: HMAC-SHA256 over id, time of the attempt and body
    (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
    """
    body = json.dumps(_document(event, settings.webhook_format), separators=(",", ":"))
    uid = f"msg_{event.uid}"
    headers = {
        "content-type": "application/json",
        "user-agent": "ratchet-webhooks/1",
        "webhook-id": uid,
        "webhook-timestamp": str(int(now.timestamp())),
    }
    if settings.webhook_secret is not None:
        signer = Webhook(settings.webhook_secret.get_secret_value().strip())
        headers["webhook-signature"] = signer.sign(uid, now.astimezone(datetime.UTC), body)
    return Message(body.encode(), headers)


def _document(event: Event, form: str) -> dict[str, object]:
    return {"text": _escaped(sentence(event))} if form == "slack" else event.as_json()


def _escaped(text: str) -> str:
    """As Slack's mrkdwn wants it: no text of ours mentions everybody or makes a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
