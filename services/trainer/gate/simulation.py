"""What the gate would do over many tracks: how often it is wrong, how often it sees an improvement.

Held-out files, their losses and the candidates' are drawn; the verdicts are `decide`'s own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from services.trainer.gate.decision import decide
from services.trainer.gate.evidence import Evidence, GeneralEvidence, History, Paired, Rule

FREEDOM = 5  # of Student's t, from which files' differences are drawn: some files differ far more than others
SEEDS = 8  # of the bootstrap, by turns: the draws of each are made once
FILE_NATS = 500.0  # of a held-out file, in the middle; only ratios matter


@dataclass(frozen=True)
class World:
    """What is assumed of the code and of candidates. Shares are relative: 0.03 is 3 %.

    A round of the demo recipe on 150 modules of Python's standard library: 21 held-out files, 4.66 % fewer
    bits per byte, improvements of files around it by 2.3 % (weighted by their loss), logarithms of losses
    by 0.36. The defaults are a little wider.
    """

    files: int = 64
    spread: float = 0.025  # standard deviation of files' improvements around the candidate's own
    sizes: float = 0.5  # standard deviation of the logarithm of files' losses
    general_items: int = 164  # as HumanEval has
    general_spread: float = 0.03
    general_effect: float = 0.0


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
        track = Track(rule, world, chance, number)
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

    def __init__(self, rule: Rule, world: World, chance: np.random.Generator, number: int) -> None:
        self._rule = replace(rule, seed=number % SEEDS)
        self._world = world
        self._chance = chance
        self._code = FILE_NATS * np.exp(chance.normal(0, world.sizes, world.files))
        self._general = FILE_NATS * np.exp(chance.normal(0, world.sizes, world.general_items))

    def first_promotion(self, rounds: int) -> int:
        """The first round that is promoted although none has an effect; 0 when none is.

        Judged by this code alone: another condition could only refuse more.
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

    def verdict(self, history: History, effect: float, general_effect: float | None = None) -> bool:
        """Whether a candidate is promoted whose true relative improvement this is."""
        elsewhere = None
        if self._rule.general_suite is not None:
            elsewhere = self._world.general_effect if general_effect is None else general_effect
        return decide(self._evidence(history, effect, elsewhere), self._rule).promoted

    def _evidence(self, history: History, effect: float, elsewhere: float | None) -> Evidence:
        general = None
        if elsewhere is not None:
            items = self._paired(self._general, elsewhere, self._world.general_spread)
            general = GeneralEvidence(self._rule.general_suite or "", "nats", items)
        code = self._paired(self._code, effect, self._world.spread)
        return Evidence(code, "champion", general, history)

    def _paired(self, before: npt.NDArray[np.float64], effect: float, spread: float) -> list[Paired]:
        scatter = spread / (FREEDOM / (FREEDOM - 2)) ** 0.5  # so that Student's t has variance 1
        fall = effect + scatter * self._chance.standard_t(FREEDOM, len(before))
        after = np.maximum(before * (1 - fall), 0.0)
        numbers = enumerate(zip(before.tolist(), after.tolist(), strict=True))
        return [Paired(str(number), old, new) for number, (old, new) in numbers]
