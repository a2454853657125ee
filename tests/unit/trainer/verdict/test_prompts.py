"""Snippets as a model is shown them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.verdict.prompts import as_blocks, as_comments
from services.trainer.verdict.retrieval import Snippet


def count(text):
    return len(text.split())


def snippet(path, lines=6, score=1.0):
    return Snippet(path, 1, "".join(f"line {at} of {path}\n" for at in range(lines)), score)


def test_comments_name_the_path_and_the_best_is_nearest_to_the_code():
    made = as_comments([snippet("best.py"), snippet("next.py")], "python", 1000, count)
    assert made.index("# From next.py:\n# line 0 of next.py\n") < made.index("# From best.py:\n")
    assert all(line.startswith("#") or not line for line in made.splitlines())


def test_comments_are_the_languages_own():
    assert as_comments([snippet("a.html")], "html", 1000, count).startswith("<!-- From a.html: -->\n")
    assert as_comments([snippet("a.rs")], "rust", 1000, count).startswith("// From a.rs:\n")


def test_blocks_have_longer_fences_than_the_code():
    made = as_blocks([Snippet("a.md", 1, "````python\nx\n````\n", 1.0)], "python", 1000, count)
    assert made.startswith("From a.md:\n\n`````python\n````python\n")


def test_of_a_snippet_that_is_too_long_the_end_is_shown():
    made = as_comments([snippet("a.py", lines=30)], "python", 60, count)
    assert "# line 29 of a.py" in made
    assert "# line 0 of a.py" not in made


def test_nothing_is_shown_where_there_is_no_room():
    assert as_comments([snippet("a.py")], "python", 10, count) == ""


texts = st.lists(st.text("ab `\n", max_size=60), max_size=6)


@settings(max_examples=50)
@given(texts, st.integers(0, 60))
def test_the_room_is_never_left(found, room):
    snippets = [Snippet("a.py", 1, text, 1.0) for text in found]
    assert count(as_comments(snippets, "python", room, count)) <= room
    assert count(as_blocks(snippets, "python", room, count)) <= room
