"""Redaction: as many lines as before, each finding on one of them, and nothing found the second time."""

import sys

import atheris
import harness

sys.path.insert(0, harness.PROJECT)
with atheris.instrument_imports(include=["services.processor"]):
    from services.processor.stages.secrets import redact


def target(data: bytes) -> None:
    text = data.decode("utf-8", "ignore").replace("\0", "")
    redacted = redact(text)
    lines = text.count("\n")
    assert redacted.text.count("\n") == lines, "a line was lost"
    assert all(1 <= found.line <= lines + 1 for found in redacted.redactions)
    assert redacted.redactions or redacted.text == text
    again = redact(redacted.text)
    assert again.text == redacted.text, "a second time finds more"


harness.run(target)
