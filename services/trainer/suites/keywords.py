"""A first look at whether a model knows a language: which of the words it should use are in what it writes.

After the evaluation of the seed that fine-tuned on eight languages. It says little of quality, and nothing
is judged by it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.trainer.generation import Completion, Request, complete, prompt_ids
from services.trainer.suites.suite import Score

NAME = "keywords"
FILE = Path(__file__).with_name("keywords.json")
NEW_TOKENS = 256
REQUEST = Request(NEW_TOKENS)
SHOWN_CHARACTERS = 2000  # of a text in a score's detail


@dataclass(frozen=True)
class Item:
    """A task in a language, and words that a fair solution has."""

    language: str
    task: str
    beginning: str  # the task as a comment: what a model without a chat template goes on from
    keywords: tuple[str, ...]
    prompt: tuple[int, ...]

    @property
    def key(self) -> str:
        about = [NEW_TOKENS, self.prompt, self.keywords]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def items(tokenizer: Any, *, chat: bool, file: Path = FILE) -> list[Item]:
    """The suite's, as a question in the chat template or as a comment to go on from."""
    made = []
    for fields in json.loads(file.read_text(encoding="utf-8")):
        language, task = fields["language"], fields["task"]
        beginning = f"{fields['comment']} {language}: {task}\n"
        asked = f"Write {language} code for this task: {task}" if chat else beginning
        ids = tuple(prompt_ids(tokenizer, asked, chat=chat))
        made.append(Item(language, task, beginning, tuple(fields["keywords"]), ids))
    return made


def measure(
    model: Any,
    tokenizer: Any,
    asked: Sequence[Item],
    *,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """The share of its keywords in what is written greedily for each item."""
    written = complete(model, tokenizer, [item.prompt for item in asked], REQUEST, on_done=on_done)
    return [_score(item, completion) for item, (completion,) in zip(asked, written, strict=True)]


def found(keywords: Sequence[str], text: str) -> list[str]:
    """Those that are in the text, as words of their own or parts of a name; case does not matter."""
    return [word for word in keywords if re.search(_boundary(word), text, re.IGNORECASE)]


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """The mean, and that of each language."""
    by_language: dict[str, list[float]] = {}
    for score in scores:
        by_language.setdefault(score.group, []).append(score.value)
    all_of_them = [score.value for score in scores]
    return {NAME: sum(all_of_them) / len(all_of_them)} | {
        f"{NAME}/{language}": sum(values) / len(values) for language, values in sorted(by_language.items())
    }


def _boundary(word: str) -> str:
    """`def` is not in `undefined`; what ends in a sign, such as `sync.Mutex` or `->`, stands by itself."""
    before = r"(?<![^\W\d_])" if word[0].isalnum() else ""
    return before + re.escape(word)


def _score(item: Item, completion: Completion) -> Score:
    there = found(item.keywords, completion.text)
    detail = {
        "missing": [word for word in item.keywords if word not in there],
        "written": completion.text[:SHOWN_CHARACTERS],
    }
    name = f"{item.language}: {item.task}"
    return Score(item.key, name, item.language, "keywords", len(there) / len(item.keywords), detail=detail)
