"""How far a rollout is, and how that is said: who writes, what is tested, what it has earned so far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Standing:
    """A rollout on its way, after a turn of writing or while the sandbox is waited for."""

    episodes: int
    turns: int  # of the team, at most
    turn: int = 0
    role: str | None = None  # who writes; None: nobody does, the last programs are tested
    written: int = 0  # answers of that role in this turn
    of: int = 0  # that it writes
    tested: int = 0  # episodes whose last program has been
    solved: int = 0  # of the tested ones
    earned: float = 0.0  # by the tested ones, in all
    tokens: int = 0  # written by all roles
    seconds: float = 0.0  # of writing

    def begins(self, role: str | None, turn: int, answers: int) -> "Standing":
        return replace(self, role=role, turn=turn, written=0, of=answers)

    def wrote(self, answers: int, tokens: int) -> "Standing":
        """A completion, which may be the answer in several episodes."""
        return replace(self, written=self.written + answers, tokens=self.tokens + tokens)

    def after(self, seconds: float, rewards: Sequence[float], solved: int) -> "Standing":
        """After so many seconds of writing, with the rewards of the tested episodes."""
        return replace(self, seconds=seconds, tested=len(rewards), earned=sum(rewards), solved=solved)

    @property
    def tokens_per_s(self) -> float | None:
        """Of writing alone; None until something is written."""
        return self.tokens / self.seconds if self.tokens and self.seconds > 0 else None

    @property
    def words(self) -> str:
        """`coder writes, 20 of 32 answers`, or `testing programs, 29 of 32 done`."""
        turn = f"turn {self.turn + 1} of {self.turns}: " if self.turns > 1 else ""
        if self.role is None:
            return f"{turn}testing programs, {self.tested} of {self.episodes} done"
        return f"{turn}{self.role} writes, {self.written} of {self.of} answers"


def practising(standing: Standing) -> str:
    """Of a rollout that will be learned from."""
    if not standing.tested:
        return standing.words
    tested = "" if standing.role is None else f"{standing.tested} tested, "
    return f"{standing.words}, {tested}reward {standing.earned / standing.tested:.2f} so far"


def measuring(what: str, standing: Standing) -> str:
    """Of an evaluation; what: who is measured on which tasks."""
    said = f"{what}: {standing.words}"
    if not standing.tested:
        return said
    if standing.role is None:
        return f"{said}, {standing.solved} pass"
    return f"{said}, {standing.solved} of {standing.tested} tested pass"


def validating(step: int, total_steps: int, standing: Standing) -> str:
    """Of an evaluation within the training, after so many iterations."""
    when = "before iteration 1" if step == 0 else f"after iteration {step} of {total_steps}"
    return measuring(f"validation tasks {when}", standing)


def learning(step: int, steps: int, episodes: int) -> str:
    """Of an update: `step` of its optimizer steps is taken; 0 while the base reads along."""
    if step == 0:
        return f"reading {episodes} episodes with the base, which the team is held to"
    return f"learning from {episodes} episodes" + (f", step {step} of {steps}" if steps > 1 else "")
