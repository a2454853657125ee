"""What the gate would do over many tracks: how often it is wrong, how often it sees an improvement.

Held-out items, how they fare and the candidates are drawn (`worlds`); the verdicts are `decide`'s own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from services.trainer.gate.decision import decide
from services.trainer.gate.evidence import Evidence, GeneralEvidence, History, Rule
from services.trainer.gate.worlds import Files, World

SEEDS = 8  # of the bootstrap, by turns: the draws of each are made once
ELSEWHERE = Files(items=164, spread=0.03)  # the general suite: as many problems as HumanEval has


@dataclass(frozen=True)
class Characteristics:
    """Shares of tracks and of rounds."""

    false_promotion: float  # of tracks without any effect, those promoted at least once
    false_promotion_by_round: list[float]  # the same after 1, 2, … rounds
    power: float  # of first rounds that bring the expected improvement, those promoted
    power_later: float  # of rounds 2 and on of tracks that go on improving so; NaN for one round
    harm: float  # of first rounds as good here that fall by twice the margin elsewhere; 0 without a suite


def simulate(
    rule: Rule,
    world: World,
    *,
    tracks: int,
    rounds: int,
    effect: float | None = None,
    elsewhere: Files = ELSEWHERE,
    on_track: Callable[[int, int], None] = lambda _done, _of: None,
) -> Characteristics:
    """Play so many tracks of so many rounds; `effect` instead of the recipe's expected improvement.

    Deterministic. A track without effect ends with its first promotion; those that improve, a tenth as
    many, are played to their end.
    """
    effect = rule.expected_improvement if effect is None else effect
    chance = np.random.default_rng(rule.seed)
    first_wrong = np.zeros(rounds + 1)  # by round, from 1
    power = harm = 0
    later: list[bool] = []
    for number in range(tracks):
        track = Track(rule, world, elsewhere, chance, number)
        wrong = track.first_promotion(rounds)
        first_wrong[wrong] += wrong > 0
        power += track.verdict(History(), effect)
        if rule.general_suite is not None:
            harm += track.verdict(History(), effect, general_effect=-2 * rule.general_margin)
        if number % 10 == 0:
            later += track.improving(rounds, effect)[1:]
        on_track(number + 1, tracks)
    by_round = (np.cumsum(first_wrong)[1:] / tracks).tolist()
    return Characteristics(
        false_promotion=by_round[-1],
        false_promotion_by_round=by_round,
        power=power / tracks,
        power_later=sum(later) / len(later) if later else float("nan"),
        harm=harm / tracks,
    )


class Track:
    """One recipe's line of descent on one held-out set."""

    def __init__(
        self, rule: Rule, world: World, elsewhere: Files, chance: np.random.Generator, number: int
    ) -> None:
        self._rule = replace(rule, seed=number % SEEDS)
        self._metric, self._step = world.metric, world.step
        self._chance = chance
        self._here = world.held_out(chance)
        self._elsewhere = elsewhere.held_out(chance)

    def first_promotion(self, rounds: int) -> int:
        """The first round that is promoted although none has an effect; 0 when none is.

        Judged here alone: another condition could only refuse more.
        """
        here = replace(self._rule, general_suite=None)
        for number in range(1, rounds + 1):
            if decide(self._evidence(History((False,) * (number - 1)), 0.0, None), here).promoted:
                return number
        return 0

    def improving(self, rounds: int, effect: float) -> list[bool]:
        """Which rounds are promoted when each candidate has the effect."""
        promoted: list[bool] = []
        for _ in range(rounds):
            promoted.append(self.verdict(History(tuple(promoted)), effect))
        return promoted

    def verdict(self, history: History, effect: float, general_effect: float = 0.0) -> bool:
        """Whether a candidate is promoted of whom this is the true effect."""
        elsewhere = None if self._rule.general_suite is None else general_effect
        return decide(self._evidence(history, effect, elsewhere), self._rule).promoted

    def _evidence(self, history: History, effect: float, elsewhere: float | None) -> Evidence:
        general = None
        if elsewhere is not None:
            items = self._elsewhere.paired(elsewhere, self._chance)
            general = GeneralEvidence(self._rule.general_suite or "", "nats", items)
        here = self._here.paired(effect, self._chance)
        return Evidence(here, "champion", general, history, metric=self._metric, step=self._step)
