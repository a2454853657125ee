"""Suites in which what is served got worse."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from services.core.models import Json, RoundState
from services.metrics.alerting.alert import Alert, Severity
from services.metrics.document import is_figure
from services.metrics.links import round_page

FORGOTTEN = 0.02  # points of a rate, as the gate's general_margin, or relative rise of a loss
FALLS = 3  # promoted rounds in a row, each worse in a suite than the one before
RATES = ("pass@1", "exact_match", "edit_similarity", "keywords")  # the more the better
LOSSES = ("bits_per_byte", "nats")  # the less the better


def forgetting(snapshot: Json) -> Iterator[Alert]:
    """Suites in which what is served is worse than the base, or that fell from promotion to promotion."""
    rounds = {(row["track"], row["number"]): row for row in snapshot["rounds"]}
    served = {track["name"]: (track["champion"] or {}).get("round", 0) for track in snapshot["tracks"]}
    for (track, suite), reports in _reports(snapshot["suites"], served).items():
        newest = reports[-1]
        metric = next((name for name in (*RATES, *LOSSES) if is_figure(newest["candidate"].get(name))), None)
        if metric is None:
            continue
        values = [report["candidate"].get(metric) for report in reports]
        base, value = newest["base"].get(metric), values[-1]
        row = rounds[track, newest["round"]]
        if is_figure(base) and _worse(metric, base, value) > FORGOTTEN:
            text = f"{metric} is {_told(metric, value)}; the base model has {_told(metric, base)}."
            yield _forgets(track, suite, text, row)
        elif (fallen := _falls(metric, values)) >= FALLS and _worse(
            metric, values[-1 - fallen], value
        ) > FORGOTTEN:
            first = rounds[track, reports[-fallen]["round"]]
            said = f"{_told(metric, values[-1 - fallen])} to {_told(metric, value)}"
            yield _forgets(
                track, suite, f"{metric} fell in {fallen} promotions in a row, from {said}.", first
            )


def _reports(
    suites: Sequence[Json], served: Mapping[str, int]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """By track and suite: round, and figures of base and candidate, of promoted rounds up to the one served.

    The oldest first. Two versions of a suite do not compare: only those of the newest count.
    """
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    versions = {(row["track"], row["suite"]): row["version"] for row in suites}
    for row in suites:
        key = (row["track"], row["suite"])
        is_served = row["state"] == RoundState.PROMOTED and row["round"] <= served.get(row["track"], 0)
        if is_served and row["version"] == versions[key]:
            report = found[key].setdefault(row["round"], {"round": row["round"], "base": {}, "candidate": {}})
            report[row["subject"]] = row["figures"]
    return {key: list(by_round.values()) for key, by_round in found.items()}


def _worse(metric: str, before: Any, after: Any) -> float:
    """By how much: points of a rate, or relative rise of a loss; NaN, which is above nothing, if unknown."""
    if not (is_figure(before) and is_figure(after)):
        return math.nan
    return before - after if metric in RATES else (after - before) / (before or math.nan)


def _falls(metric: str, values: Sequence[Any]) -> int:
    """How many of the last steps from round to round were each for the worse."""
    pairs = zip(reversed(values[:-1]), reversed(values[1:]), strict=True)
    return len(list(takewhile(lambda pair: _worse(metric, *pair) > 0, pairs)))


def _told(metric: str, value: float) -> str:
    return f"{100 * value:.1f} %" if metric in RATES else f"{value:.4f}"


def _forgets(track: str, suite: str, text: str, since: Json) -> Alert:
    cure = (
        "Compare the adapters and go back to one that still can: `ratchet rollback`. With"
        f" `general_suite: {suite}` the gate refuses such a round; a larger `replay_share` forgets less."
    )
    title = f"{track} forgets: {suite}"
    return Alert(
        "forgetting",
        Severity.WAIT,
        title,
        text,
        cure,
        since["closed_at"],
        track,
        round_page(since["track"], since["number"]),
    )
