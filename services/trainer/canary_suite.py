"""What the canary tries: the loss of fixed texts, and what is written after fixed prompts."""

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from peft import PeftModel

from services.core.errors import CanaryError
from services.core.models import Json
from services.core.settings import Settings
from services.trainer import evaluate, model, publish
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import ALONE, Distribution
from services.trainer.generation import Request, complete
from services.trainer.packing import pack
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.sample import Sample

SUITE = Path(__file__).with_name("canary.json")
TOKENS = 256  # of a text at most
WRITTEN = 24  # tokens after a prompt
FEWEST = 8  # tokens that are enough to call a text monotonous
TOLERANCE = 0.02  # relative difference of a text's loss: bf16 and other kernels make a tenth of it


def measure(
    compute: Compute, tokenizer: Any, recipe: Recipe, distribution: Distribution = ALONE
) -> list[float]:
    """Nats of each fixed text, in order, under the model as it stands; in every process the same."""
    longest = min(TOKENS, recipe.max_length)
    samples = []
    for number, text in enumerate(texts()):
        ids = tokenizer.encode(text, add_special_tokens=False)[:longest]
        samples.append(Sample(number, ids, 0, 0, len(ids), len(text.encode())))
    rows = pack(samples, recipe.max_length)
    losses = evaluate.losses(
        compute,
        rows,
        rows_at_once=1,
        pad_id=tokenizer.pad_token_id or 0,
        longest=recipe.max_length,
        distribution=distribution,
    )
    return [loss.nats for loss in losses]


def prompts() -> list[str]:
    """The fixed prompts, in order."""
    return list(_suite()["prompts"])


def texts() -> list[str]:
    """The fixed texts, in order."""
    return list(_suite()["texts"])


def greedy(trained: Any, tokenizer: Any) -> list[list[int]]:
    """What the model writes after each fixed prompt, greedily, as token ids: the manifest's `greedy`.

    Recorded of the candidate as it was judged, so that what is merged or served can be held against it.
    """
    asked = [tokenizer.encode(text, add_special_tokens=False) for text in prompts()]
    return [list(ids) for ids in _written(trained, tokenizer, asked)]


def check_losses(found: Sequence[float], expected: Sequence[float]) -> None:
    """Raises CanaryError for a loss that is not finite, or not that of the candidate that was judged."""
    if not all(map(math.isfinite, found)):
        raise CanaryError("its loss on the canary's texts is not finite")
    if len(found) != len(expected):
        raise CanaryError(
            f"the canary has {len(found)} texts, {len(expected)} were measured before publishing"
        )
    for number, (now, before) in enumerate(zip(found, expected, strict=True), 1):
        if abs(now - before) > TOLERANCE * before:
            raise CanaryError(
                f"its loss on the canary's text {number} is {now:.2f} nats, {before:.2f} before publishing:"
                f" more than {TOLERANCE:.0%} apart"
            )


def check_outputs(written: Sequence[Sequence[int]], base: Callable[[], Sequence[Sequence[int]]]) -> None:
    """Raises CanaryError when all it writes is one token over and over, unless its base model does so too."""
    if written and all(map(_monotonous, written)) and not all(map(_monotonous, base())):
        raise CanaryError("it answers every prompt of the canary with one token, over and over")


def _monotonous(ids: Sequence[int]) -> bool:
    return len(ids) >= FEWEST and len(set(ids)) == 1


def run(folder: Path, manifest: Json, settings: Settings) -> list[float]:
    """The loss of each text of a published adapter or model, loaded afresh, in nats.

    Raises CanaryError if it fails; whatever the base model fails with, which is not the adapter's fault.
    """
    recipe = Recipe.model_validate(manifest["recipe"])
    base, tokenizer = _base(folder, manifest, recipe, settings)
    try:
        tried = _tried(base, folder, manifest).eval()
        asked = [tokenizer.encode(text, add_special_tokens=False) for text in prompts()]
        check_outputs(_written(tried, tokenizer, asked), lambda: _of_base(tried, tokenizer, asked))
        found = measure(Compute(tried), tokenizer, recipe)
    except (RuntimeError, ValueError, KeyError, OSError) as exc:
        if isinstance(exc, CanaryError) or _out_of_memory(exc):
            raise
        raise CanaryError(f"it cannot be loaded and run: {exc}") from exc
    check_losses(found, manifest["canary"])
    return found


def _tried(base: Any, folder: Path, manifest: Json) -> Any:
    """What answers: a whole model, an adapter, or of a team, whose adapters are all loaded, the last role."""
    match manifest["kind"]:
        case "model":
            return base
        case publish.TEAM:
            *others, answering = manifest["roles"]
            team = PeftModel.from_pretrained(base, str(folder / answering), adapter_name=answering)
            for role in others:
                team.load_adapter(str(folder / role), role)
            return team
        case _:
            return PeftModel.from_pretrained(base, str(folder))


def _base(folder: Path, manifest: Json, recipe: Recipe, settings: Settings) -> tuple[Any, Any]:
    """The base model, or the whole one that was published, and the published tokenizer."""
    token = settings.hub_token
    published = model.Source(str(folder), None)
    source = published
    if manifest["kind"] != "model":
        source = model.locate(recipe.base_model, manifest["base_revision"], settings.cache_dir)
    return model.load_base(recipe, source, token), model.load_tokenizer(published, token)


def _written(tried: Any, tokenizer: Any, prompts: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    answers = complete(tried, tokenizer, prompts, Request(max_new_tokens=WRITTEN))
    return [answer.ids for (answer,) in answers]


def _of_base(tried: Any, tokenizer: Any, prompts: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """What the base model writes; of a model trained in full there is none here."""
    if not hasattr(tried, "disable_adapter"):
        return [()]
    with tried.disable_adapter():
        return _written(tried, tokenizer, prompts)


def _out_of_memory(exc: BaseException) -> bool:
    return "out of memory" in str(exc).lower()


@cache
def _suite() -> dict[str, list[str]]:
    return dict(json.loads(SUITE.read_text(encoding="utf-8")))
