"""Rates of a training, as they are shown while it runs."""

from services.trainer.engine.meter import Meter, Speed


def test_the_first_step_counts_only_until_there_is_a_second() -> None:
    """Layers are compiled in it: 100 s there say nothing of the steps to come."""
    meter = Meter(Speed())
    meter.step(1000, 100.0, 0.0)
    assert meter.tokens_per_s == 10
    meter.step(1000, 1.0, 0.0)
    meter.step(1000, 1.0, 0.0)
    assert meter.tokens_per_s == 1000
