"""The samples of a round: their order, and what is added to them."""

import hashlib

from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.curriculum import nesting
from services.trainer.samples.make import make
from services.trainer.samples.source import SampleSource, Unit
from tests.tiny_model import standard_library
from tests.unit.trainer.known_tokenizers import tokenizer

RECIPE = Recipe(name="t", base_model="./model", max_length=512)
CONTENTS = [
    SampleSource(number, hashlib.sha256(path.read_bytes()).digest(), "python", path.read_text())
    for number, path in enumerate(standard_library(12))
]


def ids(recipe: Recipe, purpose: str = "train", number: int = 1) -> list[int]:
    made = make(CONTENTS, recipe, tokenizer("qwen"), purpose=purpose, round_number=number)  # type: ignore[arg-type]
    return [sample.content_id for sample in made]


def test_training_is_shuffled_otherwise_in_every_round() -> None:
    """By the recipe's seed and the round's number, and the same whenever it is asked for."""
    first = ids(RECIPE)
    assert first == ids(RECIPE)
    assert first != sorted(first)
    assert first != ids(RECIPE, number=2)
    assert first != ids(RECIPE.model_copy(update={"seed": 1}))
    assert sorted(first) == sorted(ids(RECIPE, number=2))


def test_what_is_judged_is_in_order_and_nothing_is_added() -> None:
    """Whatever the recipe adds to training."""
    added = RECIPE.model_copy(update={"curriculum": True, "rename_share": 1.0, "seed": 7})
    assert ids(added, "judge") == ids(RECIPE, "judge", number=5) == sorted(ids(RECIPE, "judge"))


def test_a_curriculum_begins_with_what_is_short_and_flat() -> None:
    """The first fifth is simpler than the last, in tokens and in nesting."""
    recipe = RECIPE.model_copy(update={"curriculum": True})
    made = make(CONTENTS, recipe, tokenizer("qwen"), purpose="train", round_number=1)
    nests = {content.content_id: nesting(content) for content in CONTENTS}
    hard = [len(sample.ids) * (1 + nests[sample.content_id]) for sample in made]
    assert hard == sorted(hard)
    fifth = len(made) // 5
    assert sum(len(s.ids) for s in made[:fifth]) < sum(len(s.ids) for s in made[-fifth:])
    assert ids(recipe) == ids(recipe, number=2)


def test_nesting_is_of_lines_and_units() -> None:
    """A level of indentation each counts as much as a unit around a unit."""
    assert nesting(SampleSource(1, b"", "c", "a\nb\n\n")) == 0.0
    assert nesting(SampleSource(1, b"", "c", "a\n\tb\n    c\n        d\n")) == 1.0
    units = (Unit("class", "A", 0, 50, 1, 5, 0), Unit("method", "b", 10, 20, 2, 3, 10))
    assert nesting(SampleSource(1, b"", "c", "a\n", 0, units)) == 0.5


def test_a_renamed_copy_is_seen_beside_its_original() -> None:
    """Of the share that the recipe says; the same content under the same id."""
    recipe = RECIPE.model_copy(update={"rename_share": 1.0})
    made = make(CONTENTS, recipe, tokenizer("qwen"), purpose="train", round_number=1)
    copies = [sample for sample in made if sample.kind == "completion, renamed"]
    originals = [sample for sample in made if sample.kind == "completion"]
    assert sorted(sample.content_id for sample in originals) == sorted(ids(RECIPE))
    assert {sample.content_id for sample in copies} <= {sample.content_id for sample in originals}
    assert len({sample.content_id for sample in copies}) > 6
    some = RECIPE.model_copy(update={"rename_share": 0.3})
    assert len(ids(RECIPE)) < len(ids(some)) < len(made)


def test_progress_is_told_of_every_content() -> None:
    """A long making of samples is no silence."""
    told: list[tuple[int, int]] = []
    make(CONTENTS, RECIPE, tokenizer("qwen"), purpose="judge", round_number=1,
         on_content=lambda done, total: told.append((done, total)))  # fmt: skip
    assert told[-1] == (12, 12)


def test_ids_take_four_bytes_each() -> None:
    """A hundred thousand contents fit into memory."""
    (first, *_) = make(CONTENTS, RECIPE, tokenizer("qwen"), purpose="train", round_number=1)
    assert memoryview(first.ids).itemsize == 4  # type: ignore[arg-type]
