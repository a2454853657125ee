"""The gate's operating characteristics, small: `ratchet gate simulate` is the whole."""

from services.trainer.gate import Rule
from services.trainer.gate.simulation import simulate
from services.trainer.gate.worlds import Files

RULE = Rule(general_suite="humaneval-loss", seed=42)


def test_the_gate_is_seldom_wrong_and_sees_what_it_should() -> None:
    """200 tracks of 5 rounds with 24 files: false promotions within 5 %, 80 % power, no harm elsewhere."""
    found = simulate(RULE, Files(items=24), tracks=200, rounds=5)
    assert found.false_promotion <= 0.05
    assert found.power >= 0.8
    assert found.power_later >= 0.8
    assert found.harm == 0


def test_what_cannot_be_seen_is_not_promised() -> None:
    """Eight files do not show one per cent."""
    assert simulate(RULE, Files(items=8), tracks=20, rounds=1, effect=0.01).power < 0.5


def test_a_simulation_can_be_repeated() -> None:
    first, second = (simulate(RULE, Files(items=10), tracks=10, rounds=2) for _ in range(2))
    assert first == second
