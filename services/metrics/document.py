"""The JSON of /metrics and of `ratchet status --json`: strict, whatever the numbers are."""

import json
import math
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeGuard

from services.metrics.cached import Reading
from services.metrics.health import Health

EMPTY: dict[str, Any] = {
    "state": {
        "last_trained_id": None,
        "total_training_runs": None,
        "total_samples_trained": None,
        "last_training_time": None,
    },
    "training_metrics": {"eval_loss": None, "train_loss": None},
    "config": {"model": None, "batch_size": None, "lora_r": None},
    "ingest": None,
    "tracks": [],
    "rounds": [],
    "running_round": None,
    "happenings": [],
    "suites": [],
    "stalls": [],
    "curve": None,
    "services": [],
    "operations": None,
}


def as_text(reading: Reading[dict[str, Any]], health: Health) -> str:
    """`document` as strict JSON; the snapshot's part is made once for all until there is a newer one."""
    snapshot = reading.once("json", lambda: strict_json(reading.value or EMPTY).removesuffix("\n}"))
    return f"{snapshot},{strict_json(_around(reading, health)).removeprefix('{')}\n"


def document(reading: Reading[dict[str, Any]], health: Health) -> dict[str, Any]:
    """The whole state; `stale` and `age_seconds` say how old it is, nulls what was never read."""
    return {**(reading.value or EMPTY), **_around(reading, health)}


def _around(reading: Reading[dict[str, Any]], health: Health) -> dict[str, Any]:
    return {
        "health": health.as_json(),
        "stale": reading.is_stale,
        "age_seconds": reading.age_seconds,
        "error": reading.error,
    }


def strict_json(value: Any, indent: int | None = 2) -> str:
    """JSON that every parser takes: NaN and infinities become null, times ISO 8601."""
    return json.dumps(_plain(value), allow_nan=False, indent=indent)


def is_figure(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number that a double can hold: what charts, samples and JSON can show."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # an integer beyond 1e308
        return False


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() | int():
            return value if is_figure(value) else None
        case Decimal():  # of a NaN too there is a float, but for a signalling one
            return None if value.is_snan() else _plain(float(value))
        case datetime():
            return value.isoformat()
        case _:
            return value
