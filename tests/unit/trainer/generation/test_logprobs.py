"""What is recorded of the tokens while they are written is what the model says of them when it reads them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from services.trainer import generation
from services.trainer.engine.compute import Compute
from services.trainer.generation import Completion, Request, graphs
from services.trainer.model.locate import Source, load_tokenizer
from tests.tiny_model import make
from tests.unit.trainer.engine import tiny

ROUNDING = {"atol": 2e-5, "rtol": 1e-4}  # of float32 sums in another order


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tokenizer(Source(str(make(tmp_path_factory.mktemp("tiny"))), None))


@pytest.fixture(scope="module")
def model() -> Any:
    """One token in fifty ends a text."""
    adapted = tiny.adapted("qwen2")
    Compute(adapted)
    adapted.get_base_model().generation_config.eos_token_id = list(range(0, tiny.VOCABULARY, 50))
    return adapted


@pytest.fixture(params=["transformers", "graphs"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of writing; on the CPU nothing is captured, and the buffers are the same."""
    monkeypatch.setattr(graphs, "DEVICES", ("cpu",) if request.param == "graphs" else ())
    monkeypatch.setattr(graphs, "COLUMNS", 16)
    return str(request.param)


def prompts(count: int) -> list[list[int]]:
    chosen = random.Random(11)
    return [
        [chosen.randrange(1, tiny.VOCABULARY) for _ in range(chosen.randint(1, 30))] for _ in range(count)
    ]


def forced(model: Any, prompt: Sequence[int], ids: Sequence[int], temperature: float) -> torch.Tensor:
    """Log-probabilities of the ids behind the prompt, all read at once."""
    model.eval()
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *ids]]), use_cache=False).logits[0].float()
    before = logits[len(prompt) - 1 : -1] / temperature
    return before.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).squeeze(1)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_they_are_those_of_a_forward_over_prompt_and_answer(
    model: Any, tokenizer: Any, temperature: float
) -> None:
    """Of rows of all lengths that come and go in the batch, the tokens that end them among them."""
    asked = prompts(20)
    request = Request(18, temperature=temperature, n=2, seed=5, logprobs=True)
    found = generation.complete(model, tokenizer, asked, request, turn_tokens=5)
    ended = [each.end is not None for row in found for each in row]
    assert 0 < sum(ended) < len(ended)
    for prompt, row in zip(asked, found, strict=True):
        for each in row:
            assert each.logprobs is not None
            expected = forced(model, prompt, each.action, temperature or 1.0)
            torch.testing.assert_close(torch.tensor(each.logprobs), expected, **ROUNDING)


@pytest.mark.usefixtures("way")
def test_of_top_p_they_say_nothing(model: Any, tokenizer: Any) -> None:
    asked = prompts(3)
    request = Request(6, temperature=1.0, top_p=0.5, seed=5, logprobs=True)
    for prompt, (each,) in zip(asked, generation.complete(model, tokenizer, asked, request), strict=True):
        torch.testing.assert_close(
            torch.tensor(each.logprobs), forced(model, prompt, each.action, 1.0), **ROUNDING
        )


@pytest.mark.usefixtures("way")
def test_what_is_written_is_the_same_with_them(model: Any, tokenizer: Any) -> None:
    request = Request(15, temperature=1.0, n=2, seed=9)
    plain = generation.complete(model, tokenizer, prompts(12), request)
    found = generation.complete(model, tokenizer, prompts(12), replace(request, logprobs=True))
    assert [[replace(each, logprobs=None) for each in row] for row in found] == plain


def test_an_end_token_belongs_to_what_was_chosen(model: Any, tokenizer: Any) -> None:
    found = generation.complete(model, tokenizer, prompts(20), Request(20, temperature=1.0, seed=1))
    written = [each for (each,) in found]
    assert {each.finished for each in written} == {True, False}
    for each in written:
        assert each.action == ((*each.ids, each.end) if each.finished else each.ids)


def test_a_text_that_is_cut_ends_with_the_token_that_a_stop_is_complete_in(
    model: Any, tokenizer: Any
) -> None:
    """A turn is written before it is looked at: its other tokens are nobody's choice."""
    prompt, whole = unfinished(model, tokenizer)
    stop = whole.text[10:12]
    request = Request(30, stop=(stop,), logprobs=True)
    (cut,) = generation.complete(model, tokenizer, [prompt], request, turn_tokens=30)[0]
    assert stop in decoded(tokenizer, prompt, cut.ids)
    assert stop not in decoded(tokenizer, prompt, cut.ids[:-1])
    assert cut.logprobs is not None
    assert len(cut.logprobs) == len(cut.ids)


def test_results_that_are_kept_are_the_same_with_them() -> None:
    """They are kept by the request's words."""
    assert repr(Request(3, logprobs=True)) == repr(Request(3))


def unfinished(model: Any, tokenizer: Any) -> tuple[list[int], Completion]:
    asked = prompts(20)
    found = generation.complete(model, tokenizer, asked, Request(30))
    return next((prompt, each) for prompt, (each,) in zip(asked, found, strict=True) if not each.finished)


def decoded(tokenizer: Any, prompt: Sequence[int], ids: Sequence[int]) -> str:
    tail = list(prompt[-4:])
    text, before = (
        tokenizer.decode(each, clean_up_tokenization_spaces=False) for each in ([*tail, *ids], tail)
    )
    return str(text[len(before) :])
