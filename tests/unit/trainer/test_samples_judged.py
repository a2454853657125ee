"""Samples of which only some bytes count: judged tokens are those bytes, and no other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.judging import judged_tokens, moved
from services.trainer.samples.make import make
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource, Spans
from services.trainer.selection.held_out import union
from tests.unit.trainer.known_tokenizers import tokenizer

TEXT = "".join(f"def größe_{n}(wert):\n    return wert + {n}  # ✓ line {n}\n\n\n" for n in range(12))
DATA = TEXT.encode()
OBJECTIVES = ("completion_pairs", "cpt")
TOKENIZERS = ("qwen", "llama3")
HALF = "\ufffd"  # a span may cut a character in two
cuts = st.lists(st.integers(0, len(DATA)), min_size=0, max_size=8)


def judged(objective: str, name: str, spans: Spans | None, max_length: int = 4096) -> list[Sample]:
    recipe = Recipe(name="t", base_model="./model", objective=objective, max_length=max_length)  # type: ignore[arg-type]
    source = SampleSource(1, b"1", "python", TEXT, judged=spans)
    return make([source], recipe, tokenizer(name), purpose="judge", round_number=1)


def counted_bytes(sample: Sample, name: str) -> bytes:
    ids = [token for start, end in sample.counted for token in sample.ids[start:end]]
    return tokenizer(name).decode(ids).encode()


@pytest.mark.parametrize("max_length", [4096, 300])
@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_all_bytes_judged_is_as_without(objective: str, name: str, max_length: int) -> None:
    """The same samples with the same bytes; every token of the code counts."""
    plain = judged(objective, name, None, max_length)
    whole = judged(objective, name, ((0, len(DATA)),), max_length)
    assert [list(sample.ids) for sample in whole] == [list(sample.ids) for sample in plain]
    assert [sample.counted for sample in whole] == [sample.counted for sample in plain]
    assert [sample.code_bytes for sample in whole] == [sample.code_bytes for sample in plain]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_judged_lines_are_counted_to_the_byte(objective: str, name: str) -> None:
    """A function in the second half of the file, without the white space around it."""
    start = DATA.index("def größe_9".encode())
    end = DATA.index(b"# \xe2\x9c\x93 line 9") + len("# ✓ line 9".encode())
    (sample,) = judged(objective, name, ((start, end),))
    assert counted_bytes(sample, name) == DATA[start:end]
    assert sample.code_bytes == end - start


@settings(max_examples=30)
@given(cuts, st.sampled_from(OBJECTIVES), st.sampled_from(TOKENIZERS), st.sampled_from([4096, 300]))
def test_no_byte_outside_is_counted(of_spans: list[int], objective: str, name: str, max_length: int) -> None:
    """However the spans lie; the rest are the same samples, less those with nothing judged."""
    spans = union(zip(sorted(of_spans)[::2], sorted(of_spans)[1::2], strict=False))
    made = judged(objective, name, spans, max_length)
    allowed = b"\0".join(DATA[start:end] for start, end in spans)
    for sample in made:
        assert sample.judged
        assert 0 < sample.code_bytes <= sum(end - start for start, end in spans)
        for start, end in sample.counted:
            assert sample.code_start <= start < end <= sample.code_end
            text = tokenizer(name).decode(sample.ids[start:end])
            assert text.strip(HALF).encode() in allowed
    plain = {tuple(sample.ids) for sample in judged(objective, name, None, max_length)}
    assert {tuple(sample.ids) for sample in made} <= plain


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_anything_judged_there_is_no_sample(objective: str) -> None:
    """Nor for spans that lie in what is given."""
    assert judged(objective, "qwen", ()) == []
    if objective == "completion_pairs":
        assert judged(objective, "qwen", ((0, 20),)) == []


def test_tokens_of_one_character_count_together() -> None:
    """Three tokens begin at the character at byte 1, which ends at 4."""
    starts = [0, 1, 1, 1, 4, 5]
    assert judged_tokens(starts, 6, ((1, 4),)) == (((1, 4),), 3)
    assert judged_tokens(starts, 6, ((1, 3),)) == ((), 0)
    assert judged_tokens(starts, 6, ((0, 6),), first=1) == (((1, 6),), 5)
    assert judged_tokens(starts, 6, ((0, 1), (4, 6))) == (((0, 1), (4, 6)), 3)


def test_spans_move_with_a_part_of_the_text() -> None:
    """What is before the part is cut off."""
    assert moved(((0, 5), (8, 20), (30, 31)), 10) == ((0, 10), (20, 21))
