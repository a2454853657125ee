"""Whether a recipe fits a base model: decided from figures alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.recipes.fit import Architecture, Linear, Words, findings, problems, targets, trainable
from services.trainer.recipes.recipe import Recipe

LINEAR = tuple(
    Linear(f"model.layers.{layer}.{name}", inputs, outputs)
    for layer in range(2)
    for name, inputs, outputs in (
        ("self_attn.q_proj", 64, 64),
        ("self_attn.k_proj", 64, 32),
        ("mlp.up_proj", 64, 128),
    )
)
TINY = Architecture(
    "llama", layers=2, hidden=64, positions=2048, vocabulary=1000, parameters=200_000, linear=LINEAR,
    head="lm_head", tied=False,
)  # fmt: skip
TIED = Architecture(**{**vars(TINY), "tied": True})
WORDS = Words(vocabulary=1000, chat_template=True, fim=True)


def recipe(**fields) -> Recipe:
    return Recipe(**{"name": "mine", "base_model": "./m", "max_length": 512, **fields})


@pytest.mark.parametrize(
    ("architecture", "fields", "reason"),
    [
        (TINY, {"target_modules": ("q_pro",)}, "q_pro is no linear layer of this llama model: did you mean"),
        (TINY, {"target_modules": ("norm",)}, "(there are: k_proj, q_proj, up_proj; or all-linear)"),
        (TINY, {"lora_r": 33}, "lora_r=33 is above the rank of k_proj (64 → 32): at most 32"),
        (TINY, {"max_length": 2049}, "max_length=2049 is above the 2048 positions"),
        (TINY, {"max_length": 2049, "method": "full"}, "max_length=2049 is above the 2048 positions"),
        (TIED, {"target_modules": ("q_proj", "lm_head")}, "lm_head shares its weights with the embedding"),
    ],
)  # fmt: skip
def test_what_an_architecture_does_not_allow_is_said(architecture, fields, reason) -> None:
    assert any(reason in problem for problem in problems(recipe(**fields), architecture))


@pytest.mark.parametrize(
    ("architecture", "fields"),
    [
        (TINY, {}),
        (TINY, {"lora_r": 32}),
        (TINY, {"lora_r": 64, "target_modules": ("q_proj", "self_attn.q_proj")}),
        (TINY, {"target_modules": ("model.layers.1.mlp.up_proj", "lm_head")}),
        (TINY, {"max_length": 2048, "method": "full"}),
    ],
)
def test_what_it_allows_is_no_problem(architecture, fields) -> None:
    assert not list(problems(recipe(**fields), architecture))


@pytest.mark.parametrize(
    ("words", "fields", "reason"),
    [
        (Words(1000, chat_template=False, fim=True), {}, "has no chat template: take an instruct model"),
        (Words(1000, chat_template=True, fim=False), {"objective": "cpt", "fim_rate": 0.5}, "no tokens for"),
        (Words(1001, chat_template=True, fim=True), {}, "has 1001 tokens, the model embeds 1000"),
    ],
)  # fmt: skip
def test_what_a_tokenizer_does_not_allow_is_said(words, fields, reason) -> None:
    found = findings(recipe(**fields), TINY, "its folder", words)
    assert any(reason in problem for problem in found.problems)


def test_pre_training_needs_no_chat_template() -> None:
    found = findings(recipe(objective="cpt"), TINY, "its folder", Words(1000, chat_template=False, fim=False))
    assert not found.problems
    assert "chat template" not in found.checked


def test_all_linear_leaves_out_the_head() -> None:
    assert targets(recipe(), TINY) == list(LINEAR)


def test_a_layer_that_two_names_name_is_trained_once() -> None:
    chosen = targets(recipe(target_modules=("q_proj", "self_attn.q_proj")), TINY)
    assert [layer.name for layer in chosen] == [f"model.layers.{n}.self_attn.q_proj" for n in (0, 1)]


def test_a_name_is_no_part_of_a_longer_name() -> None:
    """`proj` is not the end of `q_proj` for PEFT either."""
    assert not targets(recipe(target_modules=("proj",)), TINY)


@given(rank=st.integers(1, 1024), dora=st.booleans())
def test_parameters_of_adapters_grow_with_their_rank(rank: int, dora: bool) -> None:
    """A of (r, inputs) and B of (outputs, r) a layer, and a magnitude an output with DoRA."""
    sides = sum(layer.inputs + layer.outputs for layer in LINEAR)
    magnitudes = sum(layer.outputs for layer in LINEAR) if dora else 0
    assert trainable(recipe(lora_r=rank, use_dora=dora), TINY) == rank * sides + magnitudes


def test_full_fine_tuning_trains_everything() -> None:
    assert trainable(recipe(method="full"), TINY) == TINY.parameters


def test_what_could_not_be_read_is_not_called_checked() -> None:
    """No network and nothing cached: no claim."""
    found = findings(recipe(), None, None, None, ["config: the hub does not answer"])
    assert (found.checked, found.problems, found.trainable) == ((), (), None)
    assert found.as_json()["architecture"] is None


def test_the_findings_count_layers_instead_of_listing_them() -> None:
    said = findings(recipe(), TINY, "its folder", WORDS).as_json()
    assert said["targets"][0] == {"name": "q_proj", "count": 2, "inputs": 64, "outputs": 64}
    assert "linear" not in said["architecture"]
