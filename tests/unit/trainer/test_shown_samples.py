"""Samples for a round's page: what counts is marked, nothing is longer than it may be."""

import json
from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.packing import Row, pack
from services.trainer.rows import Rows
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.pairs import completion_pairs
from services.trainer.samples.sample import Extract, Sample
from services.trainer.samples.source import SampleSource
from services.trainer.shown_samples import SAMPLE_BYTES, SAMPLES, chosen, contents_of, keep, shown
from tests.unit.trainer.known_tokenizers import tokenizer

CODE = "\n".join(f"line_{number} = {number}" for number in range(40))


def pair(text: str = CODE, content_id: int = 7, name: str = "qwen") -> Sample:
    source = SampleSource(content_id, b"sha", "python", text, 90, ())
    return completion_pairs([source], Encoder(tokenizer(name)), 100_000)[0]


def sample(content_id: int, kind: str = "file", extracts: tuple[Extract, ...] = ()) -> Sample:
    return Sample(content_id, array("i", [5, 6, 7]), 1, 0, 3, 9, kind, extracts=extracts)


def rows_of(samples: list[Sample], planted: tuple[int, ...] = ()) -> Rows:
    fakes: Any = [SimpleNamespace(content_id=each) for each in planted]
    return Rows(pack(samples, 100_000), [], [], [], fakes)


@pytest.mark.parametrize("name", ["qwen", "llama3", "smollm2"])
def test_it_is_what_the_model_saw(name: str) -> None:
    """The runs make its text; what is learned is what the loss is on; template tokens stand alone."""
    made = pair(name=name)
    seen = shown(made, tokenizer(name))
    ids = list(made.ids)
    text = tokenizer(name).decode(ids, skip_special_tokens=False)
    assert "".join(run.text for run in seen.runs) == text
    learned = "".join(run.text for run in seen.runs if run.learned)
    assert learned == tokenizer(name).decode(ids[made.prompt_tokens :], skip_special_tokens=False)
    assert (seen.tokens, seen.learned) == (len(ids), len(ids) - made.prompt_tokens)
    assert any(run.special and run.learned for run in seen.runs), "the end of the turn is learned"
    assert all("line_" not in run.text for run in seen.runs if run.special)


@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40), st.integers(20, 400))
def test_it_is_never_longer_than_4_kb(line: str, lines: int) -> None:
    """Whatever the code is: as JSON it fits, and how much was left out is said."""
    made = pair("\n".join([CODE, *[line] * lines]).replace("\0", ""))
    seen = shown(made, tokenizer("qwen"))
    assert len(json.dumps(seen.runs_as_json(), ensure_ascii=False).encode()) <= SAMPLE_BYTES
    whole = tokenizer("qwen").decode(list(made.ids), skip_special_tokens=False)
    assert sum(len(run.text) + run.left_out for run in seen.runs) == len(whole)


def test_some_of_every_kind_and_no_planted_secret() -> None:
    samples = [sample(number, "file" if number % 10 else "fim-psm") for number in range(1, 101)]
    found = chosen(rows_of(samples, planted=(1, 10)))
    assert len(found) == SAMPLES
    assert {each.kind for each in found} == {"file", "fim-psm"}
    assert {1, 10}.isdisjoint(each.content_id for each in found)


def test_all_contents_of_a_sample_are_known() -> None:
    """A row of many files quotes each of them."""
    extracts = (Extract(3, 1, 5, 1), Extract(2, 1, 9, 1), Extract(3, 6, 7, 1))
    assert contents_of(sample(2, "repository", extracts)) == (2, 3)


def test_what_goes_wrong_fails_no_round(caplog: pytest.LogCaptureFixture) -> None:
    """A ledger that is away is said in the log, and that is all."""

    class Broken:
        def record_samples(self, *_: object) -> None:
            raise ConnectionError("no database")

    books = SimpleNamespace(ledger=Broken())
    context: Any = SimpleNamespace(distribution=SimpleNamespace(is_first=True), first_books=books)
    round_: Any = SimpleNamespace(round_id=1)
    keep(context, round_, Rows([Row((pair(),))], [], [], []), tokenizer("qwen"))
    assert "no samples are kept for the round's page (ConnectionError: no database)" in caplog.text
