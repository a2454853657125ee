"""The JSON is strict, whatever is in it."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.metrics.cached import Reading
from services.metrics.document import document, strict_json
from services.metrics.health import VitalSigns, judge

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.datetimes(), st.decimals()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@given(VALUES)
def test_every_value_becomes_json_a_strict_parser_takes(value: Any) -> None:
    """NaN, Infinity, datetimes and decimals never break a reader."""
    json.loads(strict_json(value), parse_constant=refuse)


def test_what_is_not_a_number_becomes_null() -> None:
    """NaN and both infinities are null, in floats and decimals, at any depth."""
    value = {"a": [math.nan, math.inf, -math.inf, Decimal("NaN"), 1.5, Decimal(2)]}
    assert json.loads(strict_json(value)) == {"a": [None, None, None, None, 1.5, 2]}


def test_times_are_iso_8601() -> None:
    """A datetime says its zone."""
    assert strict_json(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == '"2026-01-02T03:04:05+00:00"'


def test_the_shape_holds_before_anything_was_read() -> None:
    """Scripts find `state`, `training_metrics` and `config` also while the database is away."""
    health = judge(VitalSigns(migrated=False), error="away", uptime_seconds=1)
    found = document(Reading(None, None, "away"), health)
    assert found["stale"]
    assert found["state"]["last_trained_id"] is None
    assert found["config"]["model"] is None


def test_old_figures_say_how_old_they_are() -> None:
    """After a failed reading the last value is kept, marked stale, with its age and the reason."""
    health = judge(VitalSigns(migrated=False), error="away", uptime_seconds=1)
    found = document(Reading({"state": 1}, 12.5, "away"), health)
    assert (found["stale"], found["age_seconds"], found["error"]) == (True, 12.5, "away")
