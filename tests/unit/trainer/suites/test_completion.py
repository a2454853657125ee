"""Items of this code: chosen the same every time, asked as samples are, cut by one rule."""

import hashlib
from typing import Any

import pytest

from services.trainer.generation import Completion
from services.trainer.samples.make import make
from services.trainer.samples.source import SampleSource
from services.trainer.suites import completion
from tests import tiny_model
from tests.unit.trainer.engine import tiny

BLOCK = "    for each in things:\n        total += each\n    return total\n"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from services.trainer.model.locate import Source, load_tokenizer

    return load_tokenizer(Source(str(tiny_model.make(tmp_path_factory.mktemp("tiny"))), None))


@pytest.fixture(scope="module")
def contents() -> list[SampleSource]:
    return [
        SampleSource(
            n, hashlib.sha256(path.read_bytes()).digest(), "python", path.read_text(), path=path.name
        )
        for n, path in enumerate(tiny_model.standard_library(12))
    ]


def test_half_are_lines_half_blocks_and_few_of_a_file(contents: list[SampleSource], tokenizer: Any) -> None:
    items = completion.items(contents, tiny.recipe(completion_items=20), tokenizer)
    assert [item.kind for item in items] == ["line"] * 10 + ["block"] * 10
    of_a_file = [(item.kind, item.group) for item in items]
    assert max(map(of_a_file.count, of_a_file)) <= completion.PER_FILE
    assert len({item.group for item in items}) >= 10


def test_items_are_the_same_in_whatever_order_contents_come(
    contents: list[SampleSource], tokenizer: Any
) -> None:
    recipe = tiny.recipe(completion_items=20)
    items = completion.items(contents, recipe, tokenizer)
    assert completion.items(contents[::-1], recipe, tokenizer) == items
    assert {item.key for item in items} != {
        item.key for item in completion.items(contents, tiny.recipe(completion_items=20, seed=7), tokenizer)
    }


def test_an_item_is_a_cut_of_its_file(contents: list[SampleSource], tokenizer: Any) -> None:
    for item in completion.items(contents, tiny.recipe(completion_items=20), tokenizer):
        assert item.source.text.startswith(item.prefix + item.answer)
        assert item.prefix.count("\n") + 1 == item.line
        assert completion.cut(item.kind, item.source.text[len(item.prefix) - 1 :], chat=False) == item.answer


def test_prompts_are_as_the_recipes_samples(contents: list[SampleSource], tokenizer: Any) -> None:
    """Raw text for pre-training; a question and the answer so far, in the template, for pairs."""
    raw = tiny.recipe(completion_items=4, objective="cpt", max_length=4096)
    for item in completion.items(contents, raw, tokenizer):
        assert item.prefix.rstrip().endswith(tokenizer.decode(item.prompt))
    chat = tiny.recipe(completion_items=4, max_length=4096)
    sample = make(contents[:1], chat, tokenizer, purpose="judge", round_number=1)[0]
    beginning = tokenizer.decode(sample.ids).split("\n")[0]
    for item in completion.items(contents, chat, tokenizer):
        text = tokenizer.decode(item.prompt)
        assert text.split("\n")[0] == beginning
        assert "<|im_start|>assistant\n```python\n" in text
        assert text.endswith(item.prefix.rstrip().rsplit("\n", 1)[-1])


def test_a_prompt_ends_where_samples_are_one_token_with_what_follows(
    contents: list[SampleSource], tokenizer: Any
) -> None:
    """A line break by itself is what stands before the closing fence, and before nothing indented."""
    for objective in ("completion_pairs", "cpt"):
        recipe = tiny.recipe(completion_items=20, objective=objective, max_length=4096)
        for item in completion.items(contents, recipe, tokenizer):
            assert not tokenizer.decode(item.prompt)[-1].isspace()


def test_a_long_prefix_keeps_its_last_lines(contents: list[SampleSource], tokenizer: Any) -> None:
    recipe = tiny.recipe(completion_items=20, objective="cpt", max_length=128)
    for item in completion.items(contents, recipe, tokenizer):
        assert len(item.prompt) <= 64
        assert item.prefix.rstrip().endswith(tokenizer.decode(item.prompt))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("\n\n  x = 1  \ny = 2\n", "  x = 1  \n"),
        ("\nx = 1", "x = 1"),
        (" + 2\nx = 1\n", "x = 1\n"),
        ("\n \n", ""),
        ("", ""),
    ],
)
def test_a_line_is_the_first_that_is_not_blank(written: str, expected: str) -> None:
    assert completion.cut("line", written, chat=False) == expected


def test_a_block_ends_before_what_is_indented_less() -> None:
    assert completion.cut("block", "\n" + BLOCK + "\n\ndef other():\n    pass\n", chat=False) == BLOCK


@pytest.mark.parametrize(
    "written",
    [
        "\n" + BLOCK + "```\nThis adds them up.",
        "```python\n" + BLOCK + "```\n",
        "Here is the rest of the code:\n\n```python\n" + BLOCK + "```\nIt adds.",
        "Sure, this is it:\n" + BLOCK + "```",
    ],
)
def test_what_chat_models_put_around_code_is_taken_off(written: str) -> None:
    assert completion.cut("block", written, chat=True).lstrip("\n") == BLOCK


@pytest.mark.parametrize(
    ("kind", "text", "ends"),
    [
        ("line", "\n    x = 1", False),
        ("line", "\n\n", False),
        ("line", " + 2\n", False),
        ("line", "\n    x = 1\n", True),
        ("block", "\n" + BLOCK, False),
        ("block", "\n" + BLOCK + "  ", False),
        ("block", "\n" + BLOCK + "\nd", True),
        ("block", "\n" + BLOCK + "```", True),
        ("block", "\n" + "    a\n" * 11, True),
    ],
)
def test_writing_ends_once_the_answer_cannot_change(kind: completion.Kind, text: str, ends: bool) -> None:
    assert (completion._end(kind, chat=True)(text) is not None) is ends


def test_exact_match_and_similarity(contents: list[SampleSource], tokenizer: Any) -> None:
    item = completion.items(contents, tiny.recipe(completion_items=1), tokenizer)[0]
    right = completion._scores(
        item, Completion("\n" + item.answer.rstrip("\n") + " \n\nmore", (), True), chat=False
    )
    assert [(score.metric, score.value) for score in right] == [("exact_match", 1), ("edit_similarity", 1)]
    wrong = completion._scores(item, Completion(f"\nx{item.answer}", (), True), chat=False)
    assert wrong[0].value == 0 < wrong[1].value < 1
    assert completion.figures(right + wrong)["line_exact_match"] == 0.5
