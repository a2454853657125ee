"""Words for reasons, beside the services that give them."""

from services.core.reason_texts import POINTS
from services.processor.stages.score import RAMPS


def test_the_points_are_those_that_the_scorer_gives() -> None:
    """Every reason of the score, with its most."""
    assert {name: points.most for name, points in POINTS.items()} == {
        name: ramp.most for name, ramp in RAMPS.items()
    }
