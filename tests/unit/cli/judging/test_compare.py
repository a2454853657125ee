"""A comparison as a person sees it, on a terminal and as a page; what a model writes stays text."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from services.cli.judging import compare, comparison
from services.cli.judging.compare import Asked
from services.cli.judging.comparison_page import page
from services.cli.judging.differences import pieces
from services.core.errors import ConfigurationError

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202eevil\u200b\x00 &amp; </pre>\n\tindented"


def document(text="b = 2\n", *, wanted="a = 1\n"):
    def subject(name):
        return {
            "name": name, "kind": "adapter", "base_model": "m", "folder": "/a", "quantised": name == "b",
            "figures": {"exact_match": 0.25, "edit_similarity": 0.5}, "bits_per_byte": 1.25,
            "tokens_per_second": 12.5 if name == "a" else None, "seconds": 3.0, "from_cache": 4,
        }  # fmt: skip

    pair = {"of": "b", "against": "a", "metric": "exact_match", "wins": 3, "losses": 1, "ties": 4, "p": 0.625,
            "mean": 0.25, "low": -0.1, "high": 0.6, "groups": 5}  # fmt: skip
    answers = {
        "a": {"text": "a = 1\n", "values": {"exact_match": 1.0, "edit_similarity": 1.0}},
        "b": {"text": text, "values": {"exact_match": 0.0, "edit_similarity": 0.75}},
    }
    item = {"name": "f.py:3", "kind": "line", "before": "x\n", "wanted": wanted, "answers": answers}
    return {
        "asked": {"what": "completions", "of": "held-out code", "files": 5}, "device": "2 CPU threads",
        "confidence": 0.95, "subjects": [subject("a"), subject("b")], "pairs": [pair],
        "agreements": [{"of": "b", "against": "a", "same": 0, "answers": 1}], "items": [item],
    }  # fmt: skip


def printed(found, width=160, **options):
    out = io.StringIO()
    comparison.show(Console(file=out, width=width, **options), found, most=1)
    return out.getvalue()


def test_figures_and_wins_are_said():
    said = printed(document())
    assert re.search(r"^ a +25\.0 % +50\.0 % +1\.2500 +12\.5 +3\.0", said, re.MULTILINE)
    assert re.search(r"^ b .* known ", said, re.MULTILINE)
    assert "b against a, exact match: 3 won, 1 lost, 4 even (sign test p 0.625); +25.00 points" in said
    assert "b and a: 0 of 1 answers the same" in said


def test_answers_stand_side_by_side_with_what_differs_in_brackets():
    said = printed(document())
    row = next(line for line in said.splitlines() if "⟦" in line)
    assert re.search(r"a = 1 +a = 1 +⟦b⟧ = ⟦2⟧", row)


def test_on_a_narrow_terminal_they_stand_below_one_another():
    lines = [line.strip() for line in printed(document(), width=60).splitlines()]
    assert [line for line in lines if line in ("wanted", "a = 1", "⟦b⟧ = ⟦2⟧")] == [
        "wanted", "a = 1", "a = 1", "⟦b⟧ = ⟦2⟧",
    ]  # fmt: skip


def test_with_colours_there_are_no_brackets():
    said = printed(document(), force_terminal=True, color_system="standard")
    assert "⟦" not in said
    assert "\x1b[7mb" in said


def test_nothing_a_model_writes_moves_the_cursor():
    said = printed(document(HOSTILE))
    assert not set(said) & {"\x1b", "\u202e", "\u200b", "\x00"}
    assert "\\x1b" in said
    assert "\\u202e" in said


def test_a_page_needs_nothing_else_and_runs_nothing():
    made = page(document(HOSTILE))
    assert "<script" not in made
    assert "&lt;script&gt;" in "".join(re.sub("</?mark>", "", made))
    assert not set(made) & {"\x1b", "\u202e", "\u200b", "\x00"}
    assert "default-src &#39;none&#39;" in made or "default-src 'none'" in made
    assert not re.search(r"""(src|href)\s*=|url\(|@import""", made)


def test_names_of_folders_are_escaped_too():
    found = document()
    for subject in found["subjects"]:
        subject["folder"] = '"><img src=x>'
    assert "<img" not in page(found)


@given(st.text(max_size=60), st.text(max_size=60))
def test_pieces_join_to_the_text(text, other):
    made = pieces(text, other)
    assert "".join(piece.text for piece in made) == text
    same = "".join(piece.text for piece in made if not piece.differs)
    assert len(same) <= len(other)


def test_a_text_is_no_different_from_itself():
    assert not any(
        piece.differs for piece in pieces("def f(x):\n    return x\n", "def f(x):\n    return x\n")
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(("base",)), "two models or more"),
        (Asked(("base", "base")), "each once"),
        (Asked(("base", "champion"), Path("p.txt"), "humaneval"), "one of the two"),
    ],
)
def test_questions_that_cannot_be_are_refused(asked, said):
    with pytest.raises(ConfigurationError, match=said):
        compare.check(asked, None, force=False)


def test_a_page_that_is_there_is_kept(tmp_path):
    there = tmp_path / "c.html"
    there.write_text("mine")
    with pytest.raises(ConfigurationError, match="--force"):
        compare.check(Asked(("base", "champion")), there, force=False)
    compare.write(there, "new")
    assert there.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["c.html"]
