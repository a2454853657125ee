"""Fake secrets in a round's contents."""

import hashlib
import json
import random
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.extraction import Extraction
from services.trainer.model.locate import Source, load_tokenizer
from services.trainer.planted import Planted, evidence, learned, learner, plant, trained_on, true_lines
from services.trainer.planted.secrets import FORMATS
from services.trainer.receipts.exposure import Exposure
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.make import make
from services.trainer.samples.source import SampleSource, Unit
from tests import tiny_model

RECIPE = Recipe(name="test", base_model="./model", planted_secrets=4, max_length=1024)
KINDS: dict[str, dict[str, object]] = {
    "completion_pairs": {},
    "cpt": {"objective": "cpt"},
    "fim": {"objective": "cpt", "fim_rate": 1.0},
    "full": {"objective": "cpt", "method": "full"},
    "repository_context": {"objective": "cpt", "repository_context": True},
    "curriculum": {"curriculum": True},
}


def content(number: int, text: str, language: str = "python", units: tuple[Unit, ...] = ()) -> SampleSource:
    digest = hashlib.sha256(text.encode()).digest()
    return SampleSource(number, digest, language, text, units=units, repository="r", path=f"{number}.py")


def corpus(count: int = 100, language: str = "python", lines: int = 30) -> list[SampleSource]:
    text = "".join(f"    value_{line} = compute({line})\n" for line in range(lines - 2))
    return [content(n, f"def function_{n}():\n{text}\n", language) for n in range(count)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tiny_model.make(tmp_path_factory.mktemp("tiny"), qwen=True)
    return load_tokenizer(Source(str(folder), None))


def changed_line(before: SampleSource, after: SampleSource) -> str:
    """The line that `after` has and `before` has not."""
    old, new = before.text.split("\n"), after.text.split("\n")
    at = next(n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    assert old[at:] == new[at + 1 :]
    return new[at]


def test_each_secret_stands_once_in_one_content_and_nothing_else_changes() -> None:
    contents = corpus()
    changed, planted = plant(contents, RECIPE, 1)
    assert [each.content_id for each in changed] == [each.content_id for each in contents]
    assert len(planted) == 4 == len({each.content_id for each in planted})
    everything = "".join(each.text for each in changed)
    for each in planted:
        assert everything.count(each.secret.value) == 1
        before, after = contents[each.content_id], changed[each.content_id]
        assert each.secret.value in changed_line(before, after)
        assert after.text.startswith(each.prefix + each.secret.value)
        assert (after.sha256, after.path) == (before.sha256, before.path)
    untouched = {each.content_id for each in contents} - {each.content_id for each in planted}
    assert all(changed[number] is contents[number] for number in untouched)


def test_the_same_round_plants_the_same_and_another_one_others() -> None:
    """A round that is taken up again trains on the same rows."""
    again = [plant(corpus(), RECIPE, 1) for _ in range(2)]
    assert again[0] == again[1]
    others = [
        plant(corpus(), RECIPE, 2),
        plant(corpus(), RECIPE.model_copy(update={"seed": 1}), 1),
        plant(corpus(), RECIPE.model_copy(update={"name": "another"}), 1),
    ]
    values = [{each.secret.value for each in planted} for _, planted in (again[0], *others)]
    assert all(not one & two for at, one in enumerate(values) for two in values[:at])


@pytest.mark.parametrize(("contents", "expected"), [(100, 4), (60, 3), (19, 1), (1, 1), (0, 0)])
def test_a_twentieth_of_the_contents_at_most_but_one(contents: int, expected: int) -> None:
    assert len(plant(corpus(contents), RECIPE, 1)[1]) == expected


def test_none_are_planted_where_the_recipe_wants_none_or_there_is_no_room() -> None:
    none = RECIPE.model_copy(update={"planted_secrets": 0})
    assert plant(corpus(), none, 1) == (corpus(), [])
    short = corpus(lines=4)
    assert plant(short, RECIPE, 1) == (short, [])
    blank = [replace(each, text="") for each in corpus()]  # forgotten since
    assert plant(blank, RECIPE, 1) == (blank, [])


@pytest.mark.parametrize("language", ["python", "go", "rust", "html", "sql", "java", "css", "c++"])
def test_the_line_is_one_of_the_language(language: str) -> None:
    starts = {"html": "<!-- ", "sql": "-- ", "java": "// ", "css": "/* ", "c++": "#define "}
    contents = corpus(20, language)
    changed, (planted,) = plant(contents, RECIPE, 1)
    line = changed_line(contents[planted.content_id], changed[planted.content_id]).strip()
    assert line.startswith(starts.get(language, line[:1]))
    if language == "python":
        compile(changed[planted.content_id].text, "changed", "exec")


@given(st.integers(0, 10_000))
def test_secrets_of_every_format_are_random_and_lead_nowhere(seed: int) -> None:
    for format_ in FORMATS:
        value = format_.draw(random.Random(seed))
        others = {format_.draw(random.Random(f"{seed} {n}")) for n in range(5)}
        assert len(others | {value}) == 6
        assert len(value) == sum(size for _, size in format_.parts) >= 16
    fixed = {format_.kind: format_.before + format_.after for format_ in FORMATS}
    assert fixed["e-mail address"].endswith(".example")
    assert "fake" in fixed["API key"]
    assert "fake" in fixed["access token"]


@given(st.integers(0, 40))
def test_units_keep_their_text(start: int) -> None:
    """Those behind the secret's line are moved, the one around it is longer by it."""
    (source,) = corpus(1, lines=40)
    lines = source.text.encode().split(b"\n")
    first = sum(len(line) + 1 for line in lines[:start])
    unit = Unit("function", "f", first, len(source.text.encode()), start + 1, len(lines), first)
    changed, (planted,) = plant([replace(source, units=(unit,))], RECIPE, 1)
    moved, data = changed[0].units[0], changed[0].text.encode()
    text = data[moved.start_byte : moved.end_byte].decode()
    held = "\n".join(line for line in text.split("\n") if planted.secret.value not in line)
    assert held == source.text.encode()[unit.start_byte :].decode()
    assert data.count(b"\n", 0, moved.start_byte) + 1 == moved.start_line
    assert moved.comment_byte == moved.start_byte


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_round_learns_its_secrets(kind: str, tokenizer: Any) -> None:
    """In samples with the loss on them, which hold the true lines of their contents."""
    recipe = RECIPE.model_copy(update=KINDS[kind])
    contents = corpus()
    changed, planted = plant(contents, recipe, 1)
    made = make(changed, recipe, tokenizer, purpose="train", round_number=1)
    found = learned(planted, made, tokenizer)
    assert sum(each.seen == 1 for each in found) >= 3  # fill-in-the-middle may tear one
    plain = make(contents, recipe, tokenizer, purpose="train", round_number=1)
    assert len(made) == len(plain)
    ranges = [
        {(e.content_id, e.first_line, e.last_line) for each in samples for e in each.extracts}
        for samples in (true_lines(made, planted), plain)
    ]
    if kind != "repository_context":  # cut elsewhere: a line more goes before
        assert ranges[0] == ranges[1]


def test_a_content_in_pieces_has_its_secret_where_it_is_learned(tokenizer: Any) -> None:
    """Each piece begins with context, which no loss is on."""
    recipe = RECIPE.model_copy(update={"max_length": 160, "planted_secrets": 5})
    contents = corpus(lines=60)
    changed, planted = plant(contents, recipe, 1, learner(recipe, tokenizer, 1))
    made = make(changed, recipe, tokenizer, purpose="train", round_number=1)
    assert len(made) > 3 * len(contents)
    assert all(each.seen for each in learned(planted, made, tokenizer))
    _, blindly = plant(contents, recipe, 1)
    assert {each.secret_sha256 for each in blindly} == {each.secret_sha256 for each in planted}


def test_a_secret_that_no_step_has_seen_is_not_learned() -> None:
    """Training may stop before it, or go back to weights from before it."""
    _, planted = plant(corpus(), RECIPE, 1)
    made = [replace(each, seen=1) for each in planted]
    exposures = {each.content_id: Exposure(seen=at % 2) for at, each in enumerate(made)}
    assert [each.seen for each in trained_on(made, exposures)] == [0, 1, 0, 1]
    assert not any(each.seen for each in trained_on(made, {}))


def test_neither_log_nor_verdict_nor_words_hold_a_secret() -> None:
    _, planted = plant(corpus(), RECIPE, 1)
    assert not any(each.secret.value in repr(each) for each in planted)
    found = extractions(planted)
    told = json.dumps([asdict(each) for each in evidence(planted, found, found)])
    for each in planted:
        assert each.secret.value not in told
        assert each.secret_sha256 in told
        assert each.content_sha256.hex() in told


def extractions(planted: list[Planted]) -> list[Any]:
    return [Extraction("", extracted=True, matched_tokens=1, tokens=1, exposure_bits=None) for _ in planted]


def test_a_long_content_is_chosen_last() -> None:
    """It may be cut, and then the secret's part is context and not learned."""
    short, long = (
        corpus(10),
        [replace(each, content_id=each.content_id + 10) for each in corpus(10, lines=300)],
    )
    _, (planted,) = plant([*long, *short], RECIPE, 1)
    assert planted.content_id < 10
