"""The plan against what was measured: on this engine, and on the baseline it was first calibrated with."""

import json
from pathlib import Path

import pytest

from services.trainer.plan import Hardware, Job, Plan, Shape, priced
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN

ROWS = json.loads(Path(__file__).with_name("measured_peaks.json").read_text(encoding="utf-8"))
OURS = [row for row in ROWS if row["engine"] == "ratchet"]
GIB = 2**30


def planned(row) -> Plan:
    recipe = Recipe(
        name="measured",
        base_model=row["model"],
        batch_size=row["micro_batch"],
        gradient_accumulation_steps=row.get("micro_batches", 16 // row["micro_batch"]),
        **row["recipe"],
    )
    hardware = Hardware.gpu(row["device"], devices=row.get("devices", 1))
    job = Job(Shape.from_config(KNOWN[row["model"]]), recipe, hardware, recipe.max_length)
    share = row.get("kept_share", 1.0)
    return priced(
        job, row["micro_batch"], row["recomputed_layers"], keep_merged=row["keep_merged"], kept_share=share
    )


def name(row) -> str:
    kept = "-kept" if row["keep_merged"] else ""
    kept += "-light" if row.get("kept_share", 1.0) < 1 else ""
    return f"{row['model'].rpartition('/')[2]}-{row['micro_batch']}-{row['recomputed_layers']}{kept}"


@pytest.mark.parametrize("row", OURS, ids=name)
def test_the_predicted_peak_is_at_most_3_percent_below_the_measured_and_10_above(row):
    """`peak_gib` is torch.cuda.max_memory_allocated."""
    predicted, measured = planned(row).peak_bytes / GIB, row["peak_gib"]
    assert 0.97 * measured <= predicted <= 1.10 * measured


@pytest.mark.parametrize("row", [row for row in OURS if row.get("tokens_per_s")], ids=name)
def test_the_predicted_speed_is_within_10_percent_of_the_measured(row):
    assert planned(row).tokens_per_s == pytest.approx(row["tokens_per_s"], rel=0.10)


@pytest.mark.parametrize("row", [row for row in ROWS if row["engine"] == "probe"], ids=name)
def test_the_formulas_hold_for_the_baseline_too(row):
    """It has adapters and gradients in bf16 and no copies: 6 bytes less an adapter parameter."""
    plan = planned(row)
    predicted = (plan.peak_bytes - 6 * plan.job.trainable) / GIB
    assert predicted == pytest.approx(row["peak_gib"], rel=0.03)


def test_the_chunk_of_logits_is_the_engines():
    from services.trainer.engine.loss import LOGITS_BYTES
    from services.trainer.plan import CALIBRATION

    assert CALIBRATION.logits_bytes == LOGITS_BYTES
