"""A thousand readers of a champion that moves a hundred times; and that they would notice."""

import json
from pathlib import Path

import pytest

from bench import publish as bench
from bench import publish_readers
from services.core.db import Database
from services.core.target import Target
from services.trainer import publish
from tests import tiny_adapter

PAUSE = 1.0  # seconds between two reads of a reader: two cores have the moves to make, too
WAYS = ("resolved", "descriptor", "naive")


def test_no_reader_ever_sees_a_mixed_missing_or_half_written_adapter(
    target: Target, database: Database, tmp_path: Path
) -> None:
    """100 promotions and rollbacks, 10 new adapters, 1,000 readers."""
    figures = bench.hammer(bench.Track(target, database, tmp_path, "read"), PAUSE)
    assert (figures["readers"], figures["moves"]) == (1000, 100)
    assert figures["mixed_reads"] == 0
    assert figures["reads"] >= 1000


@pytest.fixture
def track(tmp_path: Path) -> Path:
    for number in (1, 2):
        publish.publish(tmp_path, f"round-000{number}", lambda folder: tiny_adapter.make(folder, number), {})  # noqa: B023
    publish.point_current(tmp_path, "round-0001")
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_a_reader_notices_what_it_counts(way: str, track: Path) -> None:
    """Whole; another adapter's weights; half of them; none."""
    weights = track / "round-0001" / "adapter_model.safetensors"
    seen = [publish_readers.look(track, way)]
    weights.write_bytes((track / "round-0002" / weights.name).read_bytes())
    seen.append(publish_readers.look(track, way))
    weights.write_bytes(weights.read_bytes()[:100])
    seen.append(publish_readers.look(track, way))
    weights.unlink()
    seen.append(publish_readers.look(track, way))
    assert seen == ["whole", "mixed", "partial", "missing"]


def test_a_reader_that_asks_again_may_mix_and_one_that_asks_once_may_not(track: Path, monkeypatch) -> None:
    """The champion moves between the manifest and the weights."""

    def loads(text: bytes) -> object:
        publish.point_current(track, "round-0002")
        return real(text)

    real = json.loads
    seen = []
    for way in WAYS:
        publish.point_current(track, "round-0001")
        with monkeypatch.context() as patched:
            patched.setattr(publish_readers.json, "loads", loads)
            seen.append(publish_readers.look(track, way))
    assert seen == ["whole", "whole", "mixed"]
