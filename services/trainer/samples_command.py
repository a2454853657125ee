"""The process behind `ratchet samples`: contents as JSON on standard input, samples on standard output.

It alone imports transformers, for the tokenizer; no weights are loaded.
"""

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.core.errors import RatchetError
from services.core.models import Json
from services.core.settings import from_environment
from services.trainer.model.locate import load_tokenizer, locate
from services.trainer.packing import Row, pack
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.make import make
from services.trainer.samples.sample import IGNORED, Sample
from services.trainer.samples.source import SampleSource, Unit

BROKEN = "\ufffd"  # a token that ends inside a character decodes to this
MOST_OF_A_CHARACTER = 8  # tokens


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    asked = json.load(sys.stdin)
    settings = from_environment()
    recipe = Recipe.model_validate(asked["recipe"])
    token = settings.hf_token.get_secret_value() if settings.hf_token else None
    try:
        tokenizer = load_tokenizer(locate(recipe.base_model, recipe.revision, settings.cache_dir), token)
        contents = [source_of(each) for each in asked["contents"]]
        samples = make(contents, recipe, tokenizer, purpose="train", round_number=asked["round_number"])
    except RatchetError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    shown = samples[: asked["most"]]
    answer: Json = {"contents": len(contents), "made": len(samples)}
    if asked["packed"]:
        answer["rows"] = [row_json(row) for row in pack(shown, recipe.max_length, keep_order=True)]
    else:
        answer["samples"] = [sample_json(sample, tokenizer) for sample in shown]
    json.dump(answer, sys.stdout)
    return 0


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


def source_of(fields: Mapping[str, Any]) -> SampleSource:
    """A content as the command line sends it."""
    units = tuple(Unit(*unit) for unit in fields["units"])
    return SampleSource(**{**fields, "sha256": bytes.fromhex(fields["sha256"]), "units": units})


if __name__ == "__main__":
    sys.exit(main())
