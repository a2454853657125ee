"""Rounds that fail, are refused again and again, or are in their next attempt."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from services.core.models import Json, RoundState
from services.metrics.alerting.alert import Alert, Severity
from services.metrics.document import is_figure
from services.metrics.links import round_page

FAILED_ROUNDS = 1  # in a row, from which on it is said; one that failed was crashed out of three times
REFUSED_ROUNDS = 3  # in a row: a refusal is the gate's work, several are a sign
ATTEMPTS = 2  # of the open round


def failing(rounds: Sequence[Json]) -> Iterator[Alert]:
    failed = _in_a_row(rounds, RoundState.FAILED)
    if len(failed) < FAILED_ROUNDS:
        return
    newest, track = failed[0], failed[0]["track"]
    reason = (newest["verdict"] or {}).get("reason") or "it left no message"
    yield Alert(
        "failing",
        Severity.BAD if len(failed) > 1 else Severity.WAIT,
        f"Round {newest['number']} of {track} failed"
        if len(failed) == 1
        else f"The last {len(failed)} rounds of {track} failed",
        reason if len(failed) == 1 else f"Round {newest['number']}: {reason}",
        "Do what the message says, then start the next round: `ratchet train --now`.",
        failed[-1]["closed_at"],
        track,
        _round_page(newest),
    )


def refusing(rounds: Sequence[Json]) -> Iterator[Alert]:
    refused = _in_a_row(rounds, RoundState.REFUSED)
    if len(refused) < REFUSED_ROUNDS:
        return
    newest, track = refused[0], refused[0]["track"]
    verdict = newest["verdict"] or {}
    what, more = (
        ("tasks", "name a larger task set") if verdict.get("metric") == "rate" else ("files", "add more code")
    )
    needed, had = verdict.get(f"{what}_needed"), verdict.get(f"held_out_{what}")
    cure = "Find out whether training is worth it here: `ratchet verdict`. A changed recipe may learn more."
    if is_figure(needed) and is_figure(had) and needed > had:
        cure = (
            f"The gate judges by {had:,.0f} held-out {what} and would need about {needed:,.0f} to show the"
            f" expected gain: {more}."
        )
    yield Alert(
        "refusing",
        Severity.WAIT,
        f"The last {len(refused)} rounds of {track} were refused",
        f"The champion stays. Round {newest['number']}: {verdict.get('reason') or 'no reason is known'}",
        cure,
        refused[-1]["closed_at"],
        track,
        _round_page(newest),
    )


def attempts(rounds: Sequence[Json]) -> Iterator[Alert]:
    opened = next((row for row in rounds if row["state"] == RoundState.OPEN), None)
    if opened is None or opened["attempts"] < ATTEMPTS:
        return
    yield Alert(
        "failing",
        Severity.WAIT,
        f"Round {opened['number']} of {opened['track']} is in attempt {opened['attempts']}",
        "Its training crashed and was taken up again where it had been saved last.",
        "Nothing yet. If it crashes again, the round's log says why.",
        opened["opened_at"],
        opened["track"],
        _round_page(opened),
    )


def _round_page(row: Json) -> str:
    return round_page(row["track"], row["number"])


def _in_a_row(rounds: Sequence[Json], state: RoundState) -> list[Json]:
    """The newest closed rounds up to the first of another state, the newest first."""
    closed = sorted((row for row in rounds if row["closed_at"]), key=lambda row: -row["number"])
    return list(takewhile(lambda row: row["state"] == state, closed))
