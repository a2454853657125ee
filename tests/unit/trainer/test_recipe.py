"""Recipes: read, overridden, refused with a reason."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.core.settings import PROJECT, RECIPE_OVERRIDES
from services.processor.stages import languages
from services.processor.stages.grammars import GRAMMARS
from services.trainer.recipes.files import available, load, read
from services.trainer.recipes.names import GRANULES, LANGUAGES
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN


@pytest.fixture
def refused(tmp_path: Path):
    """Why a recipe with these lines is refused."""

    def why(lines: str, **overrides: object) -> str:
        path = tmp_path / "mine.yaml"
        path.write_text(f"base_model: ./m\n{lines}", encoding="utf-8")
        with pytest.raises(ConfigurationError) as caught:
            load(str(path), overrides)
        return str(caught.value)

    return why


# those that ship


@pytest.mark.parametrize("name", available())
def test_every_recipe_that_ships_is_valid(name: str) -> None:
    """A recipe in the tree loads, its track carries its file's name, and it says what it is for."""
    recipe = load(name)
    assert recipe.name == name
    assert recipe.description.endswith(".")


def test_each_way_of_training_is_there() -> None:
    assert available() == [
        "demo",
        "demo-marl",
        "llama8b-humaneval",
        "qwen1.5b-marl",
        "qwen1.5b-sft",
        "qwen14b-qlora",
        "qwen32b-cpt",
        "qwen7b-full",
    ]


@pytest.mark.parametrize("name", available())
def test_the_shape_of_every_base_model_that_ships_is_known(name: str) -> None:
    """So that a plan needs no network."""
    assert load(name).base_model in KNOWN


def test_the_14b_has_the_seeds_parameters() -> None:
    """`qwen14b-qlora` is the system it came from."""
    recipe = load("qwen14b-qlora")
    assert (recipe.method, recipe.lora_r, recipe.lora_alpha) == ("qlora", 256, 512)
    assert (recipe.batch_size, recipe.gradient_accumulation_steps, recipe.max_length) == (4, 4, 4096)
    assert (recipe.learning_rate, recipe.warmup_share, recipe.weight_decay) == (2e-5, 0.03, 0.01)
    assert (recipe.early_stopping_patience, recipe.early_stopping_threshold) == (3, 0.01)
    assert (recipe.held_out_share, recipe.epochs, recipe.objective) == (0.05, 1, "completion_pairs")


def test_the_32b_has_the_seeds_parameters() -> None:
    """`qwen32b-cpt`: 32 rows a step on its two GPUs, a checkpoint every 50 steps."""
    recipe = load("qwen32b-cpt")
    assert (recipe.objective, recipe.method, recipe.lora_r, recipe.lora_alpha) == ("cpt", "lora", 64, 128)
    assert (recipe.max_length, 2 * recipe.rows_per_step, recipe.distributed) == (8192, 32, "zero2")
    assert (recipe.learning_rate, recipe.lr_schedule, recipe.warmup_share) == (5e-5, "cosine", 0.03)
    assert (recipe.epochs, recipe.weight_decay, recipe.eval_steps) == (5, 0.1, 50)
    assert recipe.granular == ("function", "struct", "trait", "impl", "module")


def test_the_7b_has_the_seeds_parameters() -> None:
    """`qwen7b-full`: all weights, DeepSpeed's AdamW as it was set there."""
    recipe = load("qwen7b-full")
    assert (recipe.method, recipe.objective, recipe.max_length) == ("full", "cpt", 4096)
    assert (recipe.batch_size, recipe.gradient_accumulation_steps, recipe.epochs) == (2, 8, 3)
    assert (recipe.learning_rate, recipe.adam_betas, recipe.weight_decay) == (2e-5, (0.9, 0.95), 0.01)
    assert (recipe.max_grad_norm, recipe.lr_schedule) == (1.0, "constant")


def test_the_llama_has_the_seeds_parameters() -> None:
    """`llama8b-humaneval`, but for its training data: that was the test."""
    recipe = load("llama8b-humaneval")
    assert (recipe.method, recipe.lora_r, recipe.lora_alpha) == ("qlora", 16, 32)
    assert (recipe.batch_size, recipe.gradient_accumulation_steps) == (1, 4)
    assert (recipe.max_length, recipe.epochs, recipe.eval_steps) == (2048, 3, 100)


# names


def test_kinds_of_units_are_those_the_processor_cuts() -> None:
    """Trainer and processor know each other through the database only: this keeps their words together."""
    page = (PROJECT / "docs" / "reference" / "units.md").read_text(encoding="utf-8")
    assert f"a {', '.join(GRANULES[:-1])} or {GRANULES[-1]}" in page


def test_languages_are_those_the_processor_names() -> None:
    assert set(LANGUAGES) == languages.ALL
    assert set(GRAMMARS) <= set(LANGUAGES)


# overrides


@pytest.mark.parametrize("field", RECIPE_OVERRIDES)
def test_what_the_environment_may_override_is_a_field(field: str) -> None:
    assert field in Recipe.model_fields


def test_the_environment_overrides_by_name() -> None:
    """Only what is given changes."""
    recipe = load("demo", {"batch_size": 7})
    assert (recipe.batch_size, recipe.lora_r) == (7, 16)


def test_an_impossible_value_says_where_it_comes_from() -> None:
    """Field, value, limit, and the environment if it was that."""
    with pytest.raises(
        ConfigurationError, match=r"batch_size=0 \(from BATCH_SIZE in the environment\): must be at least 1"
    ):
        load("demo", {"batch_size": 0})


def test_an_override_that_does_not_go_with_the_recipe_is_named() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"lora_r=64 has no effect with method=full.*\(from LORA_R in the environment",
    ):
        load("qwen7b-full", {"lora_r": 64})


# files


def test_an_unknown_recipe_names_the_nearest() -> None:
    """A slip of the pen costs no search."""
    with pytest.raises(ConfigurationError, match=r"RECIPE=qwen14b.*did you mean qwen14b-qlora"):
        load("qwen14b")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "not YAML"),
        ("- a\n- b\n", "must hold fields as `name: value`, not list"),
        ("base_model: ./m\nseed: 1\nseed: 2\n", "seed stands there twice"),
        ("base_model: ./m\n1: 2\n", "1 is not a field"),
        ("description: nothing\n", "base_model is missing"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    """Not with a traceback."""
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=reason):
        load(str(path))


def test_a_name_in_the_file_goes_before_the_files_own(tmp_path: Path) -> None:
    """The same way of training may have several tracks."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: theirs\nbase_model: ./m\n")
    assert load(str(path)).name == "theirs"


# fields, one by one


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("learning_rat: 1e-4", "learning_rat is not a field: did you mean learning_rate?"),
        ("gradient_checkpoint: true", "did you mean gradient_checkpointing?"),
        ("method: qlorra", "method='qlorra': must be 'lora', 'qlora' or 'full': did you mean qlora?"),
        ("lora_r: 5000", "lora_r=5000: must be at most 1024"),
        ("learning_rate: 0", "learning_rate=0: must be above 0"),
        ("learning_rate: .nan", "learning_rate=nan: must be a finite number"),
        ("epochs: .inf", "epochs=inf: must be a finite number"),
        ("batch_size: 1.5", "batch_size=1.5: must be a whole number"),
        ("batch_size: true", "batch_size=True: must not be true or false"),
        ("compile: maybe", "compile='maybe': must be true or false"),
        ("languages: python", "languages='python': must be a list, as in [a, b]"),
        ("adam_betas: [0.9, 1.0]", "adam_betas=[0.9, 1.0]: each must be at least 0 and less than 1"),
        ("adam_betas: [0.9, 0.95, 0.99]", "must have at most 2 items"),
        ("gradient_checkpointing: 2", "gradient_checkpointing=2 must be true or false"),
    ],
)
def test_an_impossible_field_says_what_is_possible(line: str, reason: str, refused) -> None:
    assert reason in refused(line)


def test_every_problem_is_named_at_once(refused) -> None:
    """Not one a try."""
    said = refused("lora_r: 0\nseed: -1\nmethode: full\n")
    assert all(name in said for name in ("lora_r=0", "seed=-1", "methode is not a field"))


@given(field=st.sampled_from(sorted(Recipe.model_fields)), data=st.data())
def test_a_letter_too_few_is_recognised(field: str, data: st.DataObject) -> None:
    """Whichever letter of whichever field."""
    at = data.draw(st.integers(0, len(field) - 1))
    wrong = field[:at] + field[at + 1 :]
    if wrong in Recipe.model_fields or len(wrong) < 3:
        return
    with pytest.raises(ConfigurationError, match=f"{wrong} is not a field: did you mean"):
        load("demo", {wrong: 1})


# fields that exclude one another


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            "method: full\nuse_dora: true",
            "use_dora=True has no effect with method=full: set method to lora or qlora",
        ),
        ("method: full\ninit_lora_weights: pissa", "init_lora_weights=pissa has no effect with method=full"),
        ("method: full\ntarget_modules: [q_proj]", "target_modules=[q_proj] has no effect with method=full"),
        ("method: full\nlora_dropout: 0.1", "lora_dropout=0.1 has no effect with method=full"),
        ("fim_rate: 0.5", "fim_rate=0.5 has no effect with objective=completion_pairs: set objective to cpt"),
        ("granular: [function]", "granular=[function] has no effect with objective=completion_pairs"),
        ("repository_context: true", "repository_context=True has no effect with objective=completion_pairs"),
        ("objective: cpt\nfim_spm_rate: 1", "fim_spm_rate=1.0 has no effect with fim_rate=0: set fim_rate"),
        ("objective: cpt\ngranular: [functoin]", "functoin is not a kind of unit: did you mean function?"),
        ("lr_restarts: 5", "lr_restarts=5 has no effect with lr_schedule=cosine: set lr_schedule to"),
        ("method: qlora\ndistributed: zero2", "distributed=zero2 cannot shard a base in NF4"),
        ("method: full\ndistributed: ddp", "method=full: set distributed to auto, fsdp2, zero2, zero3"),
        ("method: qlora\ndistributed: fsdp2", "set distributed to ddp or auto, or method to lora"),
        ("method: qlora\ninit_lora_weights: pissa", "set method to lora, or leave init_lora_weights out"),
        ("method: lora\ninit_lora_weights: pissa\nuse_dora: true", "leave one of them out"),
        ("languages: [pyton]", "pyton is not a language: did you mean python?"),
        ("languages: []", "languages=[] leaves nothing to train on"),
        ("language_weights: {python: -1}", "python has -1.0, a weight must be at least 0"),
        ("language_weights: {python: 0, '*': 0}", "at least one weight must be above 0"),
        (
            "languages: [python]\nlanguage_weights: {rust: 1}",
            "rust is not one of `languages` (there are: python, *)",
        ),
        ("languages: [rust]\nrename_share: 0.5", "rename_share=0.5 renames identifiers in Python only"),
        ("target_modules: []", "target_modules=[] leaves nothing to train"),
        ("target_modules: [all-linear, q_proj]", "all-linear stands alone"),
        ("min_chars: 100\nmax_chars: 50", "min_chars=100 is above max_chars=50"),
        (
            "recomputation: none\ngradient_checkpointing: true",
            "gradient_checkpointing is another name of recomputation",
        ),
    ],
)
def test_an_impossible_combination_says_what_to_do(lines: str, reason: str, refused) -> None:
    assert reason in refused(lines)


@pytest.mark.parametrize(
    "lines",
    [
        "method: lora\ndistributed: zero2",
        "method: full\ndistributed: fsdp2",
        "method: full\nlora_r: 16",
        "objective: cpt\nfim_rate: 0.5\nfim_spm_rate: 1\ngranular: [function]",
        "lr_schedule: cosine_with_restarts\nlr_restarts: 5",
        "languages: [python, rust]\nlanguage_weights: {rust: 2, '*': 1}",
        "learning_rate: 2e-5",
    ],
)
def test_a_possible_combination_is_taken(lines: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"base_model: ./m\n{lines}\n")
    assert load(str(path))


# recipes that are stored


@pytest.mark.parametrize("name", available())
def test_a_recipe_read_back_from_the_ledger_is_the_same(name: str) -> None:
    """A round is taken up with the recipe it began with, as JSON has it."""
    recipe = load(name)
    assert Recipe.model_validate(json.loads(recipe.model_dump_json())) == recipe


BEFORE = {  # an open round's recipe as the version before wrote it: every field it had
    "name": "demo", "description": "A first adapter", "base_model": "./m", "revision": None, "method": "lora",
    "lora_r": 16, "lora_alpha": 32, "lora_dropout": 0.05, "target_modules": ["all-linear"],
    "languages": ["python"], "min_chars": 50, "max_chars": 12000, "max_contents": 18, "max_length": 512,
    "held_out_share": 0.05, "held_out_min": 24, "validation_share": 0.02, "validation_min": 10,
    "held_out_pairs": 1, "batch_size": 2, "gradient_accumulation_steps": 2, "learning_rate": 0.001,
    "lr_schedule": "constant_with_warmup", "warmup_share": 0.1, "weight_decay": 0.01, "epochs": 1.0,
    "eval_steps": 11, "early_stopping_patience": 3, "early_stopping_threshold": 0.01,
    "gradient_checkpointing": True, "use_flash_attention": True, "dataloader_num_workers": 0, "seed": 42,
    "min_improvement": 0.0, "confidence": 0.95,
}  # fmt: skip


@pytest.mark.parametrize(("checkpointing", "recomputation"), [(True, "full"), (False, "none")])
def test_an_open_round_of_the_version_before_is_taken_up(checkpointing: bool, recomputation: str) -> None:
    """Its fields have other names and words now, and mean the same."""
    recipe = Recipe.model_validate({**BEFORE, "gradient_checkpointing": checkpointing})
    assert recipe.recomputation == recomputation
    assert recipe.lr_schedule == "constant"
    kept = BEFORE.keys() - {"gradient_checkpointing", "lr_schedule"}
    written = recipe.model_dump(mode="json")
    assert {name: written[name] for name in kept} == {name: BEFORE[name] for name in kept}


def test_what_read_gives_is_what_the_file_says(tmp_path: Path) -> None:
    """Without defaults: `ratchet recipe show` tells who says what."""
    path = tmp_path / "mine.yaml"
    path.write_text("base_model: ./m\nlora_r: 8\n")
    assert read(path) == {"base_model": "./m", "lora_r": 8}


def test_a_recipe_needs_no_torch() -> None:
    """The daemon and the command line read recipes."""
    code = "import sys; from services.trainer.recipes import files, fit; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
