"""Bytes to text, and text to language: strict UTF-8 or a reason, never an exception."""

import sys

import atheris
import harness

sys.path.insert(0, harness.PROJECT)
with atheris.instrument_imports(include=["services.processor"]):
    from services.processor.stages import decode, language
    from services.processor.values import Rejection


def target(data: bytes) -> None:
    path, data = harness.named(data)
    text = decode.decode(data)
    if isinstance(text, Rejection):
        return
    assert text.encode() in data
    assert "\0" not in text
    spoken = language.detect(path, text)
    assert isinstance(spoken, Rejection) or spoken == spoken.lower()


harness.run(target)
