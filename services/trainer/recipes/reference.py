"""docs/reference/recipes.md from the fields: `python -m services.trainer.recipes.reference` writes it."""

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from services.core.settings import PROJECT, RECIPE_OVERRIDES
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.combinations import OF_CONTENTS, SHARDED, WITHOUT_EFFECT
from services.trainer.recipes.names import LANGUAGES
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import PROFILES, SECTION, Reinforcement
from services.trainer.recipes.seed_names import OF_THE_RECIPE, OF_THE_SECTION

PAGE = PROJECT / "docs" / "reference" / "recipes.md"
SECTIONS = {  # first field → heading
    "name": "What it is called",
    "base_model": "The model",
    "objective": "What it sees",
    "batch_size": "How it learns",
    "min_improvement": "When the candidate is better",
}
OF_A_TEAM = {  # first field of the section `reinforcement` → heading
    "algorithm": "The team, and what it works on",
    "context_window": "Episodes",
    "iterations": "Updates",
}
TABLE = "\n{} {}\n\n| field | value | default | meaning |\n|---|---|---|---|\n"
OTHER_NAMES = {**OF_THE_RECIPE, **OF_THE_SECTION}
LIMITS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}", "lt": "< {}", "pattern": "`{}`"}
TYPES = {
    Reinforcement: "fields by name",
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
}
OPENING = f"""\
<!-- Written by `python -m services.trainer.recipes.reference`: edit recipe.py there instead. -->

# Recipes

A recipe is a YAML file with these fields. What it leaves out has the default. A field that is not here, a
value beyond its limit, a field without effect beside the others and a key that stands there twice are errors
that name it. Shares are fractions of 1, lengths are tokens unless named otherwise.
[How to write one](../how-to/recipes.md).

Languages are {", ".join(f"`{name}`" for name in LANGUAGES)}.

## Those that ship

| name | base model | method | objective | |
|---|---|---|---|---|
"""
TEAM = """

## Reinforcement

The section `reinforcement` of a recipe with `objective: reinforcement`. Of the fields above those of the
model apply, `batch_size`, `recomputation`, `learning_rate`, `weight_decay`, `max_grad_norm`, `adam_betas`,
`early_stopping_patience` (evaluations), `seed`, and those of the gate. [What a round
does](../explanation/reinforcement.md).
"""
NAMES = f"""
### What others call it

MARFT's names are read too, beside the fields of the recipe or in the section:
{", ".join(f"`{theirs}` is `{ours}`" for theirs, ours in OTHER_NAMES.items() if theirs != ours)};
`load_in_4bit` is method `qlora` or `lora`, `num_env_steps` over `n_rollout_threads` × `episode_length` is
`iterations`, `gradient_cp_steps` above 1 is `recomputation: full`, `n_agents` is checked against the
profiles. What has no field here, such as `wandb_project`, is left out with a word on what there is instead.
"""
CLOSING = f"""\

## What excludes what

- A field with “only with” is an error beside another value, unless it has its default.
- `init_lora_weights: pissa` needs method `lora`, without `use_dora`.
- A base in NF4 is not sharded: {", ".join(f"`{name}`" for name in SHARDED)} need method `lora` or `full`.
- With `objective: reinforcement` there is no `method: full`, no `init_lora_weights: pissa`, no `fp8`, and one
  device.
- `method: full` is always split over the devices: not `distributed: ddp`.
- `target_modules` are linear layers of the base model, `lora_r` is at most the smaller side of each,
  `max_length` at most the model's positions; `completion_pairs` need a chat template, `fim_rate` a tokenizer
  with the tokens. `ratchet recipe check` looks at these, without the weights.
- `gradient_checkpointing: true` is read as `recomputation: full`, `false` as `none`.
"""


def page() -> str:
    """The whole page, in Markdown."""
    top = _fields(Recipe.model_fields, SECTIONS, "##")
    section = _fields(Reinforcement.model_fields, OF_A_TEAM, "###")
    return "".join([OPENING, *_shipped(), *top, TEAM, *section, NAMES, CLOSING])


def _shipped() -> Iterator[str]:
    for name in recipe_files.available():
        recipe = recipe_files.load(name)
        yield f"| `{name}` | `{recipe.base_model}` | {recipe.method} | {recipe.objective}"
        yield f" | {recipe.description} |\n"


def _fields(fields: Mapping[str, FieldInfo], sections: Mapping[str, str], level: str) -> Iterator[str]:
    for name, field in fields.items():
        if name in sections:
            yield TABLE.format(level, sections[name])
        yield f"| `{name}` | {_value(field)} | {_default(name, field)} | {_meaning(name, field)} |\n"


def _value(field: FieldInfo) -> str:
    limits = [
        template.format(limit)
        for constraint in field.metadata
        for key, template in LIMITS.items()
        if (limit := getattr(constraint, key, None)) is not None
    ]
    return ", ".join([_type(field.annotation), *limits])


def _type(annotation: Any) -> str:
    """A field's type in words: choices by name, `None` left to the default."""
    arguments = get_args(annotation)
    if isinstance(annotation, UnionType):
        return " or ".join(_type(part) for part in arguments if part is not NoneType)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if get_origin(annotation) is tuple:
        return "list" if arguments[-1] is ... else f"{len(arguments)} numbers"
    if get_origin(annotation) is dict:
        return "numbers by name"
    return TYPES[annotation]


def _default(name: str, field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "the file's" if name == "name" else "must be given"
    if field.default is None or field.default == "":
        return "–"
    if isinstance(field.default, bool):
        return "true" if field.default else "false"
    if field.default == PROFILES:
        return " and ".join(profile.role for profile in PROFILES)
    if isinstance(field.default, tuple):
        return f"[{', '.join(map(str, field.default))}]"
    return str(field.default)


def _meaning(name: str, field: FieldInfo) -> str:
    said = [str(field.description)]
    if name in WITHOUT_EFFECT:
        other, values = WITHOUT_EFFECT[name]
        said.append(f"Only with `{other}` {' or '.join(f'`{value}`' for value in values)}.")
    if name in OF_CONTENTS:
        said.append(f"Not with `objective: {SECTION}`.")
    if name in RECIPE_OVERRIDES:
        said.append(f"From the environment: `{name.upper()}`.")
    return " ".join(said).replace("|", "\\|")


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
