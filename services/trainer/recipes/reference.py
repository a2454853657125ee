"""docs/reference/recipes.md from the fields: `python -m services.trainer.recipes.reference` writes it."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from services.core.settings import PROJECT, RECIPE_OVERRIDES
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.combinations import SHARDED, WITHOUT_EFFECT
from services.trainer.recipes.names import LANGUAGES
from services.trainer.recipes.recipe import Recipe

PAGE = PROJECT / "docs" / "reference" / "recipes.md"
SECTIONS = {  # first field → heading
    "name": "What it is called",
    "base_model": "The model",
    "objective": "What it sees",
    "batch_size": "How it learns",
    "min_improvement": "When the candidate is better",
}
LIMITS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}", "lt": "< {}", "pattern": "`{}`"}
TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text"}
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
CLOSING = f"""\

## What excludes what

- A field with “only with” is an error beside another value, unless it has its default.
- `init_lora_weights: pissa` needs method `lora`, without `use_dora`.
- A base in NF4 is not sharded: {", ".join(f"`{name}`" for name in SHARDED)} need method `lora` or `full`.
- `method: full` is always split over the devices: not `distributed: ddp`.
- `target_modules` are linear layers of the base model, `lora_r` is at most the smaller side of each,
  `max_length` at most the model's positions; `completion_pairs` need a chat template, `fim_rate` a tokenizer
  with the tokens. `ratchet recipe check` looks at these, without the weights.
- `gradient_checkpointing: true` is read as `recomputation: full`, `false` as `none`.
"""


def page() -> str:
    """The whole page, in Markdown."""
    return "".join([OPENING, *_shipped(), *_fields(), CLOSING])


def _shipped() -> Iterator[str]:
    for name in recipe_files.available():
        recipe = recipe_files.load(name)
        yield f"| `{name}` | `{recipe.base_model}` | {recipe.method} | {recipe.objective}"
        yield f" | {recipe.description} |\n"


def _fields() -> Iterator[str]:
    for name, field in Recipe.model_fields.items():
        if name in SECTIONS:
            yield f"\n## {SECTIONS[name]}\n\n| field | value | default | meaning |\n|---|---|---|---|\n"
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
    if isinstance(field.default, tuple):
        return f"[{', '.join(map(str, field.default))}]"
    return str(field.default)


def _meaning(name: str, field: FieldInfo) -> str:
    said = [str(field.description)]
    if name in WITHOUT_EFFECT:
        other, values = WITHOUT_EFFECT[name]
        said.append(f"Only with `{other}` {' or '.join(f'`{value}`' for value in values)}.")
    if name in RECIPE_OVERRIDES:
        said.append(f"From the environment: `{name.upper()}`.")
    return " ".join(said).replace("|", "\\|")


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
