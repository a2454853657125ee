"""Written over keys and values that stay in their place, completions are what they are without."""

import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer import generation
from services.trainer.engine.compute import Compute
from services.trainer.generation import Request, graphs
from services.trainer.model.locate import Source, load_tokenizer
from tests.tiny_model import make
from tests.unit.trainer.engine import tiny


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tokenizer(Source(str(make(tmp_path_factory.mktemp("tiny"))), None))


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def model(request: pytest.FixtureRequest) -> Any:
    adapted = tiny.adapted(request.param)
    Compute(adapted)
    return adapted


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU too, where nothing is captured, and in buffers that have to grow."""
    monkeypatch.setattr(graphs, "DEVICES", ("cpu",))
    monkeypatch.setattr(graphs, "COLUMNS", 16)
    monkeypatch.setattr(graphs, "ROWS", 2)


asked = st.lists(
    st.lists(st.integers(1, tiny.VOCABULARY - 1), min_size=1, max_size=30), min_size=1, max_size=20
)


@settings(max_examples=10)
@given(
    prompts=asked,
    tokens=st.integers(1, 20),
    temperature=st.sampled_from([0.0, 1.0]),
    n=st.integers(1, 3),
    turn=st.integers(1, 9),
)
def test_the_same_is_written(
    model: Any, tokenizer: Any, prompts: list[list[int]], tokens: int, temperature: float, n: int, turn: int
) -> None:
    """Greedily and drawn, whatever comes and goes in the batch."""
    request = Request(tokens, temperature=temperature, top_p=0.9, n=n, seed=3, graphs=False)
    plain = generation.complete(model, tokenizer, prompts, request, turn_tokens=turn)
    request = replace(request, graphs=True)
    assert generation.complete(model, tokenizer, prompts, request, turn_tokens=turn) == plain


def prompts(count: int) -> list[list[int]]:
    chosen = random.Random(5)
    return [
        [chosen.randrange(1, tiny.VOCABULARY) for _ in range(chosen.randint(1, 40))] for _ in range(count)
    ]


def test_transformers_does_not_write_beside_it(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model.get_base_model(), "generate", None, raising=False)
    assert len(generation.complete(model, tokenizer, prompts(5), Request(9, graphs=True))) == 5


def test_what_cannot_be_captured_is_written_without_and_said_once(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    plain = generation.complete(model, tokenizer, prompts(20), Request(12, graphs=False))
    monkeypatch.setattr(graphs.Steps, "__init__", refuse)
    assert generation.complete(model, tokenizer, prompts(20), Request(12, graphs=True)) == plain
    (said,) = [record for record in caplog.records if record.name == graphs.__name__]
    assert "not permitted when stream is capturing" in said.getMessage()


def test_when_memory_runs_out_fewer_rows_are_written_at_once(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, rows = graphs.Steps.__init__, []

    def too_many(self: graphs.Steps, model: Any, batch: Any, *room: int) -> None:
        rows.append(len(batch.ids))
        if len(batch.ids) > 4:
            raise torch.OutOfMemoryError
        made(self, model, batch, *room)

    plain = generation.complete(model, tokenizer, prompts(12), Request(12, graphs=False))
    monkeypatch.setattr(graphs.Steps, "__init__", too_many)
    assert generation.complete(model, tokenizer, prompts(12), Request(12, graphs=True)) == plain
    assert rows[0] == 12
    assert max(rows[rows.index(3) :]) <= 4


def test_nothing_of_it_is_used_where_it_is_declined_or_there_are_no_graphs(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs.Turns, "write", None)
    assert generation.complete(model, tokenizer, prompts(2), Request(3, graphs=False))
    monkeypatch.setattr(graphs, "DEVICES", ("cuda",))
    assert generation.complete(model, tokenizer, prompts(2), Request(3, graphs=True))


def test_results_that_are_kept_are_the_same_with_it() -> None:
    """They are kept by the request's words."""
    assert repr(Request(3, graphs=False)) == repr(Request(3))


def test_buffers_that_are_kept_serve_the_next_call(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other prompts and after weights have changed in their place, once there is room for all."""
    made, sizes = graphs.Steps.__init__, []

    def counted(self: graphs.Steps, model: Any, batch: Any, *room: int) -> None:
        sizes.append(room)
        made(self, model, batch, *room)

    monkeypatch.setattr(graphs.Steps, "__init__", counted)
    kept = graphs.Turns(model.get_base_model())
    asked = prompts(12)
    generation.complete(model, tokenizer, asked, Request(12, seed=1, temperature=1.0), turns=kept)
    first = len(sizes)
    request = Request(12, seed=2, temperature=1.0)
    weight = next(each for name, each in model.named_parameters() if "lora_B" in name)
    with torch.no_grad():
        weight.add_(0.1)
    again = generation.complete(model, tokenizer, asked[:11], request, turns=kept)
    assert len(sizes) == first
    assert again == generation.complete(model, tokenizer, asked[:11], replace(request, graphs=False))
    with torch.no_grad():
        weight.sub_(0.1)


def test_room_is_made_for_all_that_may_be_written(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, columns = graphs.Steps.__init__, []

    def counted(self: graphs.Steps, model: Any, batch: Any, *room: int) -> None:
        columns.append(room[1])
        made(self, model, batch, *room)

    monkeypatch.setattr(graphs.Steps, "__init__", counted)
    generation.complete(model, tokenizer, [[3, 4, 5]], Request(50))
    assert columns == [64]


def test_what_is_kept_is_given_back(model: Any, tokenizer: Any) -> None:
    kept = graphs.Turns(model.get_base_model())
    assert not kept.forget()
    generation.complete(model, tokenizer, prompts(2), Request(3), turns=kept)
    assert kept.forget()
    assert not kept.forget()


def test_memory_that_is_kept_goes_before_rows_do(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, made, rows = graphs.Turns(model.get_base_model()), graphs.Steps.__init__, []
    generation.complete(model, tokenizer, [[3] * 100], Request(3), turns=kept)

    def none_beside_others(self: graphs.Steps, model: Any, batch: Any, *room: int) -> None:
        rows.append(len(batch.ids))
        if kept._kept:
            raise torch.OutOfMemoryError
        made(self, model, batch, *room)

    monkeypatch.setattr(graphs.Steps, "__init__", none_beside_others)
    asked = [[3] * 60 for _ in range(16)]
    plain = generation.complete(model, tokenizer, asked, Request(9, graphs=False))
    assert generation.complete(model, tokenizer, asked, Request(9), turns=kept) == plain
    assert rows == [16, 16]
