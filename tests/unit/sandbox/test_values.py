"""Tagged JSON: what crosses between a program and its checker."""

import json
import math
from collections import Counter, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.sandbox.inside import frames
from services.sandbox.inside.candidate import stand_in
from services.sandbox.inside.values import DECODERS, Drained, NotPlainError, decode, encode

TAGS = sorted(DECODERS)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.complex_numbers()
)
keys = scalars | st.tuples(scalars, scalars) | st.frozensets(st.text(), max_size=3)


def nested(inner):
    return st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(keys, inner, max_size=3),
        st.sets(keys, max_size=3),
    )


def json_values(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(TAGS), inner, max_size=2)


values = st.recursive(keys, nested, max_leaves=8)
json_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
sent_values = st.recursive(json_scalars, json_values, max_leaves=8)


def shown(value: object) -> str:
    """Type and value all the way down: a nan is a nan, a zero has a sign, a set no order."""
    if isinstance(value, list | tuple):
        parts = list(map(shown, value))
    elif isinstance(value, dict):
        parts = [shown(item) for item in value.items()]
    elif isinstance(value, set | frozenset):
        parts = sorted(map(shown, value))
    else:
        parts = [repr(value)]
    return f"{type(value).__name__}{parts}"


@given(values)
def test_a_plain_value_comes_back_as_it_was(value):
    assert shown(decode(frames.loads(frames.dumps(encode(value))))) == shown(value)


@given(values)
def test_what_is_sent_is_json_to_others_too(value):
    sent = encode(value)
    assert json.loads(frames.dumps(sent)) == sent


@given(sent_values)
def test_any_json_is_decoded_or_refused(sent):
    """Nothing but ValueError, whatever a program sends."""
    try:
        decode(sent)
    except ValueError:
        pass


class Liar(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize("value", [object(), Liar(3), [Liar(3)], {1: object()}, int, len, range(3), iter([])])
def test_what_is_not_exactly_plain_is_refused(value):
    with pytest.raises(NotPlainError):
        encode(value)


@pytest.mark.parametrize(
    "sent",
    [
        {"any": 1},
        {},
        {"tuple": [], "list": []},
        {"tuple": 5},
        {"dict": [[[1], 2]]},
        {"dict": [1]},
        {"int": 5},
        {"int": "0xzz"},
        {"float": "1"},
        {"float": []},
        {"complex": [1]},
        {"bytes": "zz"},
        {"set": [[1]]},
    ],
)
def test_what_encode_cannot_have_made_is_refused(sent):
    with pytest.raises(ValueError):
        decode(sent)


def test_a_value_that_holds_itself_is_refused():
    held = []
    held.append(held)
    with pytest.raises(RecursionError):
        encode(held)


Point = namedtuple("Point", "x y")  # noqa: PYI024


@pytest.mark.parametrize(
    ("value", "counts_as"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (Liar(3), 3),
        (Point(1, 2), (1, 2)),
        (type("Text", (str,), {})("a"), "a"),
        (type("Real", (float,), {})(-0.0), -0.0),
        ([Liar(1)], [1]),
    ],
)
def test_a_subclass_counts_for_what_it_holds(value, counts_as):
    assert shown(decode(encode(value, stand_in))) == shown(counts_as)


def test_an_iterator_counts_for_what_it_gives():
    given_back = decode(encode((number * 2 for number in range(3)), stand_in))
    assert not isinstance(given_back, list)
    assert list(given_back) == [0, 2, 4]


def test_a_drained_iterator_of_strangers_is_refused():
    with pytest.raises(NotPlainError):
        encode(Drained([object()]))


def test_a_number_of_thousands_of_digits_crosses():
    """Python's own limit on decimal digits does not apply."""
    assert decode(encode(3**20000)) == 3**20000


def test_an_infinity_is_no_nan():
    assert decode(encode(math.inf)) == math.inf
