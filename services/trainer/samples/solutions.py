"""Solutions as samples: a task as it is asked, and a program of a reinforcement round that passed its tests.

Rejection sampling: Yuan et al. 2023, "Scaling Relationship on Learning Mathematical Reasoning with Large
Language Models" (arXiv 2308.01825), section 3.3.
"""

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.sample import Extract, Sample, Tokenizer
from services.trainer.samples.template import Frame, frame

KIND = "solution"
FIRST_ID = -2  # as a sample's content: solutions count down from here, contents up from 1


@dataclass(frozen=True, slots=True)
class Solution:
    """A program that passed all tests of its task."""

    solution_id: int
    task: str  # SHA-256 of the task, 64 hexadecimal digits
    sha256: str  # of the code
    task_set: str
    name: str  # of the task in its set
    prompt: str  # as a model is asked without other agents
    code: str

    @property
    def content_id(self) -> int:
        """What stands for it where a sample names its content: below every content's id."""
        return FIRST_ID + 1 - self.solution_id


def id_of(content_id: int) -> int:
    """The solution that stands there for a content."""
    return FIRST_ID + 1 - content_id


def samples(
    solutions: Sequence[Solution], recipe: Recipe, tokenizer: Tokenizer, made: Sequence[Sample], seed: str
) -> list[Sample]:
    """The samples `made` of a round's contents with those of its solutions among them, by `seed`.

    As completion pairs the task's words are the prompt and the loss is on the program in its fence; in
    continued pre-training the program alone is a document. One that is longer than a row is left out. With
    a curriculum the solutions come as their lengths put them among what is there.
    """
    encoder = Encoder(tokenizer)
    make = _pairs if recipe.objective == "completion_pairs" else _documents
    found = [sample for sample in make(solutions, encoder) if len(sample.ids) <= recipe.max_length]
    if not found:
        return list(made)
    if recipe.curriculum:
        return _by_length(made, found)
    mixed = [*made, *found]
    random.Random(f"{seed} solutions").shuffle(mixed)
    return mixed


def _pairs(solutions: Sequence[Solution], encoder: Encoder) -> list[Sample]:
    around: Frame = frame(encoder)
    fences = [_fence(each.code) for each in solutions]
    questions = encoder.plain([each.prompt for each in solutions])
    openings = encoder.plain([f"{ticks}python\n" for ticks in fences])
    closings = encoder.plain([f"\n{ticks}" for ticks in fences])
    codes = encoder.plain([each.code.removesuffix("\n") for each in solutions])
    before, between, lead, after = (array("i", part) for part in around.parts)
    made = []
    for each, question, opening, code, closing in zip(
        solutions, questions, openings, codes, closings, strict=True
    ):
        prompt = before + question + between
        start = len(prompt) + len(lead) + len(opening)
        ids = prompt + lead + opening + code + closing + after
        made.append(_sample(each, ids, len(prompt), start, start + len(code)))
    return made


def _documents(solutions: Sequence[Solution], encoder: Encoder) -> list[Sample]:
    before = array("i", encoder.begin)
    codes = encoder.plain([each.code for each in solutions])
    return [
        _sample(each, before + code + array("i", [encoder.end]), 0, len(before), len(before) + len(code))
        for each, code in zip(solutions, codes, strict=True)
    ]


def _sample(solution: Solution, ids: "array[int]", prompt_tokens: int, start: int, end: int) -> Sample:
    lines = solution.code.count("\n") + (not solution.code.endswith("\n"))
    extracts = (Extract(solution.content_id, 1, lines, len(ids)),)
    size = len(solution.code.encode())
    return Sample(solution.content_id, ids, prompt_tokens, start, end, size, KIND, extracts=extracts)


def _fence(code: str) -> str:
    """Longer than any run of backticks in the code: it must not seem to end before it does."""
    longest = run = 0
    for character in code:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)


def _by_length(made: Sequence[Sample], found: Sequence[Sample]) -> list[Sample]:
    """The others stay in their order: each of `found` before the first that is longer."""
    mixed = list(made)
    for sample in sorted(found, key=lambda each: len(each.ids)):
        at = next((at for at, other in enumerate(mixed) if len(other.ids) > len(sample.ids)), len(mixed))
        mixed.insert(at, sample)
    return mixed
