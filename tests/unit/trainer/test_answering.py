"""A model loaded to answer: as it was trained, streamed in pieces that stay, in the middle of code."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from services.core.errors import ConfigurationError
from services.trainer import publish
from services.trainer.answering import loading, question, writing
from services.trainer.answering.writing import Told
from services.trainer.generation import Request
from tests import tiny_model as tiny
from tests.published_adapter import Published, published

IDS = torch.arange(3, 40)[None]  # (1, T)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Published:
    home = tmp_path_factory.mktemp("home")
    return published(home, tiny.make(home / "model", qwen=True))


def asked(**fields: Any) -> dict[str, Any]:
    request = {"max_new_tokens": 12, "stop": []}
    return {"subject": "champion", "request": request, "prompt": "def f(", "chat": False, **fields}


def test_the_champion_is_not_its_base(made: Published) -> None:
    """Both on the same weights, the base's as they are in its folder."""
    base, _ = loading.load("base", made.settings)
    champion, tokenizer = loading.load("champion", made.settings)
    plain = AutoModelForCausalLM.from_pretrained(made.recipe.base_model)
    with torch.no_grad(), champion.disable_adapter():
        torch.testing.assert_close(base(IDS).logits, champion(IDS).logits)
        torch.testing.assert_close(base(IDS).logits, plain(IDS).logits, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        assert (champion(IDS).logits - plain(IDS).logits).abs().max() > 0.01
    assert not champion.training
    assert tokenizer.chat_template


def test_pieces_that_are_heard_are_the_answer(made: Published) -> None:
    heard: list[str] = []
    found = question.answered(asked(), made.settings, heard.append)
    assert "".join(heard) == found["completions"][0]["text"]
    assert len(heard) > 1
    assert found["completions"][0]["tokens"] == 12
    assert found["tokens_per_second"] > 0


def test_the_same_is_written_whether_anybody_listens(made: Published) -> None:
    listened = question.answered(asked(), made.settings, lambda _: None)
    assert listened["completions"] == question.answered(asked(), made.settings)["completions"]


def test_several_completions_are_drawn_by_the_seed(made: Published) -> None:
    request = {"max_new_tokens": 8, "stop": [], "n": 3, "temperature": 1.0, "seed": 5}
    found = [question.answered(asked(request=request), made.settings)["completions"] for _ in range(2)]
    assert found[0] == found[1]
    assert len({each["text"] for each in found[0]}) > 1


def test_the_recipe_says_whether_it_is_a_question(made: Published) -> None:
    """Completion pairs are asked in the chat template, which takes tokens of its own."""
    raw = question.answered(asked(), made.settings)
    chat = question.answered(asked(chat=None), made.settings)
    assert (raw["chat"], chat["chat"]) == (False, True)
    assert chat["prompt_tokens"] > raw["prompt_tokens"]


def test_what_is_between_two_texts_is_asked_for_with_the_tokenizers_own_tokens(made: Published) -> None:
    _, tokenizer = loading.load("base", made.settings)
    ids, end = writing.middle_ids(tokenizer, "a = 1\n", "b = 2\n", "it")
    text = "<|fim_prefix|>a = 1\n<|fim_suffix|>b = 2\n<|fim_middle|>"
    assert tokenizer.decode(ids) == text
    assert end is None
    found = question.answered(asked(prefix="a = 1\n", suffix="b = 2\n"), made.settings)
    assert found["prompt_tokens"] == len(ids)


def test_without_such_tokens_it_is_said_what_to_do(tmp_path: Path) -> None:
    other = published(tmp_path, tiny.make(tmp_path / "llama"))
    with pytest.raises(ConfigurationError, match="fill-in-the-middle tokens"):
        question.answered(asked(prefix="a", suffix="b"), other.settings)


def test_an_adapter_of_another_shape_is_refused(
    made: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(made.folder, tmp_path / "theirs")
    (folder / publish.MANIFEST).unlink()
    monkeypatch.setitem(tiny.SHAPE, "hidden_size", 32)
    other = published(tmp_path, tiny.make(tmp_path / "narrow"))
    with pytest.raises(ConfigurationError, match="does not fit base_model"):
        loading.load(str(folder), other.settings)


TEXTS = st.text(alphabet="ab\n\ufffd", max_size=20)


@given(TEXTS, st.lists(st.text(alphabet="ab\n", min_size=1, max_size=3), max_size=2), st.integers(1, 4))
def test_pieces_join_to_the_answer_whatever_ends_it(text: str, stop: list[str], step: int) -> None:
    """However the text grows, a piece that was told is never taken back."""
    request, heard = Request(1, stop=tuple(stop)), []
    told = Told(request, heard.append)
    for at in range(0, len(text), step):
        told.so_far(text[:at])
        if request.ending(text[:at]) is not None:
            break
    final = text[: request.ending(text)]
    told.all(final)
    assert "".join(heard) == final
