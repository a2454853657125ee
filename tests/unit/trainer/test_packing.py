"""Packing documents into rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.packing import Row, collate, pack
from services.trainer.samples import IGNORED, Sample

LENGTH = 64


def sample(content_id: int, size: int) -> Sample:
    prompt = size // 3
    return Sample(content_id, tuple(range(size)), prompt, prompt, size, 1)


samples = st.lists(st.integers(2, LENGTH), max_size=60).map(
    lambda sizes: [sample(number, size) for number, size in enumerate(sizes)]
)


@given(samples)
def test_every_sample_is_in_exactly_one_row(given_samples: list[Sample]) -> None:
    """Nothing is dropped, nothing is seen twice."""
    packed = [one.content_id for row in pack(given_samples, LENGTH) for one in row.samples]
    assert sorted(packed) == [one.content_id for one in given_samples]


@given(samples)
def test_no_row_is_over_full(given_samples: list[Sample]) -> None:
    """A row holds at most its length, and no two rows would fit into one."""
    sizes = sorted(row.tokens for row in pack(given_samples, LENGTH))
    assert all(size <= LENGTH for size in sizes)
    assert len(sizes) < 2 or sizes[0] + sizes[1] > LENGTH


def test_a_sample_longer_than_a_row_is_refused() -> None:
    """It is the sample maker's work to cut."""
    with pytest.raises(ValueError, match="65 tokens"):
        pack([sample(1, LENGTH + 1)], LENGTH)


@given(samples.filter(bool), st.booleans())
def test_collated_rows_keep_ids_labels_and_positions(given_samples: list[Sample], flatten: bool) -> None:
    """Position ids start anew with every document; the loss is on completions and on nothing else."""
    rows = pack(given_samples, LENGTH)
    tensors = collate(rows, 0, flatten=flatten)
    positions = tensors["position_ids"].flatten().tolist()
    learned = sum(len(one.ids) - max(1, one.prompt_tokens) for one in given_samples)
    assert (tensors["labels"] != IGNORED).sum().item() == learned
    tokens = sum(row.tokens for row in rows)
    padding = 0 if flatten else sum(max(r.tokens for r in rows) - row.tokens > 0 for row in rows)
    assert positions.count(0) == len(given_samples) + padding
    if flatten:
        assert tensors["input_ids"].shape == (1, tokens)


def test_documents_of_a_row_do_not_see_one_another() -> None:
    """Logits of a packed document equal those of the document alone, in float32 within 1e-5."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=LENGTH, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    model = LlamaForCausalLM(config).eval()
    documents = [sample(1, 20), sample(2, 30)]
    inputs = collate([Row(tuple(documents))], 0)
    inputs.pop("labels")
    with torch.no_grad():
        together = model(**inputs, use_cache=False).logits[0]
        apart = torch.cat([model(torch.tensor([one.ids]), use_cache=False).logits[0] for one in documents])
    assert torch.allclose(together, apart, atol=1e-5)
