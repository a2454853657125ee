"""Which adapters a server takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.serving import fits

PLAIN = {"peft_type": "LORA", "r": 16, "bias": "none", "init_lora_weights": True}


@given(st.integers(1, 512))
def test_the_rank_that_is_named_takes_the_adapter(rank: int) -> None:
    """And the next smaller one would not."""
    enough = fits.rank_for(rank)
    assert enough is not None
    assert fits.complaint(PLAIN | {"r": rank}, enough) is None
    smaller = [each for each in fits.RANKS if each < enough]
    assert not smaller or fits.complaint(PLAIN | {"r": rank}, smaller[-1]) is not None


def test_too_high_a_rank_says_what_to_set() -> None:
    """The least that vLLM has."""
    assert "rank is 96" in str(fits.complaint(PLAIN | {"r": 96}, 64))
    assert "SERVE_MAX_LORA_RANK=128" in str(fits.complaint(PLAIN | {"r": 96}, 64))


def test_beyond_what_vllm_has_the_adapter_is_to_be_merged() -> None:
    """No setting helps."""
    assert "merge it" in str(fits.complaint(PLAIN | {"r": 1024}, 512))


def test_the_highest_rank_of_all_layers_counts() -> None:
    """PEFT's rank_pattern gives layers their own."""
    assert "rank is 64" in str(fits.complaint(PLAIN | {"rank_pattern": {"q_proj": 64}}, 16))


@pytest.mark.parametrize(
    "unfit",
    [
        {"use_dora": True},
        {"modules_to_save": ["lm_head"]},
        {"bias": "all"},
        {"lora_bias": True},
        {"peft_type": "LOHA"},
        {"init_lora_weights": "pissa"},
        {"r": 0},
    ],
    ids=lambda unfit: next(iter(unfit)),
)
def test_what_vllm_refuses_is_refused_before(unfit: dict[str, object]) -> None:
    """With the field that is in the way."""
    assert fits.complaint(PLAIN | unfit, 512) is not None


@pytest.mark.parametrize("init", [True, False, "gaussian", "orthogonal"])
def test_a_start_that_leaves_the_base_alone_is_taken(init: object) -> None:
    """Only the adapter's first weights were other."""
    assert fits.complaint(PLAIN | {"init_lora_weights": init}, 16) is None
