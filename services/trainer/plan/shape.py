"""What of a model's config fixes its memory and its operations: a decoder of Llama's or Qwen2's kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.recipes.recipe import Recipe

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
REQUIRED = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "vocab_size",
)


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder-only transformer with gated MLP and grouped-query attention."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool  # input embeddings and output layer are one matrix
    bias: bool = False  # on q, k and v, as Qwen2 has

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Shape":
        """From the fields of a config.json.

        Raises ConfigurationError for a field that is missing or no positive integer, and for experts.
        """
        model = config.get("model_type", "model of unknown type")
        if any(config.get(name) for name in EXPERTS):
            raise ConfigurationError(f"a {model} with experts cannot be planned: only dense models can")
        for name in REQUIRED:
            if not isinstance(config.get(name), int) or config[name] < 1:
                raise ConfigurationError(
                    f"config.json of a {model} has {name}={config.get(name)!r}: expected a positive integer"
                    f" (a plan needs {', '.join(REQUIRED)})"
                )
        heads = config["num_attention_heads"]
        return cls(
            hidden=config["hidden_size"],
            intermediate=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            vocabulary=config["vocab_size"],
            tied=bool(config.get("tie_word_embeddings", False)),
            bias=bool(config.get("attention_bias", model == "qwen2")),
        )

    @property
    def attention(self) -> int:
        """Width of the queries, and of what attention puts out."""
        return self.heads * self.head_dim

    @property
    def kv(self) -> int:
        """Width of the keys, and of the values."""
        return self.kv_heads * self.head_dim

    @property
    def linear(self) -> dict[str, tuple[int, int]]:
        """Width in and out of a layer's linear parts, by name."""
        return {
            "q_proj": (self.hidden, self.attention),
            "k_proj": (self.hidden, self.kv),
            "v_proj": (self.hidden, self.kv),
            "o_proj": (self.attention, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def layer_linear(self) -> int:
        """Parameters of one layer's matrices."""
        return sum(inputs * outputs for inputs, outputs in self.linear.values())

    @property
    def layer(self) -> int:
        """Parameters of one layer, norms and biases with it."""
        return self.layer_linear + 2 * self.hidden + (self.attention + 2 * self.kv if self.bias else 0)

    @property
    def head(self) -> int:
        """Parameters of the output layer, and as many of the input embeddings."""
        return self.hidden * self.vocabulary

    @property
    def outside(self) -> int:
        """Parameters outside the layers: embeddings, last norm, output layer unless tied."""
        return self.head * (1 if self.tied else 2) + self.hidden

    @property
    def parameters(self) -> int:
        return self.layers * self.layer + self.outside

    def targets(self, recipe: Recipe) -> dict[str, tuple[int, int]]:
        """The linear parts of a layer that get an adapter; none in full fine-tuning.

        Raises ConfigurationError for a target that no layer has.
        """
        if recipe.method == "full":
            return {}
        if "all-linear" in recipe.target_modules:
            return self.linear
        chosen = {target.rpartition(".")[2] for target in recipe.target_modules}
        if unknown := sorted(chosen - self.linear.keys()):
            raise ConfigurationError(
                f"target_modules has {', '.join(unknown)}: a layer has {', '.join(self.linear)}"
            )
        return {name: size for name, size in self.linear.items() if name in chosen}

    def adapter(self, recipe: Recipe) -> int:
        """Parameters of all adapters together: r · (in + out) each (Hu et al., "LoRA", 2021, section 4.1)."""
        return self.layers * recipe.lora_r * sum(sum(size) for size in self.targets(recipe).values())
