"""Operations of training, a token: what is useful, and what a plan executes.

A product of (m, k) and (k, n) is 2mkn operations. Causal attention over documents of n tokens multiplies
queries with keys and weights with values: 2 · 2 · width · n / 2 a token and layer (Dao, "FlashAttention-2",
2023, section 4.1), and twice that backward.
"""

from dataclasses import dataclass

from services.trainer.plan.shape import Shape
from services.trainer.recipes.recipe import Recipe

ATTENTION_BACKWARD = 2.5  # executed, of the forward pass: FlashAttention makes the scores again (ibid.)


@dataclass(frozen=True)
class Operations:
    """Executed a token."""

    matmul: float
    attention: float
    fp8: float = 0.0  # products with frozen weights, where the recipe makes them in FP8


def flops_per_token(shape: Shape, recipe: Recipe, mean_document_tokens: float) -> float:
    """Useful operations a token, forward and backward: recomputation and merging do not count.

    MFU is tokens/s · this / the devices' peak together (Chowdhery et al., "PaLM", 2022, appendix B).
    `mean_document_tokens` is the mean over tokens of their document's length: Σn² / Σn.
    """
    base = shape.layers * shape.layer_linear + shape.head
    adapter = shape.adapter(recipe)
    attention = shape.layers * _attention(shape, mean_document_tokens)
    forward = 2 * base + 2 * adapter + attention
    slopes_of_weights = 2 * base if recipe.method == "full" else 2 * adapter
    backward = 2 * base + 2 * adapter + slopes_of_weights + 2 * attention
    return forward + backward


def executed(shape: Shape, recipe: Recipe, mean_document_tokens: float, recomputed_layers: int) -> Operations:
    """What the engine executes a token, merging aside.

    Base and adapter as one product spare the adapters' forward pass and their share of the inputs'
    gradient (services/trainer/engine/projection.py).
    """
    linear = shape.layers * shape.layer_linear
    adapter = shape.adapter(recipe)
    attention = _attention(shape, mean_document_tokens)
    apart = 0 if one_product(recipe) and not recipe.fp8 else adapter
    forward = 2 * linear + 2 * apart
    again = forward * recomputed_layers / shape.layers
    slopes_of_weights = 2 * (linear + shape.head) if recipe.method == "full" else 4 * adapter
    backward = 2 * linear + slopes_of_weights
    in_fp8 = 2 * linear * (2 + recomputed_layers / shape.layers) if recipe.fp8 else 0
    return Operations(
        matmul=forward + again + backward + 4 * shape.head - in_fp8,
        attention=attention * ((1 + ATTENTION_BACKWARD) * shape.layers + recomputed_layers),
        fp8=in_fp8,
    )


def merging(shape: Shape, recipe: Recipe) -> float:
    """Operations that merge the adapters into all layers' weights once: W + s·B·A."""
    products = (inputs * outputs for inputs, outputs in shape.targets(recipe).values())
    return 2.0 * recipe.lora_r * shape.layers * sum(products)


def one_product(recipe: Recipe) -> bool:
    """Whether base and adapter can be multiplied as one matrix."""
    return recipe.method != "full" and recipe.lora_dropout == 0 and not recipe.use_dora


def _attention(shape: Shape, mean_document_tokens: float) -> float:
    """Forward, a token and layer."""
    return 2 * 2 * shape.attention * mean_document_tokens / 2
