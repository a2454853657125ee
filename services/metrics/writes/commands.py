"""The command that does in a terminal what a button does here. Pure."""

import shlex

from services.core.models import RequestKind

NAMED = {  # after `ratchet`; {} is the adapter or target
    RequestKind.TRAIN: "train --now",
    RequestKind.PAUSE: "pause",
    RequestKind.RESUME: "resume",
    RequestKind.PROMOTE: "promote {}",
    RequestKind.REJECT: "reject {}",
    RequestKind.ROLLBACK: "rollback",
    RequestKind.PIN: "pin",
    RequestKind.UNPIN: "unpin",
    RequestKind.FORGET: "forget {}",
}


def command(kind: str, track: str, name: str | None = None) -> str:
    """`name`: of the adapter, or what is to be forgotten. Raises ValueError for a kind there is not."""
    kind = RequestKind(kind)
    said = NAMED[kind].format(shlex.quote(name or "NAME"))
    if name and kind is RequestKind.ROLLBACK:
        said += f" --to {shlex.quote(name)}"
    if name and kind is RequestKind.PIN:
        said += f" {shlex.quote(name)}"
    of_track = "" if kind is RequestKind.FORGET else f" --track {shlex.quote(track)}"
    return f"ratchet {said}{of_track}"
