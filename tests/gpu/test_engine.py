"""The engine's kernels and ways of computing on a GPU, each against the plain one."""

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from services.trainer.engine import attention
from services.trainer.engine.batch import Batch, batch_of
from services.trainer.engine.compute import Compute
from services.trainer.packing import Row, pack
from services.trainer.samples.sample import Sample

LENGTH = 512
BF16 = 1e-2  # relative


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two layers of the shape of Qwen2.5-Coder-1.5B, in bf16."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    shape = {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 2}
    config = Qwen2Config(vocab_size=2048, num_attention_heads=12, num_key_value_heads=2, **shape)
    path = tmp_path_factory.mktemp("two-layers")
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(path)
    return path


def adapted(folder: Any, *, quantised: bool, implementation: str) -> Any:
    options: dict[str, Any] = {}
    if quantised:
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
    base = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, device_map={"": 0}, attn_implementation=implementation, **options
    ).requires_grad_(False)
    torch.manual_seed(1)
    model = get_peft_model(base, LoraConfig(r=32, lora_alpha=64, target_modules="all-linear"))
    for name, one in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(one, std=0.01)
    return model.train()


def samples(lengths: list[int]) -> list[Sample]:
    generator = torch.Generator().manual_seed(2)
    return [
        Sample(number, tuple(torch.randint(2048, (length,), generator=generator).tolist()), 3, 0, 0, 0)
        for number, length in enumerate(lengths)
    ]


UNEVEN = samples([37, 512, 5, 200, 130, 311, 64, 500, 20, 90])
EVEN = samples([LENGTH] * 4)


def on_gpu(rows: list[Row]) -> Batch:
    return batch_of(rows, 0, LENGTH, fill_to=len(rows) * LENGTH).to(torch.device("cuda"))


def gradients(model: Any) -> torch.Tensor:
    found = [one.grad.flatten() for one in model.parameters() if one.requires_grad]
    model.zero_grad()
    return torch.cat(found)


def apart(model: Any, documents: list[Sample]) -> tuple[float, torch.Tensor]:
    """Each document alone, through transformers' and PEFT's own forward."""
    total = 0.0
    for document in documents:
        ids = torch.tensor([document.ids], device="cuda")
        labels = torch.tensor([document.labels], device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(input_ids=ids, use_cache=False).logits
        loss = cross_entropy(logits[0, :-1].float(), labels[0, 1:], reduction="sum")
        loss.backward()
        total += loss.item()
    return total, gradients(model)


@pytest.mark.parametrize("documents", [UNEVEN, EVEN], ids=["uneven", "even"])
@pytest.mark.parametrize("quantised", [True, False], ids=["nf4", "bf16"])
@pytest.mark.parametrize(
    "way",
    [
        {},
        {"compiled": True},
        {"compiled": True, "kept_share": 0.7},
        {"keep_merged": False},
        {"compiled": True, "keep_merged": False},
        {"keep_merged": False, "recomputed_layers": 1},
        {"compiled": True, "keep_merged": False, "recomputed_layers": 1},
        {"compiled": True, "recomputed_layers": 2},
    ],
    ids=lambda way: "-".join(way) or "plain",
)
def test_a_packed_batch_is_its_documents_one_by_one(
    folder: Any, way: dict[str, Any], quantised: bool, documents: list[Sample]
) -> None:
    """Loss and gradients of the united products in every way of computing, against PEFT's own layers."""
    expected, slopes = apart(adapted(folder, quantised=quantised, implementation="sdpa"), documents)
    model = adapted(folder, quantised=quantised, implementation=attention.register())
    compute = Compute(model, **way)
    loss = compute.loss(on_gpu(pack(documents, LENGTH)))
    loss.backward()
    found = gradients(model)
    assert loss.item() == pytest.approx(expected, rel=BF16)
    assert (found - slopes).norm() <= 2 * BF16 * slopes.norm()  # both sides round to bf16


@pytest.mark.parametrize("shape", [(1536, 1536), (200, 192), (8960, 1536)])
def test_a_merged_weight_is_the_dequantised_one_and_the_adapter(shape: tuple[int, int]) -> None:
    import bitsandbytes

    from services.trainer.engine import nf4

    rows, columns = shape
    layer = bitsandbytes.nn.Linear4bit(columns, rows, bias=False, quant_type="nf4", compress_statistics=True)
    layer.to("cuda")
    a = torch.randn(40, columns, device="cuda").bfloat16() / columns**0.5
    b = torch.randn(rows, 40, device="cuda").bfloat16() / 100
    plain = bitsandbytes.functional.dequantize_4bit(layer.weight.data, layer.weight.quant_state).float()
    expected = plain + b.float() @ a.float()
    found = nf4.merged(nf4.parts(layer), [rows, columns], a, b, again=False).float()
    assert (found - expected).abs().max() <= 2**-8 * expected.abs().max()
    assert (found - expected).norm() <= 3e-3 * expected.norm()  # one rounding to bf16


@pytest.mark.parametrize("vocabulary", [2048, 49_152, 152_064])
def test_the_kernel_of_the_loss_is_torchs_cross_entropy(vocabulary: int) -> None:
    """Nats and slopes, also where a logit is far from all others."""
    from services.trainer.engine import kernels

    logits = torch.randn(64, vocabulary, device="cuda").bfloat16() * 3
    logits[0, 5] = 90.0
    targets = torch.randint(vocabulary, (64,), device="cuda")
    wide = logits.float().requires_grad_()
    expected = cross_entropy(wide, targets, reduction="none")
    (slope,) = torch.autograd.grad(expected.sum(), wide)
    nats = kernels.cross_entropy(logits, targets, with_slope=True)
    assert (nats - expected).abs().max() < 1e-4
    assert (logits.float() - slope).norm() <= BF16 * slope.norm()


def test_an_evaluation_after_training_steps_is_not_compiled_anew(folder: Any) -> None:
    """Evaluated as served: base and adapter apart, the same loss within bf16."""
    model = adapted(folder, quantised=True, implementation=attention.register())
    compute = Compute(model, compiled=True)
    batch = on_gpu(pack(UNEVEN, LENGTH))
    trained = compute.loss(batch).item()
    model.eval()
    with torch.no_grad():
        assert compute.loss(batch).item() == pytest.approx(trained, rel=BF16)
