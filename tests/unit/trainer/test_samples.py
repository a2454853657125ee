"""Completion pairs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.samples import IGNORED, MIN_CONTEXT_LINES, completion_pairs


class Characters:
    """A tokenizer of one token a character, with a ChatML template."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [ord(character) for character in text]

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: bool) -> str:
        turns = "".join(f"<{turn['role']}>{turn['content']}<end>" for turn in conversation)
        return turns + ("<assistant>" if options.get("add_generation_prompt") else "")


def text_of(ids: tuple[int, ...]) -> str:
    return "".join(map(chr, ids))


CODE = "\n".join(f"line_{number} = {number}" for number in range(40))


def test_the_prompt_has_30_to_40_percent_of_the_lines_and_no_loss() -> None:
    """The seed's split; only the completion is learned."""
    (sample,) = completion_pairs(7, CODE, "python", Characters(), 4096)
    prompt = text_of(sample.ids[: sample.prompt_tokens])
    assert 12 <= prompt.count("line_") <= 16
    assert sample.labels[: sample.prompt_tokens] == [IGNORED] * sample.prompt_tokens
    assert sample.labels[sample.prompt_tokens :] == list(sample.ids[sample.prompt_tokens :])


def test_prompt_and_code_together_are_the_content() -> None:
    """Bits per byte counts the completion's code, without fence and end of turn."""
    (sample,) = completion_pairs(7, CODE, "python", Characters(), 4096)
    code = text_of(sample.ids[sample.code_start : sample.code_end])
    context = text_of(sample.ids[: sample.prompt_tokens]).split("```python\n")[1].split("\n```")[0]
    assert f"{context}\n{code}" == CODE
    assert sample.code_bytes == len(code.encode())
    assert text_of(sample.ids[sample.code_end :]) == "\n```<end>"


@given(
    st.lists(
        st.text(
            st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"),
            max_size=60,
        ),
        max_size=120,
    )
)
def test_pairs_fit_and_are_the_same_every_time(lines: list[str]) -> None:
    """No pair is longer than a row; the same content gives the same pairs."""
    text = "\n".join(lines)
    pairs = list(completion_pairs(1, text, "python", Characters(), 400))
    assert pairs == list(completion_pairs(1, text, "python", Characters(), 400))
    for sample in pairs:
        assert len(sample.ids) <= 400
        assert 0 < sample.prompt_tokens <= sample.code_start < sample.code_end <= len(sample.ids)
        assert sample.code_bytes > 0 or sample.code_end == sample.code_start


def test_a_long_content_is_cut_into_pairs_in_order() -> None:
    """Every line is in some pair, none is dropped."""
    pairs = list(completion_pairs(1, CODE, "python", Characters(), 400))
    assert len(pairs) > 1
    seen = "".join(text_of(sample.ids) for sample in pairs)
    assert all(f"line_{number} = {number}" in seen for number in range(40))


def test_a_content_of_five_lines_has_nothing_to_complete() -> None:
    """The context takes at least five lines."""
    assert list(completion_pairs(1, "x\n" * MIN_CONTEXT_LINES, "python", Characters(), 400)) == []


def test_a_template_that_does_not_continue_its_prompt_is_refused() -> None:
    """Loss on the completion only needs to know where it begins."""

    class Reversing(Characters):
        def apply_chat_template(self, conversation: list[dict[str, str]], **options: bool) -> str:
            return super().apply_chat_template(conversation, **options)[::-1]

    with pytest.raises(ConfigurationError, match="chat template"):
        list(completion_pairs(1, CODE, "python", Reversing(), 400))
