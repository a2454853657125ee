"""Units of any text in any language: spans that lie in it, or a reason."""

import sys

import atheris
import harness

sys.path.insert(0, harness.PROJECT)
with atheris.instrument_imports(include=["services.processor"]):
    from services.processor.stages import units
    from services.processor.stages.grammars import GRAMMARS
    from services.processor.values import Rejection

LANGUAGES = sorted(GRAMMARS)


def target(data: bytes) -> None:
    if not data:
        return
    text = data[1:].decode("utf-8", "ignore").replace("\0", "")
    split = units.split(LANGUAGES[data[0] % len(LANGUAGES)], text)
    if isinstance(split, Rejection):
        return
    encoded = text.encode()
    for unit in split:
        assert 0 <= unit.comment_byte <= unit.start_byte < unit.end_byte <= len(encoded)
        assert 1 <= unit.start_line <= unit.end_line <= encoded.count(b"\n") + 1
        assert unit.name
        encoded[unit.start_byte : unit.end_byte].decode()


harness.run(target)
