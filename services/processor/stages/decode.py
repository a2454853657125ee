"""Bytes to text: strict UTF-8 or a refusal.

Other encodings are not guessed. Cp1252 would decode almost any bytes, and a model that learns
from wrongly decoded text learns to write it: a refused file can be converted, a spoilt text not.
"""

import codecs

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.values import Rejection

CONTROLS = bytes(range(0x01, 0x09)) + b"\x0b" + bytes(range(0x0E, 0x1B)) + bytes(range(0x1C, 0x20)) + b"\x7f"


def decode(data: bytes) -> str | Rejection:
    """The text, without byte order mark; it holds neither NUL nor a surrogate, and is not blank."""
    if len(data) > thresholds.MAX_FILE_BYTES:
        return Rejection(Reason.TOO_LARGE, f"more than {thresholds.MAX_FILE_BYTES} bytes")
    if (nul := data.find(b"\0")) >= 0:
        early = nul < thresholds.GIT_BINARY_PREFIX
        return Rejection(Reason.BINARY if early else Reason.NUL_BYTE, f"NUL at byte {nul}")
    controls = len(data) - len(data.translate(None, CONTROLS))
    if controls > thresholds.MAX_CONTROL_SHARE * len(data):
        return Rejection(Reason.BINARY, f"{controls} control characters in {len(data)} bytes")
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as exc:
        return Rejection(Reason.NOT_UTF8, f"{exc.reason} at byte {exc.start}")
    if not text or text.isspace():
        return Rejection(Reason.EMPTY, f"{len(data)} bytes")
    return text
