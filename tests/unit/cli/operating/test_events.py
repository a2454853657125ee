"""What `ratchet events` makes of its options."""

import datetime

import pytest

from services.cli.operating.events import chosen, moment
from services.core.errors import ConfigurationError

NOW = datetime.datetime(2026, 11, 21, 18, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("since", "meant"),
    [
        ("90s", "2026-11-21T17:58:30+00:00"),
        ("30m", "2026-11-21T17:30:00+00:00"),
        ("2 h", "2026-11-21T16:00:00+00:00"),
        ("3d", "2026-11-18T18:00:00+00:00"),
        ("1w", "2026-11-14T18:00:00+00:00"),
        ("2026-11-20", "2026-11-20T00:00:00+00:00"),
        ("2026-11-20T12:30", "2026-11-20T12:30:00+00:00"),
        ("2026-11-20T12:30+02:00", "2026-11-20T12:30:00+02:00"),
    ],
)
def test_a_time_is_so_long_ago_or_a_date(since: str, meant: str) -> None:
    assert moment(since, NOW) == datetime.datetime.fromisoformat(meant)


@pytest.mark.parametrize("since", ["yesterday", "3 months", "-2h", "", "9999999999d", "999999w"])
def test_what_is_no_time_is_an_error_with_examples(since: str) -> None:
    with pytest.raises(ConfigurationError, match=r"expected 30m, 2h, 3d, or a date"):
        moment(since, NOW)


def test_kinds_go_by_their_own_names_and_those_of_groups() -> None:
    assert chosen([]) is None
    assert chosen(["promotion", "round.started"]) == ["round.promoted", "adapter.promoted", "round.started"]


def test_an_unknown_kind_is_an_error_with_the_known() -> None:
    with pytest.raises(ConfigurationError, match=r"kind promoted: expected some of start, promotion"):
        chosen(["stall", "promoted"])
