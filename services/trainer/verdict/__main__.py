"""The process behind `ratchet verdict`: held-out code as JSON on standard input, the answers of four arms on
standard output, its progress on standard error as lines of `progress DONE TOTAL WHAT`.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from services.core.errors import RatchetError
from services.core.models import Json
from services.core.settings import Settings, from_environment
from services.trainer import inquiry, model
from services.trainer.comparing.questions import content_of
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import SampleSource
from services.trainer.suites import completion
from services.trainer.suites.completion import Item
from services.trainer.verdict import arms
from services.trainer.verdict.answers import Arm, Run
from services.trainer.verdict.arms import Asked
from services.trainer.verdict.corpus import Text
from services.trainer.verdict.retrieval import Index

BEFORE_LINES = 30  # of an item's prefix, for the page


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    return inquiry.answer(lambda sent: measured(sent, from_environment()))


def measured(sent: Json, settings: Settings) -> Json:
    """The runs of four arms over the same items, what retrieval took, and the items for the page.

    Raises ConfigurationError for a recipe whose model cannot do it, RatchetError without items.
    """
    recipe = Recipe.model_validate({**sent["recipe"], "completion_items": sent["items"]})
    source = model.locate(recipe.base_model, recipe.revision, settings.cache_dir)
    tokenizer = model.load_tokenizer(source, settings.hub_token)
    contents = [content_of(each) for each in sent["held_out"]]
    items = completion.items(contents, recipe, tokenizer)
    if not items:
        raise RatchetError(
            f"none of the {len(contents)} held-out files has a line or a block that is worth asking for: add"
            " more code, and let a round run"
        )
    began = time.perf_counter()
    indexes = {name: Index(texts) for name, texts in _by_source(sent["corpus"], contents).items()}
    index_seconds = time.perf_counter() - began
    asked = arms.ask(items, indexes, recipe, tokenizer)
    with _loaded(recipe, source, settings.hub_token, Path(sent["champion"])) as trained:
        runs = [run.as_json() for run in _runs(trained, tokenizer, asked, recipe, Path(sent["champion"]))]
    return {
        "runs": runs,
        "retrieval": {
            "windows": sum(map(len, indexes.values())),
            "index_seconds": index_seconds,
            **_searches(asked),
        },
        "items": [_shown(item) for item in items],
        "device": torch.cuda.get_device_name()
        if model.has_gpu()
        else f"{torch.get_num_threads()} CPU threads",
    }


@contextmanager
def _loaded(recipe: Recipe, source: model.Source, token: str | None, champion: Path) -> Iterator[Any]:
    with TemporaryDirectory(prefix="ratchet-verdict-") as folder:
        base = model.load_base(recipe, source, token)
        yield model.for_training(base, recipe, champion, Path(folder))


def _runs(
    trained: Any, tokenizer: Any, asked: Sequence[Asked], recipe: Recipe, champion: Path
) -> Iterator[Run]:
    """The base's two arms, then the champion's."""
    chat = recipe.objective == "completion_pairs"
    completion.measure(trained, tokenizer, [asked[0].plain], chat=chat)  # what is slow the first time only
    with model.as_base(trained, has_champion=True):
        for arm in (Arm.BASE, Arm.RETRIEVAL):
            yield arms.write(trained, tokenizer, asked, arm, inquiry.progress, chat=chat)
    model.begin_from(trained, champion)
    for arm in (Arm.ADAPTER, Arm.BOTH):
        yield arms.write(trained, tokenizer, asked, arm, inquiry.progress, chat=chat)


def _by_source(corpus: Sequence[Json], contents: Sequence[SampleSource]) -> dict[str, list[Text]]:
    """The texts of each source that something is held out of."""
    found: dict[str, list[Text]] = {content.repository: [] for content in contents}
    for fields in corpus:
        found[fields["source"]].append(Text(**fields))
    return found


def _searches(asked: Sequence[Asked]) -> dict[str, float]:
    milliseconds = np.array([each.search_seconds for each in asked]) * 1000
    p50, p90 = np.quantile(milliseconds, (0.5, 0.9))
    found = sum(each.snippets for each in asked) / len(asked)
    return {"ms_p50": float(p50), "ms_p90": float(p90), "snippets": found}


def _shown(item: Item) -> dict[str, str]:
    before = "".join(item.prefix.splitlines(keepends=True)[-BEFORE_LINES:])
    return {"name": item.name, "kind": item.kind, "before": before, "wanted": item.answer}


if __name__ == "__main__":
    sys.exit(main())
