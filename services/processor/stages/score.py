"""How much a kept file teaches: 0–100, the sum of points for stated reasons.

Pure, deterministic, linear in the file. Each reason looks at one figure and gives more points the
better that figure is, from nought at one end of a ramp to its maximum at the other (RAMPS), so
the score is monotone in each of them. Languages without functions (markup, data, build files) get
no points for structure, substance, naming and checks, and so stay well below a threshold of 70.

The weights follow what a 135M model learned from upper and lower thirds by each figure
(`bench/score_utility.py --by-figure`, docs/reference/score.md). A change of anything here raises
SCORER_VERSION, and stored texts are scored again at the next scan.
"""

from dataclasses import dataclass

from services.processor.stages.languages import ALL, CODE
from services.processor.values import Code, Score

SCORER_VERSION = 2


@dataclass(frozen=True, slots=True)
class Ramp:
    """Points on a straight line from `begin` (none) to `full` (`most`), level beyond both."""

    figure: str
    most: int
    begin: float
    full: float
    languages: frozenset[str] = ALL

    def points(self, value: float) -> int:
        return round(self.most * min(1.0, max(0.0, (value - self.begin) / (self.full - self.begin))))


RAMPS: dict[str, Ramp] = {
    "structure": Ramp("definitions", 22, 0.01, 0.12, CODE),  # functions and types a line of code
    "documentation": Ramp("documented", 7, 0.0, 0.35),  # comment and docstring lines among all lines
    "uniqueness": Ramp("unique", 18, 0.55, 1.0),  # distinct lines of code among all
    "naming": Ramp("names", 7, 0.60, 0.90, CODE),  # distinct identifiers that are not short
    "wording": Ramp("wording", 16, 0.68, 0.86),  # letters, not digits and signs, in what is visible
    "flatness": Ramp("deep", 12, 0.15, 0.0),  # lines nested deeper than four levels
    "substance": Ramp("body", 3, 3.0, 8.0, CODE),  # lines a definition: signatures alone teach nothing
    "line_length": Ramp("wide_lines", 6, 0.06, 0.0),  # lines beyond 100 characters
    "finished": Ramp("unfinished", 3, 0.03, 0.0),  # TODO marks and commented-out code a line
    "size": Ramp("written", 3, 5.0, 50.0),  # lines of code: enough to show a whole
    "checks": Ramp("checks", 3, 0.0, 0.05, CODE),  # assertions, raised errors a line of code: tests above all
}


RAMPS_OF = {
    language: [(reason, ramp.figure, ramp) for reason, ramp in RAMPS.items() if language in ramp.languages]
    for language in ALL
}


def score(code: Code) -> Score:
    figures = code.figures
    points = {
        reason: ramp.points(getattr(figures, figure)) for reason, figure, ramp in RAMPS_OF[code.language]
    }
    return Score(sum(points.values()), points, SCORER_VERSION)
