"""Every sample says which lines of which contents it holds: what a receipt is written from."""

from typing import Any

import pytest
from transformers import AutoTokenizer

from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.boundaries import lines_of
from services.trainer.samples.make import make
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource, Unit
from tests import tiny_model as tiny


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """With tokens for repositories, and a chat template."""
    return AutoTokenizer.from_pretrained(tiny.make(tmp_path_factory.mktemp("qwen"), qwen=True))


def contents() -> list[SampleSource]:
    """Five modules of two repositories, the functions of each as units."""
    made = []
    for number, path in enumerate(tiny.standard_library(5), 1):
        text = path.read_text(encoding="utf-8").removesuffix("\n" * (number % 2))
        units = tuple(functions(text))
        repository = f"repository-{number % 2}"
        made.append(
            SampleSource(number, bytes([number]) * 32, "python", text, 90, units, repository, path.name)
        )
    return made


def functions(text: str) -> list[Unit]:
    """Every `def` up to the next blank line, indented ones too."""
    units = []
    at = 0
    for number, line in enumerate(lines_of(text), 1):
        size = len(line.encode())
        if line.lstrip().startswith("def "):
            start = at + len(line) - len(line.lstrip())
            rest = text.encode()[start:].split(b"\n\n")[0]
            units.append(
                Unit("function", "f", start, start + len(rest), number, number + rest.count(b"\n"), start)
            )
        at += size
    return units


def recipe(**fields: Any) -> Recipe:
    return Recipe.model_validate({"name": "t", "base_model": "b", "max_length": 128, **fields})


RECIPES = {
    "pairs": recipe(),
    "files": recipe(objective="cpt"),
    "fim": recipe(objective="cpt", fim_rate=1.0),
    "functions": recipe(objective="cpt", granular=["function"]),
    "repositories": recipe(objective="cpt", repository_context=True),
    "renamed": recipe(objective="cpt", rename_share=1.0),
}


def code_of(sample: Sample, tokenizer: Any) -> str:
    start = sample.code_start if sample.prompt_tokens else 0  # of a document the first token is not judged
    return str(tokenizer.decode(list(sample.ids[start : sample.code_end])))


@pytest.mark.parametrize("name", RECIPES)
def test_all_tokens_are_counted_to_contents(name: str, tokenizer: Any) -> None:
    for sample in make(contents(), RECIPES[name], tokenizer, purpose="train", round_number=1):
        assert sum(each.tokens for each in sample.extracts) == len(sample.ids)
        assert len({each.content_id for each in sample.extracts}) == len(sample.extracts)


@pytest.mark.parametrize("name", ["files", "fim", "repositories", "renamed"])
def test_together_they_are_every_line(name: str, tokenizer: Any) -> None:
    lines: dict[int, set[int]] = {each.content_id: set() for each in contents()}
    for sample in make(contents(), RECIPES[name], tokenizer, purpose="train", round_number=1):
        for each in sample.extracts:
            lines[each.content_id].update(range(each.first_line, each.last_line + 1))
    for each in contents():
        assert lines[each.content_id] == set(range(1, len(lines_of(each.text)) + 1))


@pytest.mark.parametrize("name", ["pairs", "files", "functions"])
def test_the_code_of_a_sample_stands_in_its_lines(name: str, tokenizer: Any) -> None:
    texts = {each.content_id: each.text.split("\n") for each in contents()}
    made = make(contents(), RECIPES[name], tokenizer, purpose="train", round_number=1)
    assert len(made) > 10
    for sample in made:
        (each,) = sample.extracts
        held = texts[each.content_id][each.first_line - 1 : each.last_line]
        assert held
        if name == "pairs":  # the code to write ends where the lines end
            assert "\n".join(held).rstrip("\n").endswith(code_of(sample, tokenizer).rstrip("\n"))
            continue
        code = code_of(sample, tokenizer).removesuffix("\n").split("\n")
        inner = [line.strip() for line in code[1:-1]]  # the first and last line may be cut within
        assert inner == [line.strip() for line in held[1:-1]]


def test_a_row_of_several_files_names_them_all(tokenizer: Any) -> None:
    """Each with the lines that lie in it, counted without the heading."""
    texts = {each.content_id: each.text.split("\n") for each in contents()}
    made = make(contents(), RECIPES["repositories"], tokenizer, purpose="train", round_number=1)
    assert max(len(sample.extracts) for sample in made) > 1
    for sample in made:
        code = code_of(sample, tokenizer)
        for each in sample.extracts:
            held = texts[each.content_id][each.first_line - 1 : each.last_line]
            assert all(line in code for line in held[1:-1])


def test_what_is_judged_by_says_it_too(tokenizer: Any) -> None:
    made = make(contents(), RECIPES["files"], tokenizer, purpose="judge", round_number=1)
    assert all(sample.extracts for sample in made)
