"""The four arms at work: what each is shown, what it writes, and how long that takes."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.trainer.recipes.recipe import Recipe
from services.trainer.samples import pairs
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.template import frame
from services.trainer.suites import completion
from services.trainer.suites.completion import Item
from services.trainer.suites.suite import Score
from services.trainer.verdict import prompts
from services.trainer.verdict.answers import Answer, Arm, Run
from services.trainer.verdict.retrieval import Index, query_of

TIMED = 20  # items that are asked for alone as well
WITH_SNIPPETS = (Arm.RETRIEVAL, Arm.BOTH)
Progress = Callable[[int, int, str], None]  # done, of how many, of what


@dataclass(frozen=True)
class Asked:
    """One item as the arms are asked for it."""

    plain: Item
    shown: Item  # the same with snippets in its prompt
    snippets: int
    search_seconds: float  # that it took to find them

    def under(self, arm: Arm) -> Item:
        return self.shown if arm in WITH_SNIPPETS else self.plain


def ask(items: Sequence[Item], indexes: Mapping[str, Index], recipe: Recipe, tokenizer: Any) -> list[Asked]:
    """The items with what is found for each.

    items: of contents whose clusters are known; indexes: by source. Snippets stand at the beginning of what
    is asked, behind what the tokenizer or the chat template puts there, in addition to the code before the
    cursor.
    """
    encoder = Encoder(tokenizer)
    chat = recipe.objective == "completion_pairs"
    head = frame(encoder).before if chat else encoder.begin
    room = int(recipe.max_length * prompts.SHARE)

    def count(text: str) -> int:
        return len(encoder.plain([text])[0])

    asked = []
    for item in items:
        source = item.source
        began = time.perf_counter()
        found = indexes[source.repository].search(
            query_of(item.prefix),
            path=source.path,
            cluster_id=source.cluster_id,
            most=prompts.MOST_SNIPPETS,
        )
        seconds = time.perf_counter() - began
        if chat:
            fence = pairs.FENCES.get(source.language, source.language)
            text = prompts.as_blocks(found, fence, room, count)
        else:
            text = prompts.as_comments(found, source.language, room, count)
        snippets = encoder.plain([text])[0] if text else ()
        prompt = (*head, *snippets, *item.prompt[len(head) :])
        asked.append(Asked(item, replace(item, prompt=prompt), len(found), seconds))
    return asked


def write(
    model: Any, tokenizer: Any, asked: Sequence[Asked], arm: Arm, on_done: Progress, *, chat: bool
) -> Run:
    """What the model, as it stands, writes for every item, in batches and then some of them alone."""
    items = [each.under(arm) for each in asked]
    began = time.perf_counter()
    scores = completion.measure(
        model, tokenizer, items, chat=chat, on_done=lambda done, of: on_done(done, of, f"{arm}, all items")
    )
    seconds = time.perf_counter() - began
    written = _by_item(scores)
    encoder = Encoder(tokenizer)
    answers = tuple(_answer(item, written[item.key], encoder) for item in items)
    return Run(arm, answers, tuple(_alone(model, tokenizer, asked, arm, on_done, chat=chat)), seconds)


def _alone(
    model: Any, tokenizer: Any, asked: Sequence[Asked], arm: Arm, on_done: Progress, *, chat: bool
) -> Iterator[float]:
    """Seconds of a completion that is asked for by itself, of items spread over all."""
    timed = asked[:: max(1, len(asked) // TIMED)][:TIMED]
    for done, each in enumerate(timed, 1):
        began = time.perf_counter()
        completion.measure(model, tokenizer, [each.under(arm)], chat=chat)
        searched = each.search_seconds if arm in WITH_SNIPPETS else 0.0
        yield time.perf_counter() - began + searched
        on_done(done, len(timed), f"{arm}, one at a time")


def _by_item(scores: Sequence[Score]) -> dict[str, dict[str, Score]]:
    """Scores by item's key and metric."""
    found: dict[str, dict[str, Score]] = {}
    for score in scores:
        found.setdefault(score.item, {})[score.metric] = score
    return found


def _answer(item: Item, scores: Mapping[str, Score], encoder: Encoder) -> Answer:
    exact, alike = scores["exact_match"], scores["edit_similarity"]
    text = str(exact.detail["written"])
    tokens = len(encoder.plain([text])[0])
    return Answer(
        item.name, str(item.source.cluster_id), exact.value, alike.value, len(item.prompt), tokens, text
    )
