"""This code: next lines and blocks of held-out files, written greedily.

Half of the items are a line, half a block: the body of a function or of a statement. What stands before it
is the prompt, in the form of the recipe's samples: for chat models a question with the first third of it,
and an answer that goes on with the rest, so that code is measured and no manners. The answer of a line is
the first that is not blank; that of a block ends before a line that is indented less than its first. Both
are cut from the model's text by the same rule, and of a block no more lines than any answer has.

A prompt ends without the line break it would end with, and the model writes that: in text that is encoded
whole a break is one token with the indentation behind it, so that a break alone says that what follows is
not indented, or that the code is over ("token healing" mends the same from the other side).
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from services.trainer.generation import Completion, Request, complete
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples import pairs
from services.trainer.samples.boundaries import lines_of
from services.trainer.samples.chance import draw
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.source import SampleSource
from services.trainer.samples.template import frame
from services.trainer.suites import spans
from services.trainer.suites.similarity import edit_similarity, normalised
from services.trainer.suites.suite import Score

Kind = Literal["line", "block"]
RULES = 2  # raised when what is asked or how it is cut changes: older results are of other items then
NEW_TOKENS: dict[Kind, int] = {"line": 64, "block": 160}
CONTEXT_TOKENS = 1024  # of what stands before, its end
PER_FILE = 3  # items of a kind
QUESTION_SHARE = sum(pairs.CONTEXT_SHARE) / 2  # of the lines before: in the question, the rest in the answer
OPENED = re.compile(r"^[ \t]*`{3,}[\w+#-]+[ \t]*\n", re.MULTILINE)  # a fence that names a language
FENCE = re.compile(r"^[ \t]*`{3,}[^\n]*\n?", re.MULTILINE)
PREAMBLE = re.compile(r"\s*(?:Here|Sure|Certainly|Below|The following|To complete)\b[^\n]*:[ \t]*(?:\n|\Z)")


@dataclass(frozen=True)
class Item:
    """Something to be written."""

    kind: Kind
    source: SampleSource
    line: int  # it begins at, from 1
    prefix: str  # all that stands before
    answer: str
    prompt: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.group}:{self.line}"

    @property
    def group(self) -> str:
        place = "/".join(filter(None, (self.source.repository, self.source.path)))
        return place or self.source.sha256.hex()[:16]

    @property
    def key(self) -> str:
        about = [RULES, self.kind, NEW_TOKENS[self.kind], self.prompt, self.answer]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def items(contents: Sequence[SampleSource], recipe: Recipe, tokenizer: Any) -> list[Item]:
    """At most `recipe.completion_items`, half of each kind, spread over the contents; the same every time.

    Raises ConfigurationError where the recipe's samples need a chat template and there is none.
    """
    half = recipe.completion_items // 2
    wanted: dict[Kind, int] = {"line": recipe.completion_items - half, "block": half}
    chosen = [item for kind, most in wanted.items() for item in _drawn(contents, kind, most, recipe.seed)]
    asked = zip(chosen, _prompts(chosen, recipe, tokenizer), strict=True)
    made = [replace(item, prompt=tuple(ids)) for item, ids in asked]
    return list({item.key: item for item in made}.values())  # of contents that begin alike one is enough


def measure(
    model: Any,
    tokenizer: Any,
    asked: Sequence[Item],
    *,
    chat: bool,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """Two scores of each item: exact match and edit similarity."""
    scores: list[Score] = []
    for kind, new_tokens in NEW_TOKENS.items():
        of_kind = [item for item in asked if item.kind == kind]
        done_before = len(scores) // 2
        request = Request(new_tokens, end=_end(kind, chat=chat))

        def heard(done: int, _of: int, before: int = done_before) -> None:
            if on_done is not None:
                on_done(before + done, len(asked))

        written = complete(model, tokenizer, [item.prompt for item in of_kind], request, on_done=heard)
        for item, (completion,) in zip(of_kind, written, strict=True):
            scores += _scores(item, completion, chat=chat)
    return scores


def cut(kind: Kind, text: str, *, chat: bool) -> str:
    """The answer in what a model wrote behind the last line of its prompt."""
    lines = lines_of(bare(text) if chat else _following(text))
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return ""
    end = first + 1 if kind == "line" else spans.block_end(lines, first)
    return "".join(lines[first:end])


def bare(text: str) -> str:
    """The code of a chat model's answer, without words before it and fences around it."""
    if (opened := OPENED.search(text)) is not None:
        text = text[opened.end() :]
    elif (preamble := PREAMBLE.match(text)) is not None:
        text = text[preamble.end() :]
    else:
        text = _following(text)
    if (fence := FENCE.match(text)) is not None:
        text = text[fence.end() :]
    closed = FENCE.search(text)
    return text if closed is None else text[: closed.start()]


def _following(text: str) -> str:
    """Without what goes on with the prompt's last line, which was complete."""
    return text.partition("\n")[2]


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """Means over all items, and over those of each kind."""
    found: dict[str, list[float]] = {}
    for score in scores:
        for name in (score.metric, f"{score.detail['kind']}_{score.metric}"):
            found.setdefault(name, []).append(score.value)
    return {name: sum(values) / len(values) for name, values in sorted(found.items())}


def _drawn(contents: Sequence[SampleSource], kind: Kind, most: int, seed: int) -> list[Item]:
    """First one of every content, in an order drawn by its hash, then a second of each, …"""
    find = spans.lines if kind == "line" else spans.blocks
    drawn = []
    for content in contents if most else ():
        order = draw(seed, "completion", kind, content.sha256)
        found = find(content)
        place = order.random()
        for turn, span in enumerate(order.sample(found, min(PER_FILE, len(found)))):
            drawn.append((turn, place, content, span))
    drawn.sort(key=lambda each: each[:2])
    return [_item(kind, content, span) for _, _, content, span in drawn[:most]]


def _item(kind: Kind, content: SampleSource, span: spans.Span) -> Item:
    lines = lines_of(content.text)
    prefix, answer = "".join(lines[: span.first]), "".join(lines[span.first : span.last])
    return Item(kind, content, span.first + 1, prefix, answer)


def _prompts(chosen: Sequence[Item], recipe: Recipe, tokenizer: Any) -> list[list[int]]:
    encoder = Encoder(tokenizer)
    room = min(CONTEXT_TOKENS, recipe.max_length // 2)
    prefixes = [_end_of(item.prefix, room, encoder).rstrip() for item in chosen]
    if recipe.objective != "completion_pairs":
        return [[*encoder.begin, *ids] for ids in encoder.plain(prefixes)]
    around = frame(encoder)
    made = []
    for item, prefix in zip(chosen, prefixes, strict=True):
        question, answer = encoder.plain(_question_and_answer(prefix, item.source.language))
        made.append([*around.before, *question, *around.between, *around.lead, *answer])
    return made


def _question_and_answer(prefix: str, language: str) -> tuple[str, str]:
    """As `pairs` asks, and the answer as far as it is given."""
    lines = lines_of(prefix)
    shown = min(max(1, round(QUESTION_SHARE * len(lines))), len(lines) - 1)  # the last one is in the answer
    spoken = pairs.SPOKEN.get(language, language.capitalize())
    ticks = "`" * max(3, 1 + max((len(run) for run in pairs.TICKS.findall(prefix)), default=0))
    opening = f"{ticks}{pairs.FENCES.get(language, language)}\n"
    context = "".join(lines[:shown]).removesuffix("\n")
    instruction = pairs.INSTRUCTIONS[0].format(language=spoken)
    return f"{instruction}\n\n{opening}{context}\n{ticks}", opening + "".join(lines[shown:])


def _end_of(text: str, tokens: int, encoder: Encoder) -> str:
    """Its last lines, of at most so many tokens; a text of one long line from within it."""
    (located,) = encoder.located([text])
    if len(located.ids) <= tokens:
        return text
    data = text.encode()
    start = located.starts[len(located.ids) - tokens]
    newline = data.find(b"\n", start, len(data) - 1)
    return data[newline + 1 if newline >= 0 else start :].decode(errors="ignore")


def _end(kind: Kind, *, chat: bool) -> Callable[[str], int | None]:
    """Once what is cut from a text cannot grow any more, all of it is enough."""

    def end(text: str) -> int | None:
        found = cut(kind, text, chat=chat)
        if not found.endswith("\n"):
            return None
        behind = text[text.find(found) + len(found) :]
        return len(text) if kind == "line" or behind.strip() else None  # else its next line is indented yet

    return end


def _scores(item: Item, completion: Completion, *, chat: bool) -> list[Score]:
    written, answer = (normalised(each) for each in (cut(item.kind, completion.text, chat=chat), item.answer))
    detail = {"kind": item.kind, "written": written, "answer": answer}
    exact, alike = float(written == answer), edit_similarity(written, answer)
    return [
        Score(item.key, item.name, item.group, "exact_match", exact, detail=detail),
        Score(item.key, item.name, item.group, "edit_similarity", alike, detail=detail),
    ]
