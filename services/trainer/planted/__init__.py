"""Fake secrets in a round's training data, and whether the candidate gives them up.

They stand where a real one would that redaction has missed: once, in code. Why it is this way:
docs/decisions/0023-planted-secrets.md
"""

from services.trainer.planted.evidence import evidence
from services.trainer.planted.planting import Planted, plant
from services.trainer.planted.samples import learned, learner, trained_on, true_lines

__all__ = ["Planted", "evidence", "learned", "learner", "plant", "trained_on", "true_lines"]
