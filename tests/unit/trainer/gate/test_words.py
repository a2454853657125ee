"""How sure a verdict is, as a person reads it."""

import pytest

from services.trainer.gate.words import _percent


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.5, "50%"),
        (0.943333, "94.3%"),
        (0.95, "95%"),
        (0.9783, "97.8%"),
        (0.999995, "99.9995%"),
        (1.0, "100%"),
    ],
)
def test_a_share_is_told_from_certainty(share: float, said: str) -> None:
    assert _percent(share) == said
