"""Who wins how often: paired figures of two models over the same items. Pure, values in, values out.

A win is an item that one did better than the other by the metric. Whether so many wins are luck is told by
the exact sign test; how much better, by a paired, studentised bootstrap over groups (`gate.bootstrap`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from services.core.models import Json
from services.trainer.experiments.significance import holm, mcnemar_exact
from services.trainer.gate.bootstrap import bounds

CONFIDENCE = 0.95  # of every interval by itself; p values are adjusted for their number (Holm 1979)
TOLERANCE = 1e-9  # values closer than this are a tie
PREFERRED = ("pass@1", "exact_match", "edit_similarity", "keywords", "nats")
FEWER_IS_BETTER = ("nats",)
DISCRETE = ("exact_match", "pass@1")


@dataclass(frozen=True)
class Value:
    """One item's value under one model."""

    item: str
    group: str  # items of a group are not independent
    value: float


@dataclass(frozen=True)
class Pair:
    """Two models on the same items."""

    of: str
    against: str
    metric: str
    wins: int  # of `of`
    losses: int
    ties: int
    p: float  # of the exact sign test, two-sided, adjusted for the number of comparisons of the metric
    mean: float  # difference, above 0 where `of` is better
    low: float
    high: float
    groups: int


def pairs(values: Mapping[str, Mapping[str, Sequence[Value]]]) -> list[Pair]:
    """Every model against the first, for each metric that both have.

    values: by model, in the order they were named, by metric.
    """
    first, *others = values
    made: list[Pair] = []
    for metric in PREFERRED:
        of_metric = [
            _pair(name, first, metric, values[name][metric], values[first][metric])
            for name in others
            if metric in values[name] and metric in values[first]
        ]
        found = [each for each in of_metric if each is not None]
        adjusted = holm([each.p for each in found])
        made += [Pair(**{**asdict(each), "p": p}) for each, p in zip(found, adjusted, strict=True)]
    return made


def _pair(
    of: str, against: str, metric: str, values: Sequence[Value], others: Sequence[Value]
) -> Pair | None:
    by_item = {each.item: each for each in others}
    both = [(each, by_item[each.item]) for each in values if each.item in by_item]
    if not both:
        return None
    sign = -1.0 if metric in FEWER_IS_BETTER else 1.0
    changes = [(each.group, sign * (each.value - other.value)) for each, other in both]
    wins = sum(change > TOLERANCE for _, change in changes)
    losses = sum(change < -TOLERANCE for _, change in changes)
    mean, low, high, groups = _interval(changes, metric)
    ties = len(changes) - wins - losses
    p = mcnemar_exact(wins, losses)
    return Pair(of, against, metric, wins, losses, ties, p, mean, low, high, groups)


def _interval(changes: Sequence[tuple[str, float]], metric: str) -> tuple[float, float, float, int]:
    """Mean, and where it lies; of a single group nothing is known."""
    by_group: dict[str, list[float]] = {}
    for group, change in changes:
        by_group.setdefault(group, []).append(change)
    sums = [(math.fsum(each), float(len(each))) for each in by_group.values()]
    if len(sums) < 2:
        return sums[0][0] / sums[0][1], -math.inf, math.inf, 1
    # Rates are discrete: as if half an item more had been won and half an item lost.
    least = 1 / (len(changes) + 2) ** 2 if metric in DISCRETE else 0.0
    found = bounds(sums, (1 - CONFIDENCE) / 2, seed=0, least_variance=least)
    most = math.inf if metric in FEWER_IS_BETTER else 1.0  # shares differ by no more
    return found.estimate, max(-most, found.low), min(most, found.high), len(sums)


def document(asked: Json, subjects: Sequence[Json], found: Json, items: Mapping[str, Json]) -> Json:
    """Everything that was found.

    subjects: who they are; found: as the process with the models answers; items: by name, `before` and
    `wanted`, where they are known beforehand.
    """
    by_name = {each["name"]: each for each in found["found"]}
    compared = pairs({name: values(each["scores"]) for name, each in by_name.items()})
    asked_items = _items(by_name, items)
    return {
        "asked": asked,
        "device": found["device"],
        "confidence": CONFIDENCE,
        "subjects": [
            {**who, **{key: by_name[who["name"]][key] for key in by_name[who["name"]] if key != "scores"}}
            for who in subjects
        ],
        "pairs": [
            {**asdict(each), "low": _finite(each.low), "high": _finite(each.high)} for each in compared
        ],
        "agreements": agreements([each["name"] for each in subjects], asked_items),
        "items": asked_items,
    }


def agreements(names: Sequence[str], items: Sequence[Json]) -> list[Json]:
    """How many answers of each model are the first one's, to the letter."""
    first, *others = names
    made = []
    for name in others:
        both = [each["answers"] for each in items if first in each["answers"] and name in each["answers"]]
        texts = [(each[name]["text"], each[first]["text"]) for each in both if each[name]["text"] is not None]
        same = sum(a == b for a, b in texts)
        made.append({"of": name, "against": first, "same": same, "answers": len(texts)})
    return made


def values(scores: Sequence[Json]) -> dict[str, list[Value]]:
    """By metric. Exact match and similarity count where a right answer is known."""
    found: dict[str, list[Value]] = {}
    for score in scores:
        if _is_known(score["detail"]):
            value = Value(_name(score), score["group"], _value(score))
            found.setdefault(score["metric"], []).append(value)
    return found


def _value(score: Json) -> float:
    """A loss a byte, so that long items do not count for more."""
    return float(score["value"] / (score["weight"] if score["metric"] in FEWER_IS_BETTER else 1.0))


def _is_known(detail: Json) -> bool:
    """Whether it is known what would have been right."""
    return bool(detail.get("answer", True) is not None)


def _items(by_name: Mapping[str, Json], known: Mapping[str, Json]) -> list[Json]:
    """Each item with everyone's answer, in the order of the first model's."""
    made: dict[str, Json] = {}
    for who, found in by_name.items():
        for score in found["scores"]:
            detail, name = score["detail"], _name(score)
            item = made.setdefault(
                name,
                {"name": score["name"], "kind": detail.get("kind"), "before": None,
                 "wanted": detail.get("answer"), **known.get(name, {}), "answers": {}},
            )  # fmt: skip
            answer = item["answers"].setdefault(who, {"text": _text(detail), "values": {}})
            if _is_known(detail):
                answer["values"][score["metric"]] = _value(score)
            if results := detail.get("results"):
                answer["results"] = results
    return list(made.values())


def _text(detail: Json) -> str | None:
    return detail.get("written", detail.get("completion"))


def _name(score: Json) -> str:
    kind = score["detail"].get("kind")
    return f"{score['name']} {kind}" if kind else str(score["name"])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
