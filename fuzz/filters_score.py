"""Figures, limits and points of any text in any language."""

import sys

import atheris
import harness

sys.path.insert(0, harness.PROJECT)
with atheris.instrument_imports(include=["services.processor"]):
    from services.processor.stages import filters, score
    from services.processor.stages.languages import ALL
    from services.processor.values import Code

LANGUAGES = sorted(ALL)


def target(data: bytes) -> None:
    if not data:
        return
    text = data[1:].decode("utf-8", "ignore").replace("\0", "")
    code = Code("a", LANGUAGES[data[0] % len(LANGUAGES)], text, text.encode(), text.splitlines())
    filters.refuse(code)
    for limit in filters.LIMITS_OF[code.language]:  # also those behind the one that refuses
        getattr(code.figures, limit.figure)
    scored = score.score(code)
    assert 0 <= scored.value <= 100
    assert scored.value == sum(scored.points.values())


harness.run(target)
