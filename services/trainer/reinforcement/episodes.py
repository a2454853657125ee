"""What a team did: actions in order, and what they were rewarded with. Plain values, without torch."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """What one agent wrote in one turn."""

    role: str
    turn: int  # of the episode, from 0
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]  # as generated, with the end token if it ended by one
    text: str
    finished: bool  # False: cut off at max_new_tokens
    logprobs: tuple[float, ...] | None = None  # behaviour policy's of every id, in nats

    def __post_init__(self) -> None:
        """Raises ValueError for a prompt without a token, and unless log-probabilities are one an id."""
        if not self.prompt_ids:
            raise ValueError(f"the prompt of {self.role} in turn {self.turn} is empty: expected one token")
        if self.logprobs is not None and len(self.logprobs) != len(self.ids):
            raise ValueError(
                f"{len(self.logprobs)} log-probabilities for {len(self.ids)} tokens of {self.role} in turn"
                f" {self.turn}: expected one a token"
            )


@dataclass(frozen=True)
class Episode:
    """One team's work on one task: every agent in order, turn by turn."""

    task: str  # its key
    group: int  # the same number: the same task in this rollout
    actions: tuple[Action, ...]  # turn 0: first role, second role, ...; turn 1: ...
    rewards: tuple[float, ...]  # one an action: the team's reward of a turn at its last action, 0.0 before
    solved: bool
    result: str  # the sandbox's words about the last program
    programs: tuple[str, ...]  # one a turn

    def __post_init__(self) -> None:
        """Raises ValueError without actions, and when rewards are not one an action."""
        if not self.actions:
            raise ValueError(f"the episode of task {self.task} has no action: expected one at least")
        if len(self.rewards) != len(self.actions):
            raise ValueError(
                f"{len(self.rewards)} rewards for {len(self.actions)} actions of task {self.task}:"
                " expected one an action"
            )

    @property
    def reward(self) -> float:
        """All turns together."""
        return sum(self.rewards)

    @property
    def turns(self) -> int:
        """How many turns were taken."""
        return self.actions[-1].turn + 1

    @property
    def tokens(self) -> int:
        """That were written."""
        return sum(len(action.ids) for action in self.actions)


def of_role(episodes: Sequence[Episode], role: str) -> Iterator[Action]:
    """Every action of a role, in order."""
    return (one for episode in episodes for one in episode.actions if one.role == role)


def roles(episodes: Sequence[Episode]) -> tuple[str, ...]:
    """Who acts, in the order of acting."""
    every = itertools.chain.from_iterable(episode.actions for episode in episodes)
    return tuple(dict.fromkeys(action.role for action in every))
