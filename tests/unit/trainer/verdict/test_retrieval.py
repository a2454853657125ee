"""Retrieval: what is found, and what never is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.verdict.corpus import Text
from services.trainer.verdict.retrieval import STRIDE_LINES, WINDOW_LINES, Index, query_of, words

QUERY = "def parse_invoice(line):\n    return Invoice.from_line(line)\n"


def text(path, body, cluster_id=None):
    return Text(cluster_id or hash(path) % 10**9, "repo", path, body)


def lines(word, count):
    return "".join(f"{word}_{number} = {word}({number})\n" for number in range(count))


@pytest.mark.parametrize(
    ("identifier", "found"),
    [
        ("parseJSONFile", ["parsejsonfile", "parse", "json", "file"]),
        ("read_all_rows", ["read_all_rows", "read", "all", "rows"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("__init__", ["init"]),
        ("MAX_SIZE", ["max_size", "max", "size"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("i", []),
        ("größe", ["größe", "gr", "öß"]),
    ],
)
def test_identifiers_are_searched_whole_and_in_parts(identifier, found):
    assert list(words(identifier)) == found


def test_the_most_similar_file_is_found_first():
    index = Index([text("a.py", lines("colour", 30)), text("b.py", f"class Invoice: ...\n{QUERY}")])
    assert [each.path for each in index.search(QUERY, path="c.py", cluster_id=-1, most=1)] == ["b.py"]


def test_what_follows_similar_code_is_shown_with_it():
    body = lines("other", WINDOW_LINES - 2) + QUERY + lines("after", 2 * STRIDE_LINES)
    (first, *_) = Index([text("b.py", body)]).search(QUERY, path="c.py", cluster_id=-1, most=5)
    assert "after_0" in first.text
    assert body.splitlines(keepends=True)[first.first_line - 1 :][0] == first.text.splitlines(True)[0]


def test_a_file_is_never_shown_to_itself_nor_to_what_is_nearly_the_same():
    index = Index([text("a.py", QUERY, 1), text("copy.py", QUERY, 1), text("b.py", QUERY, 2)])
    found = index.search(QUERY, path="a.py", cluster_id=1, most=5)
    assert [each.path for each in found] == ["b.py"]


def test_nothing_is_found_in_nothing():
    assert Index([]).search(QUERY, path="a.py", cluster_id=1, most=5) == []


def test_nothing_is_found_where_no_word_is_shared():
    assert Index([text("b.py", lines("colour", 9))]).search(QUERY, path="a.py", cluster_id=-1, most=5) == []


def test_a_query_is_the_last_lines():
    prefix = lines("before", 100) + "    return x."
    assert query_of(prefix).startswith("before_81 =")
    assert query_of(prefix).endswith("\n    return x.")


bodies = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", ""]), max_size=80).map("\n".join)


@given(st.lists(bodies, min_size=1, max_size=6), st.integers(1, 8))
def test_snippets_never_overlap_and_never_come_from_the_own_cluster(found, most):
    texts = [text(f"{at}.py", body, at % 3) for at, body in enumerate(found)]
    snippets = Index(texts).search("alpha beta\ngamma", path="0.py", cluster_id=1, most=most)
    assert len(snippets) <= most
    places = [
        (each.path, each.first_line + at) for each in snippets for at in range(len(each.text.splitlines()))
    ]
    assert len(places) == len(set(places))
    assert not {path for path, _ in places} & {"0.py", "1.py", "4.py"}
    assert [each.score for each in snippets] == sorted((each.score for each in snippets), reverse=True)
