"""The process behind `ratchet samples`: contents as JSON on standard input, samples on standard output.

It alone imports transformers, for the tokenizer; no weights are loaded.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from services.core.models import Json
from services.core.settings import from_environment
from services.trainer import inquiry
from services.trainer.comparing.questions import content_of
from services.trainer.model.locate import load_tokenizer, locate
from services.trainer.packing import Row, pack
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.make import make
from services.trainer.samples.sample import IGNORED, Sample

BROKEN = "\ufffd"  # a token that ends inside a character decodes to this
MOST_OF_A_CHARACTER = 8  # tokens


def work(asked: Json) -> Json:
    """The first samples of the contents, or their packed rows. Raises RatchetError where none can be made."""
    settings = from_environment()
    recipe = Recipe.model_validate(asked["recipe"])
    tokenizer = load_tokenizer(
        locate(recipe.base_model, recipe.revision, settings.cache_dir), settings.hub_token
    )
    contents = [content_of(each) for each in asked["contents"]]
    samples = make(contents, recipe, tokenizer, purpose="train", round_number=asked["round_number"])
    shown = samples[: asked["most"]]
    answer: Json = {"contents": len(contents), "made": len(samples)}
    if asked["packed"]:
        answer["rows"] = [row_json(row) for row in pack(shown, recipe.max_length, keep_order=True)]
    else:
        answer["samples"] = [sample_json(sample, tokenizer) for sample in shown]
    return answer


def sample_json(sample: Sample, tokenizer: Any) -> Json:
    """A sample token by token; `tokens` are [text, ids, learned], with several ids to a divided character."""
    return {
        "content_id": sample.content_id,
        "kind": sample.kind,
        "length": len(sample.ids),
        "learned": learned(sample),
        "tokens": [
            [text, list(sample.ids[start:end]), start >= max(1, sample.prompt_tokens)]
            for text, start, end in _texts(sample.ids, tokenizer)
        ],
    }


def row_json(row: Row) -> Json:
    """A packed row as the model gets it: a label is the token itself, -100 where it is not learned."""
    ids: list[int] = []
    labels: list[int] = []
    positions: list[int] = []
    documents: list[int] = []
    for number, sample in enumerate(row.samples):
        ids += sample.ids
        labels += [IGNORED, *sample.labels[1:]]  # nothing of its own comes before the first token
        positions += range(len(sample.ids))
        documents += [number] * len(sample.ids)
    return {
        "input_ids": ids,
        "labels": labels,
        "position_ids": positions,
        "document_ids": documents,
        "documents": [
            {"content_id": sample.content_id, "kind": sample.kind, "length": len(sample.ids)}
            for sample in row.samples
        ],
    }


def learned(sample: Sample) -> int:
    """Tokens with loss: never the first, which nothing predicts."""
    return len(sample.ids) - max(1, sample.prompt_tokens)


def _texts(ids: Sequence[int], tokenizer: Any) -> Iterator[tuple[str, int, int]]:
    """Texts of tokens, one each where it is whole characters; first and last token of each."""
    start = 0
    while start < len(ids):
        end = start + 1
        text = tokenizer.decode(list(ids[start:end]))
        while BROKEN in text and end < min(len(ids), start + MOST_OF_A_CHARACTER):
            end += 1
            longer = tokenizer.decode(list(ids[start:end]))
            if BROKEN not in longer:
                text = longer
                break
        else:
            end = start + 1
        yield text, start, end
        start = end


if __name__ == "__main__":
    sys.exit(inquiry.answer(work))
