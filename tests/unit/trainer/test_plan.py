"""The plan of a recipe: what is chosen, what is said when nothing fits."""

import subprocess
import sys
from dataclasses import replace

import pytest

from services.core.errors import ConfigurationError
from services.trainer.plan import (
    Hardware,
    Job,
    Shape,
    alternatives,
    flops_per_token,
    peak_flops,
    plan,
    priced,
)
from services.trainer.plan.advice import _changes
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN

GB = 10**9
H200 = Hardware.gpu("NVIDIA H200")
QWEN = "Qwen/Qwen2.5-Coder-"
SHAPES = {size: Shape.from_config(KNOWN[f"{QWEN}{size}"]) for size in ("1.5B", "7B", "14B", "32B")}


def recipe(**fields) -> Recipe:
    return Recipe(**{"name": "test", "base_model": f"{QWEN}14B", "lora_r": 256, **fields})


def job(size="14B", hardware=H200, **fields) -> Job:
    made = recipe(**fields)
    return Job(SHAPES[size], made, hardware, made.max_length)


# shapes


@pytest.mark.parametrize(
    ("size", "parameters"),
    [("1.5B", 1_543_714_304), ("7B", 7_615_616_512), ("14B", 14_770_033_664), ("32B", 32_763_876_352)],
)
def test_a_shape_has_as_many_parameters_as_the_model_card_says(size, parameters):
    assert SHAPES[size].parameters == parameters


def test_a_shape_counts_what_transformers_builds():
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    for name in ("llama", "qwen2"):
        config = AutoConfig.for_model(
            name, hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=100, tie_word_embeddings=False,
        )  # fmt: skip
        with torch.device("meta"):
            built = AutoModelForCausalLM.from_config(config)
        counted = sum(parameter.numel() for parameter in built.parameters())
        assert Shape.from_config(config.to_dict()).parameters == counted


def test_a_config_without_sizes_is_refused_by_the_missing_name():
    with pytest.raises(ConfigurationError, match="gpt2 has hidden_size=None"):
        Shape.from_config({"model_type": "gpt2", "n_embd": 768})


def test_a_model_with_experts_is_refused():
    config = {**KNOWN[f"{QWEN}7B"], "model_type": "mixtral", "num_local_experts": 8}
    with pytest.raises(ConfigurationError, match="mixtral with experts"):
        Shape.from_config(config)


def test_adapters_have_rank_times_inputs_and_outputs():
    """As counted for r 256 and r 64: 1.101 B at 14B, 0.537 B at 32B."""
    assert SHAPES["14B"].adapter(recipe()) == 1_101_004_800
    assert SHAPES["32B"].adapter(recipe(lora_r=64)) == 536_870_912
    assert SHAPES["14B"].adapter(recipe(target_modules=["q_proj"], lora_r=1)) == 48 * 2 * 5120
    assert SHAPES["14B"].adapter(recipe(method="full", lora_r=16)) == 0


def test_a_target_that_no_layer_has_is_refused():
    with pytest.raises(ConfigurationError, match="target_modules has c_attn: a layer has q_proj"):
        SHAPES["7B"].targets(recipe(target_modules=["c_attn", "q_proj"]))


# operations


@pytest.mark.parametrize(
    ("size", "rank", "length", "gflop"), [("14B", 256, 4096, 68.7), ("32B", 64, 8192, 147.2)]
)
def test_useful_operations_are_the_probes(size, rank, length, gflop):
    """The formula the GPU's baselines were counted with, evaluated apart."""
    counted = flops_per_token(SHAPES[size], recipe(lora_r=rank, max_length=length), length)
    assert counted / 1e9 == pytest.approx(gflop, rel=0.002)


def test_full_fine_tuning_costs_six_operations_a_parameter_and_token():
    """Kaplan et al. 2020: 6N, attention and embeddings aside."""
    shape = SHAPES["7B"]
    matrices = shape.layers * shape.layer_linear + shape.head
    assert flops_per_token(shape, recipe(method="full", lora_r=16), 0) == 6 * matrices


# devices


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA H200", 989),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA A100-PCIE-40GB", 312),
        ("NVIDIA A40", 150),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("NVIDIA GeForce RTX 4090", 165),
        ("NVIDIA GeForce RTX 5090", 209.5),
        ("rtx 5090", 209.5),
        ("NVIDIA B200", 2250),
    ],
)
def test_a_device_is_known_by_its_drivers_name(name, tflops):
    assert peak_flops(name) == tflops * 1e12


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA H100 MIG 1g.10gb",
        "Tesla V100",
        "",
    ],
)
def test_a_device_that_is_like_a_known_one_is_not_taken_for_it(name):
    assert peak_flops(name) is None


def test_an_unknown_device_without_memory_is_refused_with_the_nearest():
    with pytest.raises(ConfigurationError, match=r"device 'H20' is unknown: did you mean H200\?"):
        Hardware.gpu("H20")


# the choice


def test_an_h200_recomputes_nothing_for_the_14b():
    chosen = plan(SHAPES["14B"], recipe(), H200)
    assert (chosen.recomputed_layers, chosen.micro_batch) == (0, 4)
    assert chosen.fits


def test_32_gb_hold_the_14b_at_rank_256():
    chosen = plan(SHAPES["14B"], recipe(), Hardware.gpu("RTX 5090", 32 * GB))
    assert chosen.micro_batch == 1
    assert chosen.recomputation == "selective"
    assert chosen.needed_bytes <= 32 * GB


def test_the_7b_fits_16_gib_of_tensors_with_recomputation():
    leanest = priced(job("7B"), 1, 27, keep_merged=False)
    assert leanest.peak_bytes <= 16 * 2**30


def test_as_few_layers_are_recomputed_as_memory_allows():
    wanted = job(hardware=Hardware.gpu("RTX 5090", 40 * GB))
    chosen = plan(wanted.shape, wanted.recipe, wanted.hardware)
    fewer = priced(wanted, chosen.micro_batch, chosen.recomputed_layers - 1, keep_merged=chosen.keep_merged)
    assert not fewer.fits


@pytest.mark.parametrize("wanted", ["none", "selective", "full"])
def test_the_recipe_decides_the_kind_of_recomputation(wanted):
    assert plan(SHAPES["14B"], recipe(recomputation=wanted), H200).recomputation == wanted


@pytest.mark.parametrize("fields", [{"compile": False}, {"recomputation": "none"}, {"recomputation": "full"}])
def test_a_layer_keeps_less_only_where_the_compiler_may_choose(fields):
    assert {one.kept_share for one in alternatives(job(**fields))} == {1.0}
    assert min(one.kept_share for one in alternatives(job())) < 1


def test_what_is_no_one_product_cannot_stay_merged():
    """Dropout and DoRA keep base and adapter apart; sharded weights are nowhere whole."""
    assert job().can_keep_merged
    assert not job(lora_dropout=0.05).can_keep_merged
    assert not job(use_dora=True).can_keep_merged
    assert not job(method="lora", distributed="fsdp2", hardware=H200.times(2)).can_keep_merged


def test_on_the_cpu_batches_are_the_recipes_and_nothing_is_recomputed():
    cpu = Hardware.cpu(2, 24 * GB)
    chosen = plan(SHAPES["1.5B"], recipe(batch_size=4, gradient_accumulation_steps=3), cpu)
    assert (chosen.micro_batch, chosen.recomputed_layers) == (4, 0)


def test_a_cpu_with_little_memory_merges_when_needed():
    small, large = (Hardware.cpu(2, size * GB) for size in (1, 500))
    assert not plan(SHAPES["1.5B"], recipe(), small).keep_merged
    assert plan(SHAPES["1.5B"], recipe(), large).keep_merged


def test_a_device_of_unknown_speed_is_planned_for_all_the_same():
    chosen = plan(SHAPES["14B"], recipe(), Hardware.gpu("some GPU", 150 * GB))
    assert chosen.recomputed_layers == 0


def test_alternatives_have_every_micro_batch_and_the_chosen_plan():
    wanted = job()
    chosen, others = plan(wanted.shape, wanted.recipe, H200), alternatives(wanted)
    assert {other.micro_batch for other in others} == {1, 2, 4, 8, 16}
    assert chosen in others


# several devices


def test_two_devices_hold_half_the_masters_each():
    one, two = (
        priced(job("7B", H200.times(count), method="full", lora_r=16), 1, 0, keep_merged=False).memory
        for count in (1, 2)
    )
    assert two.weights == pytest.approx(one.weights / 2)
    assert two.optimizer == pytest.approx(one.optimizer / 2)


def test_ddp_replicates_and_fsdp2_divides_the_base():
    """Seed 001's run, LoRA of 32B in bf16 on two devices: its weights alone are 65.5 GB in each under ddp."""
    fields = {"method": "lora", "max_length": 8192, "lora_r": 64}
    weights = {}
    for way in ("ddp", "fsdp2", "zero3", "zero2"):
        shared = job("32B", H200.times(2), distributed=way, **fields)
        weights[way] = priced(shared, 1, 64, keep_merged=False).memory.weights
    assert weights["ddp"] == pytest.approx(65.5e9, rel=0.001)
    assert weights["fsdp2"] == weights["zero3"] == pytest.approx(weights["ddp"] / 2)
    assert weights["zero2"] == weights["ddp"]  # it divides what the optimizer has: next to nothing


def test_the_32b_in_bf16_as_the_seed_runs_it_fits_two_h200():
    wanted = recipe(method="lora", lora_r=64, max_length=8192, batch_size=1, gradient_accumulation_steps=16)
    assert plan(SHAPES["32B"], wanted, H200.times(2)).fits


def test_adapters_train_nearly_twice_as_fast_on_two_devices():
    """No more than that is predicted, and more than the 0.95 wanted."""
    one, two = (plan(SHAPES["7B"], recipe(), H200.times(count)).tokens_per_s for count in (1, 2))
    assert 1.9 <= two / one <= 2


# when nothing fits


def test_what_does_not_fit_is_refused_with_what_it_needs_and_what_would_fit():
    with pytest.raises(ConfigurationError) as refused:
        plan(SHAPES["14B"], recipe(), Hardware.gpu("RTX 4090"))
    said = str(refused.value)
    assert "recipe test does not fit RTX 4090, of whose 25.3 GB" in said
    assert "weights 9.9" in said
    assert "lora_r: 128 (" in said


def test_bf16_that_does_not_fit_is_told_of_qlora_and_of_more_devices():
    wanted = recipe(method="lora", lora_r=64, max_length=8192)
    with pytest.raises(ConfigurationError, match=r"method: qlora \(.*4 GPUs, distributed: fsdp2 \("):
        plan(SHAPES["32B"], wanted, Hardware.gpu("A100 80GB PCIe", 48 * GB))


def test_where_no_change_alone_fits_all_together_are_tried():
    with pytest.raises(ConfigurationError, match="all together: qlora with lora_r 8, max_length 512"):
        plan(SHAPES["32B"], recipe(), Hardware.gpu("RTX 4090"))


def test_where_nothing_at_all_fits_the_device_is_too_small():
    with pytest.raises(ConfigurationError, match="a larger device or a smaller model would"):
        plan(SHAPES["32B"], recipe(), Hardware.gpu("RTX 4070 Ti"))


@pytest.mark.parametrize("method", ["lora", "qlora", "full"])
def test_every_change_that_is_suggested_is_a_valid_recipe(method):
    ways = {"lora": ("auto", "ddp", "fsdp2", "zero2"), "qlora": ("auto", "ddp"), "full": ("auto", "zero2")}[
        method
    ]
    for way in ways:
        rank = {} if method != "full" else {"lora_r": 16}
        start = job(method=method, distributed=way, recomputation="none", optimizer="adamw", **rank)
        for steps in _changes(start):
            for _, changed in steps:
                Recipe.model_validate(changed.recipe.model_dump())


# after an out-of-memory error


def test_halving_ends_with_the_leanest_plan_and_then_with_none():
    wanted = job()
    sizes = []
    current = priced(wanted, 16, 0, keep_merged=True)
    while current is not None:
        sizes.append((current.micro_batch, current.recomputed_layers, current.keep_merged))
        current = current.halved()
    assert sizes == [(16, 0, True), (8, 0, True), (4, 0, True), (2, 0, True), (1, 0, True), (1, 48, False)]


def test_halving_keeps_to_divisors_of_the_step():
    three = priced(job(batch_size=3, gradient_accumulation_steps=3), 9, 0, keep_merged=False)
    assert three.halved().micro_batch == 3
    assert three.halved().micro_batches == 3


def test_a_plan_is_made_without_torch():
    code = "import sys, services.trainer.plan, services.trainer.plan_config; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


def test_the_calibration_can_be_replaced():
    wanted = job()
    wider = replace(wanted, calibration=replace(wanted.calibration, fixed_bytes=GB))
    assert priced(wider, 1, 0, keep_merged=False).memory.fixed == GB
