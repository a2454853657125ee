"""Completions do not depend on what else is written at once, and end where they are told to."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from services.core.errors import ConfigurationError
from services.trainer import generation
from services.trainer.engine.compute import Compute
from services.trainer.generation import Completion, Request
from services.trainer.model.locate import Source, load_tokenizer
from tests.tiny_model import make
from tests.unit.trainer.engine import tiny


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tokenizer(Source(str(make(tmp_path_factory.mktemp("tiny"))), None))


@pytest.fixture(params=["llama", "qwen2"])
def model(request: pytest.FixtureRequest) -> Any:
    """With adapters, as the engine has them."""
    adapted = tiny.adapted(request.param)
    Compute(adapted)
    return adapted


def prompts(count: int, *, longest: int = 40) -> list[list[int]]:
    chosen = random.Random(3)
    return [
        [chosen.randrange(1, tiny.VOCABULARY) for _ in range(chosen.randint(1, longest))]
        for _ in range(count)
    ]


def by_hand(model: Any, prompt: Sequence[int], tokens: int, ends: set[int]) -> tuple[int, ...]:
    """The likeliest token each time, without cache, padding or neighbours."""
    ids = list(prompt)
    model.eval()
    with torch.no_grad():
        for _ in range(tokens):
            ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
            if ids[-1] in ends:
                return tuple(ids[len(prompt) : -1])
    return tuple(ids[len(prompt) :])


def test_a_batch_of_mixed_lengths_is_written_as_each_prompt_alone(model: Any, tokenizer: Any) -> None:
    asked = prompts(21)  # more than fit at once: some take the places of others
    found = generation.complete(model, tokenizer, asked, Request(max_new_tokens=20))
    ends = {tokenizer.eos_token_id, 0, 2}
    expected = [by_hand(model, prompt, 20, ends) for prompt in asked]
    assert [each.ids for (each,) in found] == expected
    assert len({len(ids) for ids in expected}) > 1


def test_memory_decides_how_many_rows_are_written_at_once_and_nothing_else(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    causal_lm = model.get_base_model()
    generate = causal_lm.generate
    monkeypatch.setattr(
        causal_lm, "generate", lambda **each: seen.append(len(each["input_ids"])) or generate(**each)
    )
    asked, request = prompts(9), Request(max_new_tokens=12)
    one_by_one = generation.complete(model, tokenizer, asked, request, memory_bytes=1)
    assert set(seen) == {1}
    assert generation.complete(model, tokenizer, asked, request) == one_by_one
    assert max(seen) == 9


def test_drawn_completions_are_the_same_whatever_is_drawn_beside_them(model: Any, tokenizer: Any) -> None:
    asked = prompts(6)
    request = Request(max_new_tokens=12, temperature=1.0, top_p=0.9, n=3, seed=7)
    found = generation.complete(model, tokenizer, asked, request)
    alone = [generation.complete(model, tokenizer, [each], request, memory_bytes=1)[0] for each in asked]
    assert found == alone
    assert len({each.ids for each in found[0]}) == 3
    other = generation.complete(model, tokenizer, asked, Request(12, temperature=1.0, top_p=0.9, n=3, seed=8))
    assert other != found


def test_when_memory_runs_out_half_as_many_rows_are_written_at_once(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    causal_lm = model.get_base_model()
    generate = causal_lm.generate
    asked, request = prompts(7), Request(max_new_tokens=20, temperature=0.8)
    expected = generation.complete(model, tokenizer, asked, request)

    def limited(**each: Any) -> Any:
        if len(each["input_ids"]) > 2:
            raise torch.OutOfMemoryError
        return generate(**each)

    monkeypatch.setattr(causal_lm, "generate", limited)
    assert generation.complete(model, tokenizer, asked, request) == expected


def unfinished(model: Any, tokenizer: Any) -> tuple[list[int], Completion]:
    """A prompt that the model goes on with for 30 tokens."""
    asked = prompts(20)
    found = generation.complete(model, tokenizer, asked, Request(max_new_tokens=30))
    return next((prompt, each) for prompt, (each,) in zip(asked, found, strict=True) if not each.finished)


def test_a_text_ends_before_the_first_stop_string(model: Any, tokenizer: Any) -> None:
    prompt, whole = unfinished(model, tokenizer)
    assert len(whole.ids) == 30
    stop = whole.text[10:12]
    (cut,) = generation.complete(model, tokenizer, [prompt], Request(30, stop=("\0\0", stop)))[0]
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finished
    assert len(cut.ids) < len(whole.ids)


def test_a_text_ends_where_the_request_says(model: Any, tokenizer: Any) -> None:
    request = Request(30, end=lambda text: 5 if len(text) > 8 else None)
    (cut,) = generation.complete(model, tokenizer, [unfinished(model, tokenizer)[0]], request)[0]
    assert len(cut.text) == 5


def test_a_text_that_the_model_ends_is_finished(model: Any, tokenizer: Any) -> None:
    prompt, whole = unfinished(model, tokenizer)
    first = whole.ids
    model.get_base_model().generation_config.eos_token_id = [first[3]]
    (found,) = generation.complete(model, tokenizer, [prompt], Request(max_new_tokens=20))[0]
    assert (found.ids, found.finished) == (first[: first.index(first[3])], True)


def test_no_prompts_no_completions(model: Any, tokenizer: Any) -> None:
    assert generation.complete(model, tokenizer, [], Request(max_new_tokens=4)) == []


def test_a_prompt_longer_than_the_context_is_an_error_with_both_figures(model: Any, tokenizer: Any) -> None:
    context = model.config.max_position_embeddings
    with pytest.raises(ConfigurationError, match=f"{context - 8} tokens and 20 are to be written.*{context}"):
        generation.complete(model, tokenizer, [[1] * (context - 8)], Request(max_new_tokens=20))
    with pytest.raises(ValueError, match="prompt 0 is empty"):
        generation.complete(model, tokenizer, [[]], Request(max_new_tokens=20))


def test_the_model_is_as_it_was_and_no_generator_moved(model: Any, tokenizer: Any) -> None:
    """Mode, attention and defaults come back, even when the listener raises, which goes through."""
    model.train()
    causal_lm = model.get_base_model()
    causal_lm.generation_config.repetition_penalty = 5.0
    state = torch.get_rng_state(), causal_lm.config._attn_implementation, causal_lm.generation_config

    def interrupt(done: int, total: int) -> None:
        raise InterruptedError(f"{done}/{total}")

    with pytest.raises(InterruptedError, match="0/2"):
        generation.complete(model, tokenizer, prompts(2), Request(30, temperature=1.0), on_done=interrupt)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state[0])
    assert (causal_lm.config._attn_implementation, causal_lm.generation_config) == state[1:]


def test_time_ends_what_is_being_written_and_what_waits(model: Any, tokenizer: Any) -> None:
    found = generation.complete(model, tokenizer, prompts(20), Request(30, seconds=0.0))
    assert max(len(each.ids) for (each,) in found) <= 8
    assert sum(each == Completion("", (), finished=False) for (each,) in found) == 4


def test_progress_counts_completions(model: Any, tokenizer: Any) -> None:
    heard: list[tuple[int, int]] = []
    request = Request(max_new_tokens=12, n=2)
    generation.complete(model, tokenizer, prompts(3), request, on_done=lambda *each: heard.append(each))
    assert heard[-1] == (6, 6)
    assert heard == sorted(heard)


def test_as_many_completions_of_a_prompt_as_were_counted(model: Any, tokenizer: Any) -> None:
    """What the first ones are does not depend on how many there are."""
    asked, request = prompts(3), Request(max_new_tokens=6, temperature=1.0, n=4, seed=2)
    found = generation.complete(model, tokenizer, asked, request, counts=[1, 4, 2])
    of_each = generation.complete(model, tokenizer, asked, request)
    assert found == [of_each[0][:1], of_each[1], of_each[2][:2]]


def test_a_row_is_heard_of_once_before_the_progress_that_counts_it(model: Any, tokenizer: Any) -> None:
    heard: dict[tuple[int, int], Completion] = {}
    behind: list[int] = []
    found = generation.complete(
        model, tokenizer, prompts(20), Request(max_new_tokens=12, n=2),
        on_row=heard.__setitem__,
        on_done=lambda done, _: behind.append(done - len(heard)),
    )  # fmt: skip
    assert [[heard[at, sample] for sample in range(2)] for at in range(20)] == found
    assert set(behind) == {0}
