"""A recipe: the frozen, validated description of a way to train, read from YAML."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from services.core.errors import ConfigurationError
from services.core.settings import PROJECT, RECIPE_OVERRIDES

RECIPES = PROJECT / "recipes"


class Recipe(BaseModel):
    """What a round does with its snapshot. Shares are fractions of 1, lengths are tokens unless named."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")  # also the track's name and its folder
    description: str = ""

    # The model
    base_model: str  # a hub id, a folder, or wheel:PACKAGE/FILE.gguf
    revision: str | None = None  # hub commit; none: the newest at the first round, kept from then on
    method: Literal["lora", "qlora"] = "qlora"
    lora_r: int = Field(default=16, ge=1, le=1024)
    lora_alpha: int = Field(default=32, ge=1)
    lora_dropout: float = Field(default=0.0, ge=0, lt=1)
    target_modules: tuple[str, ...] = ("all-linear",)

    # What it sees
    languages: tuple[str, ...] | None = None  # none: every language
    min_chars: int = Field(default=50, ge=1)
    max_chars: int = Field(default=32_000, ge=1)  # of a content; longer ones are left for later recipes
    max_contents: int | None = Field(default=None, ge=1)  # of a round, below MAX_DATASET_SIZE
    max_length: int = Field(default=4096, ge=64)  # of a packed row
    held_out_share: float = Field(default=0.05, gt=0, lt=0.5)
    held_out_min: int = Field(default=32, ge=1)  # contents, as far as a fifth of all allows
    validation_share: float = Field(default=0.02, gt=0, lt=0.5)
    validation_min: int = Field(default=16, ge=1)
    held_out_pairs: int | None = Field(default=None, ge=1)  # pairs judged of one content; none: all

    # How it learns
    batch_size: int = Field(default=4, ge=1)  # packed rows of a micro-batch, a device
    gradient_accumulation_steps: int = Field(default=4, ge=1)
    learning_rate: float = Field(default=2e-5, gt=0, lt=1)
    lr_schedule: Literal["cosine", "linear", "constant_with_warmup"] = "cosine"
    warmup_share: float = Field(default=0.03, ge=0, lt=1)  # of the steps
    weight_decay: float = Field(default=0.01, ge=0)
    epochs: float = Field(default=1.0, gt=0)
    eval_steps: int = Field(default=50, ge=1)
    early_stopping_patience: int = Field(default=3, ge=1)  # evaluations without improvement
    early_stopping_threshold: float = Field(default=0.01, ge=0)  # nats a token that count as improvement
    gradient_checkpointing: bool = True
    use_flash_attention: bool = True  # where flash-attn is installed; torch's own attention otherwise
    dataloader_num_workers: int = Field(default=0, ge=0)
    seed: int = 42

    # When the candidate is better
    min_improvement: float = Field(default=0.0, ge=0, lt=1)  # relative fall of bits per byte, beyond noise
    confidence: float = Field(default=0.95, gt=0.5, lt=1)

    @model_validator(mode="after")
    def _lengths_fit(self) -> "Recipe":
        if self.min_chars > self.max_chars:
            raise ValueError(f"min_chars {self.min_chars} is above max_chars {self.max_chars}")
        return self


def available(directory: Path = RECIPES) -> list[str]:
    return sorted(path.stem for path in directory.glob("*.yaml"))


def load(name: str, overrides: Mapping[str, Any] | None = None, directory: Path = RECIPES) -> Recipe:
    """The recipe of that name, or at that path, with overrides by field name.

    Raises ConfigurationError that names the field, its value, the nearest valid name and the limit.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else directory / f"{name}.yaml"
    if not path.is_file():
        nearest = difflib.get_close_matches(name, available(directory), 1, 0.0)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise ConfigurationError(
            f"RECIPE={name}: {path} does not exist{hint} (there are: {', '.join(available(directory))})"
        )
    try:
        fields = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} is not YAML: {exc}") from exc
    if not isinstance(fields, dict):
        raise ConfigurationError(f"{path} must hold fields as `name: value`, not {type(fields).__name__}")
    overrides = dict(overrides or {})
    try:
        return Recipe.model_validate({"name": path.stem, **fields, **overrides})
    except ValidationError as exc:
        problems = "; ".join(_explain(error, overrides) for error in exc.errors())
        raise ConfigurationError(f"{path}: {problems}") from exc


def _explain(error: Any, overrides: Mapping[str, Any]) -> str:
    field = str(error["loc"][0]) if error["loc"] else "recipe"
    if error["type"] == "extra_forbidden":
        nearest = difflib.get_close_matches(field, Recipe.model_fields, 1, 0.5)
        return f"{field} is not a field" + (f": did you mean {nearest[0]}?" if nearest else "")
    if error["type"] == "missing":
        return f"{field} is missing"
    origin = f" (from {field.upper()} in the environment)" if field in overrides else ""
    return f"{field}={error['input']!r}{origin}: {error['msg']}"


assert set(RECIPE_OVERRIDES) <= set(Recipe.model_fields)
