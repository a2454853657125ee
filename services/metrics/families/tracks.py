"""Each track: what waits, what was trained, who is served."""

from collections.abc import Callable
from datetime import datetime

from services.core.models import Json, RoundState, Service
from services.metrics.families.family import Family, Samples, Section, View, each, heard

MOVES = ("promoted", "rolled_back", "rejected", "pinned", "unpinned")  # kinds of rows in promotions


def _tracks(snapshot: Json) -> list[Json]:
    found: list[Json] = snapshot["tracks"]
    return found


def _operations(view: View) -> Json:
    found: Json = (view.snapshot or {})["operations"]
    return found


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _needed(view: View) -> Samples:
    return (((track,), detail.get("needed")) for track, detail in heard(view.snapshot or {}, Service.TRAINER))


def _oldest(view: View) -> Samples:
    return (((row["track"],), _seconds(row["oldest"])) for row in _operations(view)["backlog"])


def _rounds(view: View) -> Samples:
    return (
        ((track["name"], state), track["rounds"][state])
        for track in _tracks(view.snapshot or {})
        for state in RoundState
        if state is not RoundState.OPEN
    )


def _champions(view: View) -> Samples:
    return (
        ((track["name"],), track["champion"]["round"])
        for track in _tracks(view.snapshot or {})
        if track["champion"]
    )


def _leases(view: View) -> Samples:
    return (((track["name"],), track["lease"]["held"]) for track in _tracks(view.snapshot or {}))


def _last_training(view: View) -> Samples:
    tracks = _tracks(view.snapshot or {})
    return (((track["name"],), _seconds(track["last_training_time"])) for track in tracks)


def _moves(view: View) -> Samples:
    """Every kind of every track, 0 too: a first rollback is an increase."""
    counted = {(row["track"], row["kind"]): row["moves"] for row in _operations(view)["moves"]}
    return (
        ((track["name"], kind), counted.get((track["name"], kind), 0))
        for track in _tracks(view.snapshot or {})
        for kind in MOVES
    )


def _last_promotion(view: View) -> Samples:
    moves = _operations(view)["moves"]
    return (((row["track"],), _seconds(row["last_at"])) for row in moves if row["kind"] == "promoted")


def _parity(figure: Callable[[Json], object]) -> Callable[[View], Samples]:
    """A figure of each way in which the champion was measured to answer."""
    return lambda view: (
        ((row["track"], str(leg.get("way"))), figure(leg))
        for row in _operations(view)["tracks"]
        if row["parity"]
        for leg in row["parity"].get("legs", ())
    )


def _same(leg: Json) -> float | None:
    return leg["same"] / leg["prompts"] if leg.get("prompts") else None


SECTION = Section(
    "Tracks",
    (
        Family(
            "new_contents",
            "gauge",
            "Contents above the threshold in no round yet",
            each(_tracks, ["name"], "new_contents"),
            ("track",),
        ),
        Family(
            "needed_contents",
            "gauge",
            "New contents that start a round (MIN_NEW_FILES), as the track's trainer has it",
            _needed,
            ("track",),
        ),
        Family(
            "backlog_oldest_timestamp_seconds",
            "gauge",
            "Since when the oldest new content waits for a round, among the 10,000 best at most",
            _oldest,
            ("track",),
        ),
        Family(
            "trained_contents",
            "gauge",
            "Contents the champion learned from",
            each(_tracks, ["name"], "trained_contents"),
            ("track",),
        ),
        Family(
            "samples_trained",
            "counter",
            "Samples of all finished rounds",
            each(_tracks, ["name"], "samples_trained"),
            ("track",),
        ),
        Family(
            "tokens_trained",
            "counter",
            "Tokens of all finished rounds",
            each(_tracks, ["name"], "tokens_trained"),
            ("track",),
        ),
        Family(
            "training_seconds",
            "counter",
            "Time spent in finished rounds",
            each(_tracks, ["name"], "seconds_trained"),
            ("track",),
        ),
        Family("rounds", "counter", "Closed rounds by outcome", _rounds, ("track", "state")),
        Family("moves", "counter", "Moves of a champion by kind", _moves, ("track", "kind")),
        Family(
            "last_promotion_timestamp_seconds",
            "gauge",
            "When an adapter was last promoted",
            _last_promotion,
            ("track",),
        ),
        Family(
            "last_training_timestamp_seconds",
            "gauge",
            "When the last round closed",
            _last_training,
            ("track",),
        ),
        Family(
            "champion_round",
            "gauge",
            "Number of the round whose adapter is served",
            _champions,
            ("track",),
        ),
        Family("lease_held", "gauge", "1 while a trainer holds the track", _leases, ("track",)),
        Family(
            "paused",
            "gauge",
            "1 while no new round of a track begins because somebody paused it",
            lambda view: (((row["track"],), row["paused"]) for row in _operations(view)["tracks"]),
            ("track",),
        ),
        Family(
            "parity_same_ratio",
            "gauge",
            "Share of greedy answers of the champion that are the same when it is run this way",
            _parity(_same),
            ("track", "way"),
        ),
        Family(
            "parity_bpb_difference",
            "gauge",
            "Held-out bits per byte of the champion run this way, less those it was judged by",
            _parity(lambda leg: leg.get("bits_per_byte_difference")),
            ("track", "way"),
        ),
    ),
)
