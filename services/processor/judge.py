"""From bytes to a verdict: decode → language → filters → score → address, all pure.

The same call serves the worker and `ratchet explain`.
"""

from services.processor import decode, dedup, filters, language, score
from services.processor.values import Code, Content, Rejection


def judge_path(path: str) -> Rejection | None:
    """A refusal that the name alone justifies: such a file is never opened."""
    return language.refuse_by_name(path) or filters.refuse_by_name(path)


def judge(path: str, data: bytes) -> Content | Rejection:
    """What becomes of a file with these bytes. Never raises, whatever the bytes."""
    if refused := judge_path(path):
        return refused
    text = decode.decode(data)
    if isinstance(text, Rejection):
        return text
    spoken = language.detect(path, text)
    if isinstance(spoken, Rejection):
        return spoken
    code = Code(path, spoken, text, text.encode(), text.splitlines())
    if refused := filters.refuse(code):
        return refused
    return Content(
        sha256=dedup.address(code.data),
        language=code.language,
        text=code.text,
        bytes=len(code.data),
        lines=len(code.lines),
        score=score.score(code),
    )
