"""Parity and planted secrets in words, and where they are told."""

from services.cli.operating import status
from services.cli.printing import measured

PARITY = {"measured_at": "2026-11-20T10:00:00+00:00", "legs": [
    {"way": "merged", "same": 4, "prompts": 5}, {"way": "Q4_K_M.gguf", "same": 5, "prompts": 5},
]}  # fmt: skip
PLANTED = {"planted": 8, "learned": 7, "extracted": 1, "extracted_before": 0, "exposure_median": 2.25}


def test_each_way_is_told_with_how_many_answers_were_the_same() -> None:
    assert measured.parity(PARITY) == "parity merged 4/5, Q4_K_M.gguf 5/5"


def test_what_was_learned_of_what_was_planted_is_told() -> None:
    assert measured.planted(PLANTED) == "7 of 8 planted secrets learned, 1 written out"


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert measured.parity(None) is measured.parity({"legs": []}) is measured.planted(None) is None


def test_status_tells_both_of_what_is_served() -> None:
    """Parity of the champion; secrets of the last round that was judged."""
    row = {"track": "demo", "round": 3, "parity": PARITY, "verdict": {"planted": PLANTED}}
    assert status.measurements(
        {"tracks": [row, {"track": "new", "round": None, "parity": None, "verdict": None}]}
    ) == [
        ("measured", "demo: the champion's parity merged 4/5, Q4_K_M.gguf 5/5"),
        ("measured", "demo: in the last round 7 of 8 planted secrets learned, 1 written out"),
    ]
    assert status.measurements(None) == []
