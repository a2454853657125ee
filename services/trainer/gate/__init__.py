"""The gate: promote only what is better here and no worse elsewhere, beyond doubt.

Pure: figures in, verdict out. No torch, no database, no clock. Why it is this way:
docs/decisions/0017-gate.md
"""

from services.trainer.gate.decision import MIN_ITEMS, decide, refuse, too_few
from services.trainer.gate.evidence import (
    Check,
    Evidence,
    GeneralEvidence,
    History,
    Metric,
    Paired,
    PlantedSecret,
    Rule,
    Verdict,
)

__all__ = [
    "MIN_ITEMS",
    "Check",
    "Evidence",
    "GeneralEvidence",
    "History",
    "Metric",
    "Paired",
    "PlantedSecret",
    "Rule",
    "Verdict",
    "decide",
    "refuse",
    "too_few",
]
