"""From bytes to a judgement, in two looks, both pure: the same calls serve the worker, the CLI and Ray.

The first look, at every file: decode → language → filters → secrets → address → benchmarks → score.
The second, at what deduplication keeps: parse, which is dear → units.
"""

from services.processor.reasons import Reason
from services.processor.stages import (
    decode,
    dedup,
    filters,
    language,
    licence,
    minhash,
    score,
    secrets,
    units,
    words,
)
from services.processor.stages.decontaminate import Benchmarks
from services.processor.values import Code, Draft, Judgement, Parsed, Redaction, Rejection


def judge_path(path: str) -> Rejection | None:
    """A refusal that the name alone justifies: such a file is never opened."""
    return language.refuse_by_name(path) or filters.refuse_by_name(path)


def judge(path: str, data: bytes, benchmarks: Benchmarks) -> Judgement:
    """What becomes of a file with these bytes. Never raises, whatever the bytes."""
    if refused := judge_path(path):
        return Judgement(None, refused=refused)
    text = decode.decode(data)
    if isinstance(text, Rejection):
        return Judgement(None, refused=text)
    spoken = language.detect(path, text)
    if isinstance(spoken, Rejection):
        return Judgement(None, refused=spoken)
    code = _code(path, spoken, text)
    if refused := filters.refuse(code):
        return Judgement(spoken, refused=refused)
    grams = _grams(code)
    if item := benchmarks.match(text, spoken, grams):
        return Judgement(spoken, refused=Rejection(Reason.CONTAMINATED, item))
    redacted = secrets.redact(text)
    if redacted.redactions:
        code = _code(path, spoken, redacted.text)
        grams = _grams(code)
    return Judgement(spoken, _draft(code, grams, redacted.redactions))


def parse(spoken: str, text: str) -> Parsed:
    """The units of a text in this language, or why its parser does not accept it."""
    found = units.split(spoken, text)
    return Parsed(refused=found) if isinstance(found, Rejection) else Parsed(found)


def _code(path: str, spoken: str, text: str) -> Code:
    return Code(path, spoken, text, text.encode(), text.splitlines())


def _grams(code: Code) -> words.Hashes:
    return words.ngrams(words.hashes_of(code.figures.folded))


def _draft(code: Code, grams: words.Hashes, redactions: tuple[Redaction, ...]) -> Draft:
    return Draft(
        sha256=dedup.address(code.data),
        language=code.language,
        text=code.text,
        size_bytes=len(code.data),
        lines=len(code.lines),
        score=score.score(code),
        bands=minhash.keys_of(grams),
        licence=licence.of_file(code.text),
        redactions=redactions,
    )
