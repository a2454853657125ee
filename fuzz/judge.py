"""The whole of both looks, on any bytes under any name."""

import hashlib
import sys

import atheris
import harness

sys.path.insert(0, harness.PROJECT)
with atheris.instrument_imports(include=["services.processor"]):
    from services.processor.judge import judge, parse
    from services.processor.stages.decontaminate import Benchmarks

BENCHMARKS = Benchmarks.load(None)


def target(data: bytes) -> None:
    path, data = harness.named(data)
    judged = judge(path, data, BENCHMARKS)
    assert (judged.draft is None) != (judged.refused is None)
    if judged.draft is None:
        return
    draft = judged.draft
    assert "\0" not in draft.text
    assert draft.sha256 == hashlib.sha256(draft.text.encode()).digest()
    assert draft.bands is None or len(draft.bands) == 112
    judge(path, draft.text.encode(), BENCHMARKS)
    parse(draft.language, draft.text)


harness.run(target)
