"""A packed batch is its documents one by one: loss and gradients; and what small updates do."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from services.trainer import evaluate
from services.trainer.engine import optimizer as optimizers
from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.evaluate import ContentLoss
from services.trainer.packing import Row, pack
from tests.unit.trainer.engine import tiny

RELATIVE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def loss_and_gradients(compute: Compute, batches: list[list[Row]]) -> tuple[float, dict[str, torch.Tensor]]:
    """Summed over the batches."""
    trained = {name: one for name, one in compute.model.named_parameters() if one.requires_grad}
    compute.model.zero_grad()
    total = 0.0
    for rows in batches:
        loss = compute.loss(batch_of(rows, tiny.PAD, tiny.LENGTH))
        loss.backward()
        total += loss.item()
    return total, {name: one.grad.clone() for name, one in trained.items()}


@pytest.mark.parametrize("dtype", RELATIVE, ids=str)
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_packed_batch_is_its_documents_one_by_one(family: str, dtype: torch.dtype) -> None:
    """Loss and every gradient, relative to its size; adapters in float32 over a base of either type."""
    compute = Compute(tiny.adapted(family, dtype))
    compute.model.train()
    documents = tiny.samples(24)
    packed, gradients = loss_and_gradients(compute, [pack(documents, tiny.LENGTH)])
    alone, expected = loss_and_gradients(compute, [[Row((document,))] for document in documents])
    assert packed == pytest.approx(alone, rel=RELATIVE[dtype])
    together, apart = (
        torch.cat([one.flatten() for one in found.values()]) for found in (gradients, expected)
    )
    assert (together - apart).norm() <= RELATIVE[dtype] * apart.norm()
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        assert (gradient - expected[name]).norm() <= RELATIVE[dtype] * expected[name].norm(), name


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_what_is_before_a_document_does_not_change_its_loss(family: str) -> None:
    """The neighbour exchanged for another of the same length: not a bit differs."""
    compute = Compute(tiny.adapted(family))
    wanted, first, second = tiny.samples(3)
    first = type(first)(8, (5,) * 20, 0, 0, 20, 20)
    second = type(first)(9, (7,) * 20, 0, 0, 20, 20)
    found = [
        evaluate.losses(
            compute, [Row((neighbour, wanted))], rows_at_once=1, pad_id=tiny.PAD, longest=tiny.LENGTH
        )[0]
        for neighbour in (first, second)
    ]
    assert found[0].content_id == wanted.content_id
    assert found[0] == found[1]


def test_a_learning_rate_of_2e_5_moves_adapters_over_a_bf16_base() -> None:
    """Masters are float32: in bfloat16 the update would be rounded away (a step is 2e-5, a weight 1e-1)."""
    model = tiny.adapted(dtype=torch.bfloat16)
    compute = Compute(model)
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    before = {name: one.detach().clone() for name, one in trained.items()}
    optimizer = optimizers.make(trained, tiny.recipe(learning_rate=2e-5, weight_decay=0.0))
    model.train()
    rows = pack(tiny.samples(12), tiny.LENGTH)
    first = compute.loss(batch_of(rows, tiny.PAD, tiny.LENGTH))
    first.backward()
    optimizer.step()
    compute.weights_changed()
    for name, one in trained.items():
        moved = (one != before[name]).float().mean().item()
        rounded = before[name].bfloat16()
        lost = (one.detach().bfloat16() == rounded).float().mean().item()
        assert moved > 0.99, name
        assert lost > 0.5, name  # what bfloat16 masters would have kept of it


def old_losses(model: Any, rows: list[Row]) -> dict[int, tuple[float, int]]:
    """Each sample alone through the model's own attention and head: nats and right tokens, by content."""
    found: dict[int, tuple[float, int]] = {}
    for sample in (sample for row in rows for sample in row.samples):
        logits = model(torch.tensor([sample.ids]), use_cache=False).logits[0].float()
        wanted = torch.tensor(sample.ids[1:])
        nats = torch.nn.functional.cross_entropy(logits[:-1], wanted, reduction="none")
        right = logits[:-1].argmax(-1) == wanted
        summed, count = found.get(sample.content_id, (0.0, 0))
        for start, end in sample.judged or ((sample.code_start, sample.code_end),):
            summed += nats[start - 1 : end - 1].double().sum().item()
            count += int(right[start - 1 : end - 1].sum())
        found[sample.content_id] = summed, count
    return found


@pytest.mark.parametrize("rows_at_once", [1, 3, 100])
def test_evaluation_is_each_sample_alone(rows_at_once: int) -> None:
    """However many rows go through the model at once, and through bounded parts of the head."""
    model = tiny.adapted().eval()
    rows = pack(tiny.samples(20), tiny.LENGTH)
    with torch.no_grad():
        expected = old_losses(model, rows)
    found = evaluate.losses(
        Compute(model), rows, rows_at_once=rows_at_once, pad_id=tiny.PAD, longest=tiny.LENGTH
    )
    assert [item.content_id for item in found] == sorted(expected)
    assert [item.nats for item in found] == pytest.approx(
        [expected[key][0] for key in sorted(expected)], rel=1e-5
    )
    assert [item.correct for item in found] == [expected[key][1] for key in sorted(expected)]
    assert not model.training


def test_only_judged_tokens_are_evaluated() -> None:
    """Two spans of some samples, all of others: nats, tokens and bytes are those of the spans."""
    model = tiny.adapted().eval()
    samples = tiny.samples(20)
    for number, sample in enumerate(samples):
        start, end = sample.code_start, sample.code_end
        if number % 2 and end - start > 2:
            judged = ((start, start + 1), (end - 1, end))
            samples[number] = replace(sample, judged=judged, code_bytes=6)
    rows = pack(samples, tiny.LENGTH)
    with torch.no_grad():
        expected = old_losses(model, rows)
    found = evaluate.losses(Compute(model), rows, rows_at_once=2, pad_id=tiny.PAD, longest=tiny.LENGTH)
    sizes = {each.content_id: 2 if each.judged else each.code_end - each.code_start for each in samples}
    assert sum(each.judged is not None for each in samples) > 5
    assert [item.nats for item in found] == pytest.approx(
        [expected[i.content_id][0] for i in found], rel=1e-5
    )
    assert [item.correct for item in found] == [expected[item.content_id][1] for item in found]
    assert [item.tokens for item in found] == [sizes[item.content_id] for item in found]
    assert all(item.bytes == 3 * item.tokens for item in found)


def test_figures_of_an_evaluation() -> None:
    """Bits per byte, nats and perplexity a token, and the share of right tokens, over all items together."""
    items = [ContentLoss(1, 8.0, 4, 10, 1), ContentLoss(2, 4.0, 2, 10, 2)]
    assert evaluate.nats_per_token(items) == 2.0
    assert evaluate.perplexity(items) == pytest.approx(math.exp(2))
    assert evaluate.perplexity([ContentLoss(1, 1e6, 1, 1, 0)]) == math.inf
    assert evaluate.token_accuracy(items) == 0.5
    assert evaluate.bits_per_byte(items) == pytest.approx(12 / math.log(2) / 20)
    assert all(math.isnan(each([])) for each in (evaluate.perplexity, evaluate.token_accuracy))


def test_evaluation_says_when_the_loss_is_not_finite() -> None:
    """NaN stays NaN: no content is lost, the gate refuses."""
    model = tiny.adapted()
    model.get_base_model().get_input_embeddings().weight.data[5] = float("nan")
    rows = pack(tiny.samples(20), tiny.LENGTH)
    found = evaluate.losses(Compute(model), rows, rows_at_once=2, pad_id=tiny.PAD, longest=tiny.LENGTH)
    assert len(found) == 20
    assert 0 < sum(item.nats != item.nats for item in found) < 20
