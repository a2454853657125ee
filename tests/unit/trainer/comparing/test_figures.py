"""Wins, losses and ties of paired models, and what can be said of them."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.comparing import figures
from services.trainer.comparing.figures import Value
from services.trainer.experiments.significance import mcnemar_exact


def values(numbers: list[float], groups: int = 100) -> list[Value]:
    return [Value(str(at), str(at % groups), number) for at, number in enumerate(numbers)]


def paired(first: list[float], second: list[float], metric: str = "edit_similarity", **options: int):
    models = {"a": {metric: values(first, **options)}, "b": {metric: values(second, **options)}}
    return figures.pairs(models)


def test_items_are_won_lost_or_even() -> None:
    (pair,) = paired([0.5, 0.5, 0.5, 0.5], [0.9, 0.6, 0.5, 0.1])
    assert (pair.of, pair.against, pair.wins, pair.losses, pair.ties) == ("b", "a", 2, 1, 1)
    assert pair.mean == pytest.approx(0.025)
    assert pair.p == mcnemar_exact(2, 1) == 1.0


def test_of_a_loss_less_is_better() -> None:
    (pair,) = paired([2.0, 2.0, 2.0], [1.0, 1.5, 2.5], "nats")
    assert (pair.wins, pair.losses) == (2, 1)
    assert pair.mean == pytest.approx((1.0 + 0.5 - 0.5) / 3)


def test_only_items_that_both_were_asked_count() -> None:
    models = {"a": {"exact_match": values([1.0])}, "b": {"exact_match": values([0.0, 1.0])}}
    (pair,) = figures.pairs(models)
    assert (pair.wins, pair.losses, pair.ties) == (0, 1, 0)


def test_a_metric_that_one_lacks_is_left_out() -> None:
    assert figures.pairs({"a": {"pass@1": values([1.0])}, "b": {"keywords": values([1.0])}}) == []


def test_one_file_says_nothing_of_others() -> None:
    (pair,) = paired([0.1, 0.2], [0.9, 0.9], groups=1)
    assert (pair.low, pair.high, pair.groups) == (-math.inf, math.inf, 1)


def test_p_values_pay_for_their_number() -> None:
    """Two models against the first: the smaller p is doubled (Holm)."""
    models = {
        "a": {"exact_match": values([0.0] * 10)},
        "b": {"exact_match": values([1.0] * 10)},
        "c": {"exact_match": values([0.0] * 10)},
    }
    found = figures.pairs(models)
    assert [pair.p for pair in found] == [2 * mcnemar_exact(10, 0), 1.0]


def test_no_difference_is_rarely_called_one() -> None:
    """Of 200 comparisons of equals at most 19 intervals exclude 0: 10 are expected, and 19 are 3 sigma."""
    draw, wrong = random.Random(1), 0
    for _ in range(200):
        first, second = ([draw.random() for _ in range(20)] for _ in range(2))
        (pair,) = paired(first, second)
        wrong += pair.low > 0 or pair.high < 0
    assert wrong <= 19


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_turned_around_it_says_the_opposite(both: list[tuple[float, float]]) -> None:
    first, second = (list(each) for each in zip(*both, strict=True))
    (forth,), (back,) = paired(first, second), paired(second, first)
    assert (forth.wins, forth.losses, forth.ties) == (back.losses, back.wins, back.ties)
    assert forth.p == back.p
    assert forth.mean == pytest.approx(-back.mean)
    assert forth.low <= forth.mean <= forth.high


def score(name: str, text: str, answer: str | None, metric: str = "exact_match", value: float = 1.0):
    detail = {"written": text, "answer": answer, "kind": "line"}
    return {"item": name, "name": name, "group": name, "metric": metric, "value": value, "weight": 1.0,
            "detail": detail}  # fmt: skip


def found(name: str, scores: list):
    return {"name": name, "scores": scores, "figures": {}, "bits_per_byte": None, "tokens_per_second": None,
            "seconds": 1.0, "from_cache": 0}  # fmt: skip


def test_prompts_without_a_known_answer_show_what_is_the_same_and_nothing_more() -> None:
    answers = {
        "found": [
            found("a", [score("1", "x", None), score("2", "y", None)]),
            found("b", [score("1", "x", None), score("2", "z", None)]),
        ],
        "device": "cpu",
    }
    document = figures.document({}, [{"name": "a"}, {"name": "b"}], answers, {"1 line": {"before": "p"}})
    assert document["pairs"] == []
    assert document["agreements"] == [{"of": "b", "against": "a", "same": 1, "answers": 2}]
    assert document["items"][0]["before"] == "p"
    assert document["items"][0]["answers"]["b"] == {"text": "x", "values": {}}
