"""`ratchet merge`, as far as nothing is merged: where it may write, and how it tells what it came to."""

import io
import json

import pytest
from rich.console import Console

from services.cli.using import merge
from services.core.errors import ConfigurationError

TRAINED, FULL, MERGED = "adapter on the base as trained", "adapter on the full base", "merged"


def found(*, quantised=True):
    arms = [{"name": FULL, "bits_per_byte": 0.99}, {"name": MERGED, "bits_per_byte": 0.9901}]
    agreements = [{"of": MERGED, "against": FULL, "same": 16, "answers": 16, "tokens": 1.0}]
    if quantised:
        arms.insert(0, {"name": TRAINED, "bits_per_byte": 1.0})
        agreements += [
            {"of": name, "against": TRAINED, "same": 12, "answers": 16, "tokens": 0.8}
            for name in (FULL, MERGED)
        ]
    return {"arms": arms, "agreements": agreements, "measured_by": "8 held-out files", "output": "/m",
            "bytes": 2**21, "seconds": 1.5, "peak_bytes": 2**30, "untied": False}  # fmt: skip


def printed(renderable):
    out = io.StringIO()
    Console(file=out, width=160).print(renderable)
    return out.getvalue()


def test_the_table_says_what_quantising_and_merging_cost():
    rows = printed(merge.table(found())).splitlines()
    assert "-1.00 %" in rows[2]
    assert "12/16" in rows[2]
    assert "-0.99 %" in rows[3]
    assert "Merged against the adapter on the full base: 16/16 answers the same" in merge.words(found())


def test_a_base_that_was_not_quantised_cost_nothing():
    assert "quantising cost nothing" in merge.words(found(quantised=False))
    assert len(printed(merge.table(found(quantised=False))).splitlines()) == 3


def test_what_is_there_is_never_lost(tmp_path):
    """An empty folder may be used; a merged model is replaced when asked; nothing else ever is."""
    merge.check_output(tmp_path / "new", force=False)
    empty = tmp_path / "empty"
    empty.mkdir()
    merge.check_output(empty, force=False)
    (empty / "mine.txt").write_text("precious")
    for force in (False, True):
        with pytest.raises(ConfigurationError, match=r"--force" if not force else "replaces nothing else"):
            merge.check_output(empty, force=force)
    (empty / "manifest.json").write_text(json.dumps({"kind": "model", "merged": {}}))
    merge.check_output(empty, force=True)
