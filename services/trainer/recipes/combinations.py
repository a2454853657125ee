"""Which fields of a recipe exclude one another, and what to do about it. Pure: values in, problems out."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from services.trainer.recipes.names import ALL_LINEAR, GRANULES, LANGUAGES, OTHERS

if TYPE_CHECKING:
    from services.trainer.recipes.recipe import Recipe

RENAMED = {"gradient_checkpointing": "recomputation"}  # what others call a field → what it is here
ADAPTERS = ("lora", "qlora")
WITHOUT_EFFECT = {  # field → the field it depends on, and the values with which it has an effect
    "lora_r": ("method", ADAPTERS),
    "lora_alpha": ("method", ADAPTERS),
    "lora_dropout": ("method", ADAPTERS),
    "target_modules": ("method", ADAPTERS),
    "use_dora": ("method", ADAPTERS),
    "use_rslora": ("method", ADAPTERS),
    "init_lora_weights": ("method", ADAPTERS),
    "fp8": ("method", ADAPTERS),
    "fim_rate": ("objective", ("cpt",)),
    "fim_spm_rate": ("objective", ("cpt",)),
    "fim_ast_rate": ("objective", ("cpt",)),
    "granular": ("objective", ("cpt",)),
    "repository_context": ("objective", ("cpt",)),
    "lr_restarts": ("lr_schedule", ("cosine_with_restarts",)),
}
OF_CONTENTS = (  # fields of rounds that train on code, without effect where tasks are practised
    "languages", "language_weights", "min_chars", "max_chars", "max_contents", "max_length",
    "held_out_share", "held_out_min", "held_out_pairs", "held_out_max", "validation_share", "validation_min",
    "split", "curriculum", "rename_share", "replay_share", "solutions_share", "source_share",
    "gradient_accumulation_steps", "lr_schedule", "warmup_share", "epochs", "max_steps", "eval_steps",
    "early_stopping_threshold", "spike_factor", "max_rollbacks", "dataloader_num_workers",
    "logged_predictions", "completion_items", "planted_secrets",
)  # fmt: skip
SHARDED = ("fsdp2", "zero2", "zero3")


@dataclass(frozen=True)
class Problem:
    """Fields that cannot be as they are, and what is wrong with them."""

    fields: tuple[str, ...]
    said: str


class CombinationError(ValueError):
    """A recipe with problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(problem.said for problem in problems))
        self.problems = tuple(problems)


def renamed(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields under the names and in the words they have here.

    `gradient_checkpointing: true|false` is recomputation full or none, the schedule `constant_with_warmup` is
    constant. Raises CombinationError for a field that is there under both names and for another value.
    """
    fields = dict(fields)
    if fields.get("lr_schedule") == "constant_with_warmup":
        fields["lr_schedule"] = "constant"
    for theirs, ours in RENAMED.items():
        if theirs not in fields:
            continue
        wanted = fields.pop(theirs)
        if ours in fields:
            raise CombinationError(
                [Problem((ours,), f"{theirs} is another name of {ours}: leave {theirs} out")]
            )
        if not isinstance(wanted, bool):
            raise CombinationError([Problem((ours,), f"{theirs}={wanted!r} must be true or false")])
        fields[ours] = "full" if wanted else "none"
    return fields


def problems(recipe: "Recipe") -> list[Problem]:
    """Everything about the recipe that cannot be, field by field possible though it is."""
    return [
        *_without_effect(recipe),
        *_ranges(recipe),
        *_adapters(recipe),
        *_languages(recipe),
        *_granules(recipe),
        *_reinforcement(recipe),
    ]


def nearest(name: object, names: Sequence[str]) -> str:
    """`: did you mean …?` for a slip of the pen, nothing for a name that is like none."""
    close = difflib.get_close_matches(str(name), names, 1, 0.5)
    return f": did you mean {close[0]}?" if close else ""


def _without_effect(recipe: "Recipe") -> Iterator[Problem]:
    for field, (other, values) in WITHOUT_EFFECT.items():
        value, setting = getattr(recipe, field), getattr(recipe, other)
        if setting not in values and value != type(recipe).model_fields[field].default:
            yield Problem(
                (field, other),
                f"{field}={_shown(value)} has no effect with {other}={setting}:"
                f" set {other} to {' or '.join(values)}, or leave {field} out",
            )
    if recipe.fim_rate == 0:
        for field in ("fim_spm_rate", "fim_ast_rate"):
            value = getattr(recipe, field)
            if recipe.objective == "cpt" and value != type(recipe).model_fields[field].default:
                yield Problem(
                    (field, "fim_rate"),
                    f"{field}={value} has no effect with fim_rate=0: set fim_rate, or leave {field} out",
                )


def _ranges(recipe: "Recipe") -> Iterator[Problem]:
    if recipe.min_chars > recipe.max_chars:
        said = f"min_chars={recipe.min_chars} is above max_chars={recipe.max_chars}: no content would do"
        yield Problem(("min_chars", "max_chars"), said)
    if not all(0 <= beta < 1 for beta in recipe.adam_betas):
        said = f"adam_betas={_shown(recipe.adam_betas)}: each must be at least 0 and less than 1"
        yield Problem(("adam_betas",), said)


def _adapters(recipe: "Recipe") -> Iterator[Problem]:
    targets = recipe.target_modules
    if not targets:
        yield Problem(
            ("target_modules",),
            "target_modules=[] leaves nothing to train: name linear layers, or all-linear",
        )
    if ALL_LINEAR in targets and len(targets) > 1:
        said = f"target_modules={_shown(targets)}: all-linear stands alone, or layers are named"
        yield Problem(("target_modules",), said)
    if recipe.init_lora_weights == "pissa" and recipe.method == "qlora":
        yield Problem(
            ("init_lora_weights", "method"),
            "init_lora_weights=pissa takes its part out of the base's weights, which method=qlora has in NF4:"
            " set method to lora, or leave init_lora_weights out",
        )
    if recipe.init_lora_weights == "pissa" and recipe.use_dora:
        yield Problem(
            ("init_lora_weights", "use_dora"),
            "init_lora_weights=pissa changes the base that the magnitudes of use_dora belong to:"
            " leave one of them out",
        )
    if recipe.method == "full" and recipe.distributed == "ddp":
        yield Problem(
            ("distributed", "method"),
            "distributed=ddp holds all weights, gradients and moments on every device, too much for"
            f" method=full: set distributed to auto, {', '.join(SHARDED)}",
        )
    if recipe.fp8 and (recipe.lora_dropout or recipe.use_dora):
        yield Problem(
            ("fp8", "lora_dropout", "use_dora"),
            "fp8=true is for plain adapters: set lora_dropout to 0 and leave use_dora out, or leave fp8 out",
        )
    if recipe.fp8 and recipe.distributed in SHARDED:
        yield Problem(
            ("fp8", "distributed"),
            f"distributed={recipe.distributed} shards the weights that fp8=true keeps whole:"
            " set distributed to ddp or auto, or leave fp8 out",
        )
    if recipe.method == "qlora" and recipe.distributed in SHARDED:
        yield Problem(
            ("distributed", "method"),
            f"distributed={recipe.distributed} cannot shard a base in NF4:"
            " set distributed to ddp or auto, or method to lora",
        )


def _languages(recipe: "Recipe") -> Iterator[Problem]:
    if recipe.languages is not None and not recipe.languages:
        yield Problem(("languages",), "languages=[] leaves nothing to train on: name some, or leave it out")
    for name in recipe.languages or ():
        if name not in LANGUAGES:
            said = f"languages: {name} is not a language{nearest(name, LANGUAGES)}"
            yield Problem(("languages",), f"{said} (there are: {', '.join(LANGUAGES)})")
    weights = recipe.language_weights
    if weights is None:
        return
    known = (*(recipe.languages or LANGUAGES), OTHERS)
    for name, weight in weights.items():
        if name not in known:
            where = "one of `languages`" if recipe.languages else "a language"
            said = f"language_weights: {name} is not {where}{nearest(name, known)}"
            yield Problem(("language_weights",), f"{said} (there are: {', '.join(known)})")
        if weight < 0:
            said = f"language_weights: {name} has {weight}, a weight must be at least 0"
            yield Problem(("language_weights",), said)
    if not any(weight > 0 for weight in weights.values()):
        said = "language_weights leaves nothing to train on: at least one weight must be above 0"
        yield Problem(("language_weights",), said)


def _granules(recipe: "Recipe") -> Iterator[Problem]:
    for kind in recipe.granular:
        if kind not in GRANULES:
            said = f"granular: {kind} is not a kind of unit{nearest(kind, GRANULES)}"
            yield Problem(("granular",), f"{said} (there are: {', '.join(GRANULES)})")
    if recipe.rename_share > 0 and recipe.languages is not None and "python" not in recipe.languages:
        yield Problem(
            ("rename_share", "languages"),
            f"rename_share={recipe.rename_share} renames identifiers in Python only:"
            " add python to languages, or leave rename_share out",
        )


def _reinforcement(recipe: "Recipe") -> Iterator[Problem]:
    if recipe.objective == "reinforcement":
        yield from _unused_by_teams(recipe)
        yield from _impossible_for_teams(recipe)
    elif recipe.reinforcement is not None:
        said = f"reinforcement has no effect with objective={recipe.objective}"
        yield Problem(("reinforcement", "objective"), f"{said}: set objective to reinforcement")


def _unused_by_teams(recipe: "Recipe") -> Iterator[Problem]:
    unused = [
        field for field in OF_CONTENTS if getattr(recipe, field) != type(recipe).model_fields[field].default
    ]
    unused += ["lora_dropout"] if recipe.lora_dropout else []  # a team learns as it acts
    unused += ["optimizer"] if recipe.optimizer == "adamw_8bit" else []
    for field in unused:
        yield Problem(
            (field, "objective"),
            f"{field}={_shown(getattr(recipe, field))} has no effect with objective=reinforcement:"
            f" leave {field} out",
        )


def _impossible_for_teams(recipe: "Recipe") -> Iterator[Problem]:
    if recipe.method == "full":
        yield Problem(
            ("method", "objective"),
            "method=full: objective=reinforcement trains an adapter for each agent on one frozen base:"
            " set method to lora or qlora",
        )
    if recipe.init_lora_weights == "pissa":
        yield Problem(
            ("init_lora_weights", "objective"),
            "init_lora_weights=pissa changes the base that all agents share and are held close to:"
            " leave it out with objective=reinforcement",
        )
    if recipe.fp8:
        yield Problem(
            ("fp8", "objective"),
            "fp8=true is too coarse for ratios of probabilities: leave it out with objective=reinforcement",
        )
    if recipe.distributed in SHARDED:
        yield Problem(
            ("distributed", "objective"),
            f"distributed={recipe.distributed}: a round with objective=reinforcement runs on one device:"
            " leave distributed out",
        )


def _shown(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
