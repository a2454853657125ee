"""What holds of judging and parsing for any bytes under any name."""

import hashlib
import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.core.settings import PROJECT
from services.processor.judge import judge, parse
from services.processor.judging import Judge
from services.processor.reasons import Reason
from services.processor.stages import minhash, units
from services.processor.stages.decontaminate import Benchmarks
from services.processor.stages.score import RAMPS
from services.processor.values import Draft, Judgement, Parsed, Rejection
from tests.unit.processor import hostile_texts

NO_BENCHMARKS = Benchmarks.of(())
LANGUAGES = sorted(hostile_texts.EXTENSIONS)
FUNCTION = (
    "def count_apples(shelf, limit):\n"
    '    """How many apples lie on the shelf."""\n'
    "    if limit < 0:\n"
    '        raise ValueError("limit must not be negative")\n'
    "    return min(len(shelf), limit)\n"
)
PIECES = st.sampled_from(
    [
        FUNCTION,
        FUNCTION.replace("apples", "pears"),
        "class Shelf {\n  int count(int limit) {\n    return 1;\n  }\n}\n",
        "fn count(shelf: &[u8]) -> usize {\n    shelf.len()\n}\n",
        "func Count(s []int) int {\n\treturn len(s)\n}\n",
        'token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"\n',
        "password: 'hunter2hunter2X9'\n",
        "mail someone@company.com\n",
        "host = 203.0.113.77\n",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "MIIEpAIBAAKCAQEA7bq5cXkZ0Y3vX1mPq\n" * 4,
        "-----END RSA PRIVATE KEY-----\n",
        "# SPDX-License-Identifier: MIT\n",
        "\u202e",
        "\u2028",
        "\x0c",
        "\r",
        "\r\n",
        "\x85",
        "é",
        "\U0001f600",
        "\ufeff",
        "\x1b[2J",
        '"""',
        "'",
        "/*",
        "{",
        ")",
        "\\",
        "\t",
        "\n\n\n",
    ]
)
CODE = st.lists(PIECES, min_size=1, max_size=25).map("".join)
NAMES = st.sampled_from([f"a.{extension}" for extension in hostile_texts.EXTENSIONS.values()])
ANY_NAMES = st.text(max_size=40) | NAMES
ANY_BYTES = st.binary(max_size=500) | CODE.map(str.encode) | st.tuples(CODE, st.binary(max_size=9)).map(
    lambda both: both[0].encode() + both[1]
)  # fmt: skip


def drafted(path: str, text: str) -> Draft | None:
    return judge(path, text.encode(), NO_BENCHMARKS).draft


@settings(max_examples=250)
@given(ANY_NAMES, ANY_BYTES)
@example("a.py", b"\xed\xa0\x80" * 30)
@example("a.py", b"\xef\xbb\xbf" + FUNCTION.encode())
@example("\ud800.py", FUNCTION.encode())
@example("a\0.py", FUNCTION.encode())
def test_any_file_is_a_draft_or_a_refusal(path: str, data: bytes) -> None:
    """Nothing raises; the answer can be sent, and what is stored of it holds neither NUL nor surrogate."""
    judgement = judge(path, data, NO_BENCHMARKS)
    assert (judgement.draft is None) != (judgement.refused is None)
    if judgement.refused is not None:
        assert judgement.refused.detail
        if path.isprintable():  # a walk gives no other paths: see test_walk.py
            storable(judgement.refused.detail)
        return
    draft = judgement.draft
    storable(draft.text)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(judgement), type=Judgement) == judgement
    assert draft.sha256 == hashlib.sha256(draft.text.encode()).digest()
    assert draft.size_bytes == len(draft.text.encode())
    assert draft.lines == len(draft.text.splitlines())
    assert draft.language in hostile_texts.EXTENSIONS


def storable(text: str) -> None:
    assert "\0" not in text
    text.encode()


@settings(max_examples=150)
@given(NAMES, CODE)
def test_a_draft_is_consistent(path: str, text: str) -> None:
    """Points make up the score, each within its most; redactions lie in the text; 14 band keys or none."""
    draft = drafted(path, text)
    if draft is None:
        return
    assert draft.score.value == sum(draft.score.points.values())
    assert 0 <= draft.score.value <= 100
    assert all(0 <= points <= RAMPS[reason].most for reason, points in draft.score.points.items())
    assert all(1 <= redaction.line <= draft.text.count("\n") + 1 for redaction in draft.redactions)
    assert draft.bands is None or len(draft.bands) == 8 * minhash.BANDS == 112


@settings(max_examples=150)
@given(NAMES, CODE)
@example("a.py", FUNCTION + 'password = 3ssword = "kX93mmQ011zz"\n')
def test_judging_what_was_stored_changes_nothing(path: str, text: str) -> None:
    """The same address again, nothing left to redact, unless it is refused."""
    draft = drafted(path, text)
    again = draft and drafted(path, draft.text)
    if draft is None or again is None:
        return
    assert (again.sha256, again.redactions) == (draft.sha256, ())
    assert (again.bands, again.score) == (draft.bands, draft.score)


@settings(max_examples=250)
@given(st.sampled_from(LANGUAGES), CODE | st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_units_lie_in_their_text(language: str, text: str) -> None:
    """Within its bytes and lines, in order, with a name, their comment before them."""
    split = units.split(language, text)
    if isinstance(split, Rejection):
        storable(split.detail)
        return
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Parsed(split)), type=Parsed) == Parsed(split)
    data = text.encode()
    for unit in split:
        assert 0 <= unit.comment_byte <= unit.start_byte < unit.end_byte <= len(data)
        assert 1 <= unit.start_line <= unit.end_line <= data.count(b"\n") + 1
        assert unit.name
        storable(unit.name)
        data[unit.start_byte : unit.end_byte].decode()
    assert [unit.start_byte for unit in split] == sorted(unit.start_byte for unit in split)


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_made_to_be_slow_are_not(language: str) -> None:
    """Three kilobytes of each end in an answer, in every language."""
    for name, text in hostile_texts.texts(3_000):
        if name in hostile_texts.DEADLY.get(language, ()):
            continue
        answer = judge(f"a.{hostile_texts.EXTENSIONS[language]}", text.encode(), NO_BENCHMARKS)
        assert (answer.draft is None) != (answer.refused is None)
        assert isinstance(parse(language, text), Parsed)


def test_a_text_that_kills_its_parser_harms_no_other() -> None:
    """It is refused for it; the texts around it keep their units."""
    deadly = [
        (language, dict(hostile_texts.texts(8_000))[name])
        for language, names in hostile_texts.DEADLY.items()
        for name in names
    ]
    judge = Judge(None, decontaminate=False)
    try:
        first, *refused, last = judge.parse([("python", FUNCTION), *deadly, ("python", FUNCTION)])
    finally:
        judge.close()
    assert [unit.name for unit in first.units] == [unit.name for unit in last.units] == ["count_apples"]
    assert {answer.refused and answer.refused.reason for answer in refused} <= {
        Reason.JUDGE_CRASHED,
        Reason.SYNTAX_ERROR,
    }


SAMPLES = """
import msgspec, sys
from services.processor.stages.decontaminate import Benchmarks
from services.processor.judge import judge, parse
from tests.unit.processor.test_properties import FUNCTION
secret = 'password = "kX93-mmQ0-11zz"  # someone@company.com\\n'
for number in range(3):
    judged = judge("a.py", (FUNCTION * (number + 1) + secret).encode(), Benchmarks.of(()))
    sys.stdout.buffer.write(msgspec.msgpack.encode([judged, parse("python", FUNCTION)]))
"""


def test_two_processes_come_to_the_same() -> None:
    """Whatever their hash seed: other hosts must find what this one stored."""
    paths = os.pathsep.join([str(PROJECT), *sys.path])
    answers = [
        subprocess.run(
            [sys.executable, "-c", SAMPLES],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert answers[0] == answers[1]
    assert len(answers[0]) > 500
