"""What is kept of a measurement."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.parity import record
from services.trainer.parity.record import Leg, Parity

LEGS = st.builds(
    lambda prompts, same: Leg("full", prompts, min(same, prompts), None, 0.1, -0.001),
    st.integers(1, 50),
    st.integers(0, 50),
)


@given(st.lists(LEGS, max_size=4))
def test_a_measurement_comes_back_as_it_was_kept(legs: list[Leg]) -> None:
    """As JSON."""
    parity = Parity("2026-11-21T10:00:00+00:00", "round-0001", "nf4", "bfloat16", "bfloat16", 48, tuple(legs))
    assert record.from_json(parity.as_json()) == parity
    assert parity.exact == all(leg.exact_match == 1 for leg in legs)


def test_what_is_kept_beside_an_adapter_is_read(tmp_path: Path) -> None:
    """And survives the tidying of the track's folder, whose names begin otherwise."""
    parity = Parity("2026-11-21T10:00:00+00:00", "round-0001", "nf4", "bfloat16", "bfloat16", 48, ())
    kept = record.write(tmp_path, "round-0001", parity)
    assert record.read(tmp_path, "round-0001") == parity
    assert not kept.parent.name.startswith(("round-", "."))


def test_nothing_measured_is_said_so(tmp_path: Path) -> None:
    """Nothing is called servable that nobody measured."""
    assert record.said(record.read(tmp_path, "round-0001")) == "parity not measured"


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    """The adapter counts as not measured."""
    record.path(tmp_path, "round-0001").parent.mkdir()
    record.path(tmp_path, "round-0001").write_text('{"legs": 3}', encoding="utf-8")
    assert record.read(tmp_path, "round-0001") is None
    with pytest.raises(ConfigurationError, match="not a measurement"):
        record.from_json({"legs": 3})
