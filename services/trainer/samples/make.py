"""From a round's contents to its samples, as the recipe says."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from services.trainer.recipes.recipe import Recipe
from services.trainer.samples import curriculum, documents, fim, repositories
from services.trainer.samples.chance import draw
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.pairs import completion_pairs
from services.trainer.samples.renaming import renamed
from services.trainer.samples.sample import Sample, Tokenizer
from services.trainer.samples.source import SampleSource

Purpose = Literal["train", "judge"]
BATCH_CHARACTERS = 500_000  # encoded at once: some seconds' work


def make(
    contents: Sequence[SampleSource],
    recipe: Recipe,
    tokenizer: Tokenizer,
    *,
    purpose: Purpose,
    round_number: int,
    on_content: Callable[[int, int], None] | None = None,
) -> list[Sample]:
    """Every sample of the contents, each at most `recipe.max_length` tokens.

    "judge": the contents in order, whole files and nothing added: what is measured does not change from
    round to round. "train": all that the recipe says, in the order to be trained in: simple ones first
    with a curriculum, otherwise shuffled by the recipe's seed and the round's number. `on_content` hears
    how many contents are done, of how many. Raises ConfigurationError when the tokenizer lacks what the
    recipe wants of it.
    """
    encoder = Encoder(tokenizer)
    done = 0

    def progress(count: int) -> None:
        nonlocal done
        done += count
        if on_content is not None:
            on_content(done, len(contents))

    if purpose == "judge":
        return list(_judged(contents, recipe, encoder, progress))
    made = list(_trained(contents, recipe, encoder, round_number, progress))
    if recipe.curriculum:
        return curriculum.in_order(made, contents)
    random.Random(f"{recipe.seed} {round_number}").shuffle(made)
    return made


def _judged(
    contents: Sequence[SampleSource], recipe: Recipe, encoder: Encoder, progress: Callable[[int], None]
) -> Iterator[Sample]:
    for batch in _batches(contents):
        if recipe.objective == "completion_pairs":
            yield from completion_pairs(batch, encoder, recipe.max_length)
        else:
            yield from documents.samples(documents.files(batch), recipe, encoder)
        progress(len(batch))


def _trained(
    contents: Sequence[SampleSource],
    recipe: Recipe,
    encoder: Encoder,
    round_number: int,
    progress: Callable[[int], None],
) -> Iterator[Sample]:
    special = fim.tokens(encoder, recipe.base_model) if _wants_fim(recipe) else None
    for batch in _batches(contents):
        copies = _renamed(batch, recipe, round_number)
        for group, note in ((batch, ""), (copies, ", renamed")):
            for sample in _samples(group, recipe, encoder, special, round_number, is_copy=bool(note)):
                yield replace(sample, kind=sample.kind + note) if note else sample
        progress(len(batch))
    if recipe.objective == "cpt" and recipe.repository_context:
        for document in repositories.samples(contents, recipe.max_length, encoder):
            yield from document
            progress(0)  # a sign of life


def _samples(
    batch: Sequence[SampleSource],
    recipe: Recipe,
    encoder: Encoder,
    special: fim.Tokens | None,
    round_number: int,
    *,
    is_copy: bool,
) -> Iterator[Sample]:
    if recipe.objective == "completion_pairs":
        yield from completion_pairs(batch, encoder, recipe.max_length)
        return
    # With repository context a file is seen among its neighbours, and its copy alone.
    wanted = [] if recipe.repository_context and not is_copy else documents.files(batch)
    if not is_copy:
        wanted += documents.granules(batch, recipe.granular)
    yield from documents.samples(wanted, recipe, encoder, special=special, round_number=round_number)


def _wants_fim(recipe: Recipe) -> bool:
    return recipe.objective == "cpt" and recipe.fim_rate > 0


def _renamed(batch: Sequence[SampleSource], recipe: Recipe, round_number: int) -> list[SampleSource]:
    copies = []
    for content in batch if recipe.rename_share else ():
        random_ = draw(recipe.seed, round_number, "rename", content.sha256)
        if random_.random() < recipe.rename_share and (copy := renamed(content, random_)) is not None:
            copies.append(copy)
    return copies


def _batches(contents: Sequence[SampleSource]) -> Iterator[Sequence[SampleSource]]:
    start = size = 0
    for at, content in enumerate(contents):
        size += len(content.text)
        if size >= BATCH_CHARACTERS:
            yield contents[start : at + 1]
            start, size = at + 1, 0
    if start < len(contents):
        yield contents[start:]
