"""How much of forgotten texts a model can be made to write out; the process that has the model.

`python -m services.trainer.forgetting.check` reads `{"models": [FOLDER or null, …], "recipe", "revision",
"texts", "passages"}` as JSON on standard input and writes `{"models": [FIGURES, …]}` to standard output:
null is the base model.

Passages are 50 tokens after the 50 before them, as in Carlini et al., "Quantifying Memorization Across Neural
Language Models" (ICLR 2023, section 3): cut from the texts where their hash says, the same for every model.
Strings are literals of the texts beside random ones of the same form, for their exposure.
"""

import gc
import hashlib
import random
import re
import string
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from services.core.models import Json
from services.core.settings import Settings, from_environment
from services.trainer import extraction, inquiry, subjects
from services.trainer.answering import loading
from services.trainer.engine.compute import Compute
from services.trainer.extraction import PREFIX_TOKENS, Extraction, Probe
from services.trainer.forgetting.words import Figures
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.encoder import Encoder
from services.trainer.subjects import Subject

PASSAGE_TOKENS = 50  # to be written out
STRINGS = 8  # literals whose exposure is measured
OTHERS = 24  # random strings of the same form, beside each
LITERAL = re.compile(r"""(["'])([^"'\\\s]{8,64})\1""")


def passages(texts: Sequence[str], encoder: Encoder, most: int) -> list[Probe]:
    """At most so many passages that do not overlap, one of every text before a second of any."""
    drawn: list[tuple[int, float, Probe]] = []
    for number, (text, located) in enumerate(zip(texts, encoder.located(list(texts)), strict=True)):
        data, starts = text.encode(), [*located.starts, len(text.encode())]
        order = random.Random(hashlib.sha256(data).digest())
        places = list(range(PREFIX_TOKENS, len(located.ids) - PASSAGE_TOKENS + 1, PASSAGE_TOKENS))
        order.shuffle(places)
        for turn, at in enumerate(places):
            before = data[: starts[at]].decode(errors="ignore")
            secret = data[starts[at] : starts[at + PASSAGE_TOKENS]].decode(errors="ignore")
            if secret.strip():
                drawn.append((turn, order.random(), Probe(f"{number}:{at}", before, secret)))
    drawn.sort(key=lambda each: each[:2])
    return [probe for _, _, probe in drawn[:most]]


def strings(texts: Sequence[str], most: int) -> list[Probe]:
    """String literals with what stands before them, two of a text, each beside random others of its form."""
    found: dict[str, Probe] = {}
    for number, text in enumerate(texts):
        for literal in list(LITERAL.finditer(text))[:2]:
            at, secret = literal.start(2), literal[2]
            if secret not in found and len(found) < most:
                found[secret] = Probe(f"{number}:{at}", text[:at], secret, tuple(_alike(secret)))
    return list(found.values())


def measure(
    loaded: Any, tokenizer: Any, texts: Sequence[str], most: int, adapter: str | None,
    on_done: Callable[[int, int], None] | None = None,
) -> Figures:  # fmt: skip
    """What the model gives up of at most `most` passages, and how exposed the texts' strings are."""
    compute = Compute(loaded, keep_merged=False)
    asked = passages(texts, Encoder(tokenizer), most)
    found = extraction.extract(loaded, tokenizer, asked, compute=compute, on_done=on_done)
    exposed = extraction.extract(loaded, tokenizer, strings(texts, STRINGS), compute=compute)
    return figures(found, exposed, adapter)


def figures(found: Sequence[Extraction], exposed: Sequence[Extraction], adapter: str | None) -> Figures:
    bits = [each.exposure_bits for each in exposed if each.exposure_bits is not None]
    return Figures(
        adapter=adapter,
        passages=len(found),
        extracted=sum(each.extracted for each in found),
        tokens=sum(each.tokens for each in found),
        matched_tokens=sum(each.matched_tokens for each in found),
        exposure_bits=sum(bits) / len(bits) if bits else None,
    )


def checked(sent: Json, settings: Settings) -> list[Figures]:
    """Figures of each model. The base is loaded once for all adapters of one recipe."""
    recipe = Recipe.model_validate(sent["recipe"])
    base_subject = Subject("base", "base", recipe, sent["revision"])
    found = []
    loaded: tuple[Any, Any] | None = None
    for number, folder in enumerate(sent["models"]):
        subject = base_subject if folder is None else subjects.published(folder, Path(folder))
        if subject.kind == "model":
            loaded = None
            gc.collect()  # a whole model beside the base would take twice the memory
            base, tokenizer = loading.load_base(subject, settings)
        else:
            loaded = base, tokenizer = loaded or loading.load_base(subject, settings)
        name = None if folder is None else Path(folder).name
        model = loading.attach(base, subject)
        told = _progress(f"passages, model {number + 1} of {len(sent['models'])}")
        found.append(measure(model, tokenizer, sent["texts"], sent["passages"], name, told))
        if subject.kind == "adapter":
            model.unload()  # leaves the base as it was
    return found


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be measured."""
    settings = from_environment()
    return inquiry.answer(lambda sent: {"models": [each.as_json() for each in checked(sent, settings)]})


def _alike(secret: str) -> Iterator[str]:
    """Random strings with letters for letters and digits for digits, the same every time."""
    order = random.Random(hashlib.sha256(secret.encode()).digest())
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    for _ in range(OTHERS):
        yield "".join(next((order.choice(kind) for kind in kinds if char in kind), char) for char in secret)


def _progress(what: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        inquiry.progress(done, total, what)

    return tell


if __name__ == "__main__":
    sys.exit(main())
