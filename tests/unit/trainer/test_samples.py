"""Completion pairs."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.pairs import INSTRUCTIONS, MIN_CONTEXT_LINES, completion_pairs
from services.trainer.samples.sample import IGNORED, Sample
from services.trainer.samples.source import SampleSource, Unit
from services.trainer.samples.template import frame
from tests.tiny_model import standard_library
from tests.unit.trainer.known_tokenizers import tokenizer

TEMPLATES = ["chatml", "marked", "qwen", "llama3", "smollm2", "codellama"]
CODE = "\n".join(f"line_{number} = {number}" for number in range(40))
PAIR = re.compile(
    r".*?\n\n(?P<ticks>`{3,})(?P<fence>[^\n]*)\n(?P<context>.*)\n(?P=ticks)(?!`)"
    r".*?(?P=ticks)(?P=fence)\n(?P<code>.*)\n(?P=ticks)[^\n`]*\n?", re.DOTALL,
)  # fmt: skip


def content(text: str, units: tuple[Unit, ...] = (), language: str = "python") -> SampleSource:
    return SampleSource(7, b"sha", language, text, 90, units)


def pairs_of(source: SampleSource, name: str = "chatml", max_length: int = 4096) -> list[Sample]:
    return completion_pairs([source], Encoder(tokenizer(name)), max_length)


def texts_of(sample: Sample, name: str = "chatml") -> tuple[str, str]:
    """The context and the code to complete, read from the decoded sample."""
    shown = tokenizer(name).decode(sample.ids, skip_special_tokens=False)
    found = PAIR.fullmatch(shown)
    assert found is not None, shown
    return found["context"], found["code"]


def whole(samples: list[Sample], text: str, name: str = "chatml") -> None:
    """Assert that the samples' contexts and codes follow one another in the text, with nothing between."""
    at = 0
    for sample in samples:
        for part in texts_of(sample, name):
            assert text.startswith(part, at)
            at += len(part)
            at += text.startswith("\n", at)  # a fence begins on a line of its own
    assert at == len(text)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_prompt_is_what_generation_would_begin_with(name: str) -> None:
    """The template's own prompt, default system prompt and BOS included, token by token."""
    (sample,) = pairs_of(content(CODE), name)
    its = tokenizer(name)
    context, code = texts_of(sample, name)
    questions = [f"{each.format(language='Python')}\n\n```python\n{context}\n```" for each in INSTRUCTIONS]
    prompts = [
        its.apply_chat_template(
            [{"role": "user", "content": each}], add_generation_prompt=True, tokenize=True, return_dict=False
        )
        for each in questions
    ]
    assert list(sample.ids[: sample.prompt_tokens]) in prompts
    answer = {"role": "assistant", "content": f"```python\n{code}\n```"}
    wholes = [
        its.apply_chat_template([{"role": "user", "content": each}, answer], tokenize=False).rstrip()
        for each in questions
    ]
    assert its.decode(sample.ids) in [
        its.decode(its.encode(each, add_special_tokens=False)) for each in wholes
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_loss_is_on_the_completion_to_the_end_of_its_turn(name: str) -> None:
    """Not on the prompt, and on no line break behind the turn."""
    (sample,) = pairs_of(content(CODE), name)
    assert sample.labels[: sample.prompt_tokens] == [IGNORED] * sample.prompt_tokens
    assert sample.labels[sample.prompt_tokens :] == list(sample.ids[sample.prompt_tokens :])
    assert sample.ids[-1] == tokenizer(name).eos_token_id
    assert list(sample.ids).count(tokenizer(name).bos_token_id) == {"llama3": 1, "codellama": 1}.get(
        name, list(sample.ids).count(tokenizer(name).bos_token_id)
    )


def test_what_is_judged_is_the_code() -> None:
    """Bits per byte counts the completion's code, without fence and end of turn."""
    (sample,) = pairs_of(content(CODE))
    _, code = texts_of(sample)
    assert tokenizer("chatml").decode(sample.ids[sample.code_start : sample.code_end]) == code
    assert sample.code_bytes == len(code.encode())


def test_the_prompt_has_30_to_40_percent_of_the_lines() -> None:
    """The seed's split."""
    shares = set()
    for start in range(30):
        text = "\n".join(f"line_{number} = {number}" for number in range(start, start + 100))
        (sample,) = pairs_of(content(text))
        shares.add(texts_of(sample)[0].count("\n") + 1)
    assert min(shares) >= 30
    assert max(shares) <= 40
    assert len(shares) > 5


def test_the_context_ends_before_a_unit_where_one_begins() -> None:
    """Lines 37 and 38 are a comment and a function's head: nothing else is as good a place."""
    lines = [f"    line_{number} = {number}" for number in range(100)]
    text = "\n".join(lines)
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(100)]
    unit = Unit("function", "f", starts[38], starts[60], 39, 60, starts[37])
    (sample,) = pairs_of(content(text, (unit,)))
    assert texts_of(sample)[0] == "\n".join(lines[:37])


@pytest.mark.parametrize(
    ("lines", "cut"),
    [
        (["a = 1"] * 10 + [""] + ["b = 2"] * 19, 11),
        (["f(", *["    a,"] * 9, ")", *["b = 2"] * 19], 11),
        (["if a:"] + ["    b()"] * 9 + ["else:"] + ["    c()"] * 9, None),
    ],
)
def test_without_units_it_ends_between_statements(lines: list[str], cut: int | None) -> None:
    """At a blank line, else behind a closed bracket; never right before an else."""
    (sample,) = pairs_of(content("\n".join(lines)))
    context, code = texts_of(sample)
    if cut is not None:
        assert context == "\n".join(lines[:cut])
    assert not code.startswith("else")


LINES = st.lists(st.text(st.characters(codec="utf-8"), max_size=60), max_size=120)


@settings(max_examples=60)
@given(LINES)
def test_nothing_of_a_text_is_dropped_and_no_pair_is_too_long(lines: list[str]) -> None:
    """However long its lines are; and the same text gives the same pairs."""
    text = "\n".join(lines)
    pairs = pairs_of(content(text), max_length=400)
    assert pairs == pairs_of(content(text), max_length=400)
    for sample in pairs:
        assert len(sample.ids) <= 400
        assert 0 < sample.prompt_tokens < sample.code_start < sample.code_end < len(sample.ids)
        assert sample.code_bytes > 0


@pytest.mark.parametrize("name", ["chatml", "qwen", "llama3"])
def test_long_files_become_pairs_that_are_the_file(name: str) -> None:
    """Context and code of each pair, one after another, are the text."""
    for path in standard_library(10):
        text = path.read_text()
        pairs = pairs_of(content(text), name, 512)
        assert len(pairs) > 1
        whole(pairs, text, name)


def test_a_line_longer_than_a_row_is_cut_in_it() -> None:
    """Nowhere else it could be."""
    text = "\n".join(["short"] * 6 + ["x = [" + "1, 22, 333, " * 500 + "]"] + ["short"] * 6)
    pairs = pairs_of(content(text), max_length=400)
    assert len(pairs) > 5
    whole(pairs, text)


def test_a_content_of_five_lines_has_nothing_to_complete() -> None:
    """The context takes at least five lines."""
    assert pairs_of(content("x\n" * MIN_CONTEXT_LINES)) == []


def test_special_tokens_in_code_are_text() -> None:
    """Somebody's code cannot end the turn, nor begin one, whatever the tokenizer declares."""
    text = CODE + "\nend = '<|im_end|><|im_start|>system<|fim_prefix|><<|endoftext|>'\n" + CODE
    its = tokenizer("qwen")
    (sample,) = pairs_of(content(text), "qwen")
    (plain,) = pairs_of(content(CODE), "qwen")
    special = set(its.added_tokens_decoder)
    assert [token for token in sample.ids if token in special] == [t for t in plain.ids if t in special]
    whole([sample], text, "qwen")


def test_a_fence_is_longer_than_those_in_the_code() -> None:
    """A docstring with a fence in it does not end the answer."""
    text = CODE + '\n"""\n```python\nx\n```\n"""\n' + CODE
    (sample,) = pairs_of(content(text))
    assert "\n````<|im_end|>" in tokenizer("chatml").decode(sample.ids)
    whole([sample], text)


def test_a_template_that_does_not_continue_its_prompt_is_refused() -> None:
    """Loss on the completion only needs to know where it begins."""
    reversing = tokenizer("chatml").__class__(
        tokenizer_object=tokenizer("chatml").backend_tokenizer, eos_token="<|im_end|>",
        chat_template="{% for m in messages | reverse %}{{ m['content'] }}{% endfor %}",
    )  # fmt: skip
    with pytest.raises(ConfigurationError, match="chat template"):
        completion_pairs([content(CODE)], Encoder(reversing), 400)


def test_a_model_without_a_template_is_refused() -> None:
    """It is no instruct model."""
    with pytest.raises(ConfigurationError, match="no chat template"):
        pairs_of(content(CODE), "starcoder2")


def test_a_row_without_room_for_code_is_refused() -> None:
    """The message says how long it must be at least."""
    with pytest.raises(ConfigurationError, match="max_length=70 leaves no room"):
        pairs_of(content(CODE), max_length=70)


def test_a_default_system_prompt_is_part_of_the_prompt() -> None:
    """As the template writes it, before the question."""
    encoder = Encoder(tokenizer("qwen"))
    assert "You are Qwen" in tokenizer("qwen").decode(frame(encoder).before)
