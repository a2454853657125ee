"""Writing a receipt: what a line looks like, what it refuses, and how much memory a large one takes."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.core.models import ContentRole
from services.trainer.receipts import reading
from services.trainer.receipts.lines import NAME, Content, Source, decode, recipe_digest
from services.trainer.receipts.writing import write_lines
from tests.unit.trainer.receipts import adapters

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SPANS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=3).map(tuple)


@given(
    path=TEXTS, commit=st.none() | TEXTS, licence=st.none() | TEXTS, spans=SPANS,
    role=st.sampled_from(ContentRole), judged=st.none() | SPANS,
)  # fmt: skip
def test_a_line_reads_back_as_it_was_written(
    path: str, commit: str | None, licence: str | None, spans: tuple[tuple[int, int], ...],
    role: ContentRole, judged: tuple[tuple[int, int], ...] | None,
) -> None:  # fmt: skip
    """Whatever a path holds, in one line of printable ASCII."""
    file = ("a", path) if commit is None else ("a", path, commit)
    line = Content(
        role=role, sha256="0" * 64, language="c", bytes=1, lines=1, score=1, licence=licence, files=(file,),
        seen=2, samples=1, tokens=3, spans=spans, judged=judged,
    )  # fmt: skip
    encoded = line.encoded()
    assert decode(encoded) == line
    assert encoded[:-1].isascii()
    assert encoded[:-1].decode().isprintable()
    assert encoded.endswith(b"}\n")


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"source"}',
        '{"kind":"source","name":7}',
        '{"kind":"source","name":"a","more":1}',
        '{"kind":"else","name":"a"}',
        '{"name":"a"}',
        "[]",
        '{"kind":"end","lines":-1,"root":"00"}',
    ],
)
def test_a_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        decode(line.encode())


def test_the_digest_of_a_recipe_does_not_depend_on_the_order_of_its_fields() -> None:
    assert (
        recipe_digest({"b": 0.005, "a": 1}) == recipe_digest({"a": 1, "b": 0.005}) != recipe_digest({"a": 1})
    )


def peak(contents: int, folder: Path) -> int:
    """Bytes allocated at most while a receipt of so many contents is written and read."""
    header, *_ = adapters.lines([])
    numbers = range(contents)
    tracemalloc.start()
    lines = (Source(name="flask"), Source(name="häßlich"))
    write_lines(
        folder, (each for part in ((header, *lines), map(adapters.content, numbers)) for each in part)
    )
    with pytest.raises(ValueError, match="its header counts"):  # all lines are read before
        reading.read(folder)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_the_contents(tmp_path: Path) -> None:
    """Ten times as many contents, a receipt ten times as large, not a twentieth of it more memory."""
    peak(10, tmp_path)  # whatever is made once
    few, many = peak(300, tmp_path), peak(3000, tmp_path)
    assert many - few < (tmp_path / NAME).stat().st_size / 20
