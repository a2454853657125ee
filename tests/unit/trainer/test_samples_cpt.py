"""Samples for continued pre-training: files, units, repositories."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples import documents
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.make import make
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource, Unit
from tests.tiny_model import standard_library
from tests.unit.trainer.known_tokenizers import tokenizer

BYTE_LEVEL = ["chatml", "qwen", "llama3", "starcoder2"]
ENDS = {"llama3": "<|end_of_text|>", "codellama": "</s>"}
RECIPE = Recipe(name="cpt", base_model="./model", objective="cpt", max_length=128)


def content(text: str, number: int = 1, **fields: object) -> SampleSource:
    return SampleSource(number, hashlib.sha256(text.encode()).digest(), "python", text, 90, **fields)  # type: ignore[arg-type]


def made(name: str, *contents: SampleSource, **fields: object) -> list[Sample]:
    recipe = RECIPE.model_copy(update=fields)
    return make(contents, recipe, tokenizer(name), purpose="train", round_number=1)


def judged(name: str, text: str) -> list[Sample]:
    return make([content(text)], RECIPE, tokenizer(name), purpose="judge", round_number=1)


def joined(name: str, samples: list[Sample]) -> str:
    """The text of samples one after another, without what begins and ends a document."""
    its = tokenizer(name)
    begin, end = Encoder(its).begin, Encoder(its).end
    ids: list[int] = []
    for sample in samples:
        own = list(sample.ids)
        assert own[: len(begin)] == begin
        ids += own[len(begin) :]
    assert ids.count(end) == 1
    assert ids[-1] == end
    return its.decode(ids[:-1], skip_special_tokens=False)


@pytest.mark.parametrize("name", [*BYTE_LEVEL, "codellama"])
@settings(max_examples=40)
@given(text=st.text(st.characters(codec="utf-8"), min_size=1, max_size=1500))
def test_pieces_of_a_document_are_the_document(name: str, text: str) -> None:
    """Whatever the text; each fits into a row, the last one alone has the end."""
    samples = judged(name, text)
    assert all(len(sample.ids) <= 128 for sample in samples)
    assert all(sample.labels == list(sample.ids) for sample in samples)
    if name == "codellama" and not text.isprintable():
        return  # its decoder has no byte for what its normalizer changed
    assert joined(name, samples) == text


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_real_files_are_cut_between_lines(name: str) -> None:
    """Every piece but the first begins a line, or goes on at the end of one."""
    for path in standard_library(5):
        text = path.read_text()
        samples = judged(name, text)
        assert joined(name, samples) == text
        at = 0
        for sample in samples[:-1]:
            piece = tokenizer(name).decode(sample.ids, skip_special_tokens=True)
            at += len(piece)
            assert "\n" in (text[at - 1], text[at])


def test_bytes_that_are_judged_are_the_texts() -> None:
    """All of them where a token begins the document, all but the first token's otherwise."""
    text = "value = 'é'\n" * 100
    assert sum(sample.code_bytes for sample in judged("llama3", text)) == len(text.encode())
    samples = judged("chatml", text)
    assert all(sample.code_start == 1 for sample in samples)
    lost = sum(len(tokenizer("chatml").decode(sample.ids[:1]).encode()) for sample in samples)
    assert sum(sample.code_bytes for sample in samples) == len(text.encode()) - lost


def test_a_unit_is_a_sample_with_its_comment_and_body() -> None:
    """At the left margin; its file is a sample, too."""
    text = (
        "import os\n\n\nclass Calculator:\n    zero = 0\n    # adds\n    def add(self, one, other):\n"
        + "        one += other\n" * 9
    )
    start, comment = text.index("def add"), text.index("# adds")
    unit = Unit("method", "add", start, len(text) - 1, 7, 15, comment)
    samples = made("chatml", content(text, units=(unit,)), granular=("method",), max_length=1024)
    (file,) = [sample for sample in samples if sample.kind == "file"]
    (method,) = [sample for sample in samples if sample.kind == "method"]
    assert joined("chatml", [file]) == text
    assert joined("chatml", [method]) == ("# adds\ndef add(self, one, other):\n" + "    one += other\n" * 9)


@pytest.mark.parametrize(
    "unit",
    [
        Unit("function", "tiny", 0, 60, 1, 2, 0),  # two lines
        Unit("function", "whole", 0, 990, 1, 99, 0),  # the file again
        Unit("class", "other", 0, 500, 1, 50, 0),  # not asked for
    ],
)
def test_units_that_are_tiny_or_the_whole_file_are_left_out(unit: Unit) -> None:
    """87 % of the seed's were heads without bodies."""
    text = "x = 1234\n\n" * 100
    assert documents.granules([content(text, units=(unit,))], ("function",)) == []


def test_a_unit_in_one_of_its_kind_is_not_taken_twice() -> None:
    """It is in the outer one."""
    text = "x = 1234567\n" * 100
    units = (Unit("function", "outer", 0, 600, 1, 50, 0), Unit("function", "inner", 120, 480, 11, 40, 120))
    found = documents.granules([content(text, units=units)], ("function",))
    assert [document.text for document in found] == [text[:600] + "\n"]


def repository() -> list[SampleSource]:
    texts = {
        "app/main.py": "from app import shapes\nimport app.tools\n\nshapes.draw()\n",
        "app/shapes.py": "from .tools import line\n\n\ndef draw():\n    line()",
        "app/tools.py": "def line():\n    print('-')\n",
    }
    return [
        content(text, number, repository="demo", path=path)
        for number, (path, text) in enumerate(texts.items())
    ]


SEPARATED = (
    "{repo}demo\n"
    "{file}app/tools.py\ndef line():\n    print('-')\n"
    "{file}app/shapes.py\nfrom .tools import line\n\n\ndef draw():\n    line()\n"
    "{file}app/main.py\nfrom app import shapes\nimport app.tools\n\nshapes.draw()\n"
)


@pytest.mark.parametrize(
    ("name", "repo", "file"),
    [("qwen", "<|repo_name|>", "<|file_sep|>"), ("starcoder2", "<repo_name>", "<file_sep>")],
)
def test_files_follow_what_they_import_between_the_models_own_separators(
    name: str, repo: str, file: str
) -> None:
    """Tools before shapes before main."""
    (sample,) = made(name, *repository(), repository_context=True)
    assert sample.kind == "repository"
    assert joined(name, [sample]) == SEPARATED.format(repo=repo, file=file)
    assert Encoder(tokenizer(name)).token(file) in sample.ids


def test_without_separators_a_comment_names_the_file() -> None:
    """And nothing names the repository."""
    (sample,) = made("chatml", *repository(), repository_context=True)
    assert joined("chatml", [sample]) == SEPARATED.removeprefix("{repo}demo\n").format(file="# ")


@pytest.mark.parametrize("name", ["qwen", "chatml", "llama3"])
def test_pieces_of_a_repository_are_the_repository(name: str) -> None:
    """However many rows it takes; each belongs to the content it begins in."""
    contents = [
        content(path.read_text(), number, repository="lib", path=path.name)
        for number, path in enumerate(standard_library(12))
    ]
    recipe = RECIPE.model_copy(update={"repository_context": True, "max_length": 512})
    samples = make(contents, recipe, tokenizer(name), purpose="train", round_number=1)
    texts = {tokenizer(name).decode(s.ids, skip_special_tokens=True): s.content_id for s in samples}
    assert all(len(sample.ids) <= 512 for sample in samples)
    assert sum(len(text) for text in texts) >= sum(len(each.text) for each in contents)
    by_id = {each.content_id: each.text for each in contents}
    for text, content_id in texts.items():
        assert any(line in by_id[content_id] for line in text.splitlines()[:3] if line.strip())


def test_special_tokens_in_files_are_text() -> None:
    """A file cannot end its document or begin another."""
    (sample,) = made("qwen", content("a = '<|endoftext|><|file_sep|>'\n" * 3), max_length=256)
    assert [token for token in sample.ids if token in tokenizer("qwen").added_tokens_decoder] == [
        Encoder(tokenizer("qwen")).end
    ]


def test_repository_context_is_for_training_alone() -> None:
    """What is judged is every file by itself."""
    recipe = RECIPE.model_copy(update={"repository_context": True, "granular": ("function",)})
    samples = make(repository(), recipe, tokenizer("qwen"), purpose="judge", round_number=1)
    assert [(sample.kind, sample.content_id) for sample in samples] == [("file", n) for n in range(3)]


def test_a_row_without_room_is_refused() -> None:
    """Before anything is made."""
    with pytest.raises(ConfigurationError, match="max_length=20"):
        documents.room(20, Encoder(tokenizer("chatml")))
