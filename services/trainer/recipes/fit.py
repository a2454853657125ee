"""Whether a recipe fits a base model's layers, positions and tokenizer. Pure: `architecture` reads those."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from services.core.models import Json
from services.trainer.recipes.combinations import nearest
from services.trainer.recipes.names import ALL_LINEAR
from services.trainer.recipes.recipe import Recipe


@dataclass(frozen=True)
class Linear:
    """A linear layer by its full name, `model.layers.0.self_attn.q_proj`: inputs → outputs."""

    name: str
    inputs: int
    outputs: int

    @property
    def role(self) -> str:
        """What it is called in every decoder layer."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Architecture:
    """What a config says about the model, and what the model is made of."""

    model_type: str
    layers: int
    hidden: int
    positions: int | None  # tokens it was made for; None: any number
    vocabulary: int
    parameters: int
    linear: tuple[Linear, ...]  # without the head
    head: str | None  # name of the layer that makes the logits
    tied: bool  # whether the head is the embedding


@dataclass(frozen=True)
class Words:
    """What a recipe asks of a tokenizer."""

    vocabulary: int
    chat_template: bool
    fim: bool  # whether it has the tokens of fill-in-the-middle


@dataclass(frozen=True)
class Target:
    """Layers of one name and shape that are trained."""

    name: str
    count: int
    inputs: int
    outputs: int


@dataclass(frozen=True)
class Findings:
    """What was looked at, and what was found."""

    base_model: str
    config_from: str | None  # where the config was read; None: nowhere
    architecture: Architecture | None
    trainable: int | None  # parameters
    targets: tuple[Target, ...]
    checked: tuple[str, ...]
    not_checked: tuple[str, ...]  # and why
    problems: tuple[str, ...]

    def as_json(self) -> Json:
        """All but the single layers, which `targets` counts."""
        said = asdict(self)
        if self.architecture is not None:
            del said["architecture"]["linear"]
        return said


def targets(recipe: Recipe, architecture: Architecture) -> list[Linear]:
    """The linear layers that get an adapter, as PEFT matches them: by whole name or by its last parts."""
    if tuple(recipe.target_modules) == (ALL_LINEAR,):
        return list(architecture.linear)
    return [layer for layer in _all(architecture) if _is_named(layer.name, recipe.target_modules)]


def trainable(recipe: Recipe, architecture: Architecture) -> int:
    """Parameters that training changes: all, or A (r, inputs), B (outputs, r), DoRA's magnitude (outputs).

    Of a team those of each role that is trained, without its value head.
    """
    if recipe.method == "full":
        return architecture.parameters
    team = recipe.reinforcement
    roles = 1 if team is None else len(set(team.roles) - set(team.frozen_roles))
    return roles * sum(
        recipe.lora_r * (layer.inputs + layer.outputs) + (layer.outputs if recipe.use_dora else 0)
        for layer in targets(recipe, architecture)
    )


def problems(recipe: Recipe, architecture: Architecture) -> Iterator[str]:
    """What of the recipe this architecture does not allow."""
    length, said = longest(recipe)
    if architecture.positions is not None and length > architecture.positions:
        yield (
            f"{said} is above the {architecture.positions} positions of"
            f" {recipe.base_model} (max_position_embeddings): lower it"
        )
    if recipe.method == "full":
        return
    for name in recipe.target_modules:
        yield from _target_problems(name, architecture)
    narrow = min(targets(recipe, architecture), key=_rank, default=None)
    if narrow is not None and recipe.lora_r > _rank(narrow):
        yield (
            f"lora_r={recipe.lora_r} is above the rank of {narrow.role} ({narrow.inputs} → {narrow.outputs}):"
            f" at most {_rank(narrow)}, or leave {narrow.role} out of target_modules"
        )


def longest(recipe: Recipe) -> tuple[int, str]:
    """Tokens that the model sees at once at most, and which fields say so."""
    if (asked := recipe.reinforcement) is None:
        return recipe.max_length, f"max_length={recipe.max_length}"
    length = asked.context_window + asked.max_new_tokens
    return length, (
        f"reinforcement: context_window={asked.context_window} + max_new_tokens={asked.max_new_tokens}"
        f" = {length}"
    )


def wording_problems(recipe: Recipe, words: Words, architecture: Architecture | None) -> Iterator[str]:
    """What of the recipe this tokenizer does not allow."""
    if recipe.objective == "completion_pairs" and not words.chat_template:
        yield (
            f"objective=completion_pairs: the tokenizer of {recipe.base_model} has no chat template:"
            " take an instruct model, or set objective to cpt"
        )
    if recipe.fim_rate > 0 and not words.fim:
        yield (
            f"fim_rate={recipe.fim_rate}: the tokenizer of {recipe.base_model} has no tokens for"
            " fill-in-the-middle: set it to 0, or take a base model that has them"
        )
    if architecture is not None and words.vocabulary > architecture.vocabulary:
        yield (
            f"the tokenizer of {recipe.base_model} has {words.vocabulary} tokens, the model embeds"
            f" {architecture.vocabulary}: they do not belong together"
        )


def findings(
    recipe: Recipe,
    architecture: Architecture | None,
    config_from: str | None,
    words: Words | None,
    not_checked: Sequence[str] = (),
    *,
    found: Sequence[str] = (),
) -> Findings:
    """All of it together, after problems found already; None stands for what could not be read."""
    said = list(found)
    checked: list[str] = []
    if architecture is not None:
        said += problems(recipe, architecture)
        layers = [] if recipe.method == "full" else ["target_modules", "lora_r"]
        lengths = ["max_length"] if recipe.reinforcement is None else ["context_window", "max_new_tokens"]
        checked += ["architecture", *lengths, *layers]
    if words is not None:
        said += wording_problems(recipe, words, architecture)
        checked += ["vocabulary"] if architecture is not None else []
        checked += ["chat template"] if recipe.objective == "completion_pairs" else []
        checked += ["tokens of fill-in-the-middle"] if recipe.fim_rate > 0 else []
    return Findings(
        base_model=recipe.base_model,
        config_from=config_from,
        architecture=architecture,
        trainable=trainable(recipe, architecture) if architecture else None,
        targets=_grouped(targets(recipe, architecture)) if architecture and recipe.method != "full" else (),
        checked=tuple(checked),
        not_checked=tuple(not_checked),
        problems=tuple(said),
    )


def _all(architecture: Architecture) -> Iterator[Linear]:
    yield from architecture.linear
    if architecture.head is not None:
        yield Linear(architecture.head, architecture.hidden, architecture.vocabulary)


def _is_named(layer: str, names: Sequence[str]) -> bool:
    return any(layer == name or layer.endswith(f".{name}") for name in names)


def _rank(layer: Linear) -> int:
    return min(layer.inputs, layer.outputs)


def _target_problems(name: str, architecture: Architecture) -> Iterator[str]:
    if name == ALL_LINEAR:
        return
    if architecture.head is not None and architecture.tied and _is_named(architecture.head, [name]):
        yield f"target_modules: {name} shares its weights with the embedding here, leave it out"
    elif not any(_is_named(layer.name, [name]) for layer in _all(architecture)):
        roles = sorted({layer.role for layer in architecture.linear})
        yield (
            f"target_modules: {name} is no linear layer of this {architecture.model_type} model"
            f"{nearest(name, roles)} (there are: {', '.join(roles)}; or {ALL_LINEAR})"
        )


def _grouped(layers: Sequence[Linear]) -> tuple[Target, ...]:
    counts: dict[tuple[str, int, int], int] = {}
    for layer in layers:
        key = (layer.role, layer.inputs, layer.outputs)
        counts[key] = counts.get(key, 0) + 1
    return tuple(Target(name, count, inputs, outputs) for (name, inputs, outputs), count in counts.items())
