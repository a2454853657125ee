"""Episodes: every agent in order writes for all of them at once, and programs are tested as they are written.

One batch per agent and turn, in which a prompt that episodes share is read once. The last agent's programs
go to the sandbox row by row while others of the batch are still written (`rewards`), so that of the tests
only those of the last rows are waited for.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.core.sandbox import Outcome
from services.trainer.generation import Completion, Request
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement import extraction
from services.trainer.reinforcement.backend import Backend, backend_of
from services.trainer.reinforcement.episodes import Action, Episode
from services.trainer.reinforcement.profiles import Profile
from services.trainer.reinforcement.prompting import Prompting, TeamPrompts
from services.trainer.reinforcement.rewards import Rewards, said
from services.trainer.reinforcement.standing import Standing
from services.trainer.samples.chance import draw
from services.trainer.suites.formats import Task

if TYPE_CHECKING:
    from services.trainer.reinforcement.team import Team

BEAT = 0.5  # seconds between two calls of `on_done` while the sandbox is waited for
OnDone = Callable[[Standing], None]
Extract = Callable[[Task, str], str | None]


@dataclass(frozen=True)
class RolloutFigures:
    """What a rollout cost."""

    episodes: int = 0
    tokens: int = 0  # written
    writing_seconds: float = 0.0
    waiting_seconds: float = 0.0  # for the sandbox, with nothing left to write
    programs: int = 0
    repeated: int = 0  # of them, answered by an earlier one of the same code and test

    @property
    def tokens_per_second(self) -> float:
        """Of writing alone."""
        return self.tokens / self.writing_seconds if self.writing_seconds else 0.0


@dataclass
class _Running:
    """An episode on its way."""

    task: Task
    group: int
    actions: list[Action] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    outcome: Outcome | None = None  # of the last program
    pending: "Future[Outcome] | None" = None
    worth: float = 0.0  # of the last program

    @property
    def is_solved(self) -> bool:
        return self.outcome is not None and self.outcome.passed

    @property
    def known(self) -> Outcome | None:
        """What is known of the last program now, without waiting for it."""
        if self.pending is None:
            return self.outcome
        failed = not self.pending.done() or self.pending.cancelled() or self.pending.exception() is not None
        return None if failed else self.pending.result()

    def texts(self, turn: int) -> list[str]:
        return [action.text for action in self.actions if action.turn == turn]

    def done(self) -> Episode:
        assert self.outcome is not None
        return Episode(
            self.task.key, self.group, tuple(self.actions), tuple(self.rewards),
            self.is_solved, self.outcome.result, tuple(self.programs),
        )  # fmt: skip


class Rollouts:
    """Has a team act on tasks: to be trained by, or to be evaluated."""

    def __init__(
        self,
        team: "Team",
        profiles: Sequence[Profile],
        settings: Reinforcement,
        recipe: Recipe,
        rewards: Rewards,
        *,
        prompting: Prompting | None = None,
        extract: Extract = extraction.extract,
        backend: Backend | None = None,
    ) -> None:
        """prompting, extract: how agents are asked, and where the program is in the last one's answer.

        backend: who writes, by default the one of the recipe.
        """
        self._profiles, self._settings = tuple(profiles), settings
        self._rewards, self._extract = rewards, extract
        self._backend = backend_of(team, settings, recipe) if backend is None else backend
        self._prompting = prompting or TeamPrompts(
            team.tokenizer, profiles, prompt_tokens(team.model.config, settings)
        )
        self.figures = RolloutFigures()  # of the last rollout

    def collect(
        self,
        tasks: Sequence[Task],
        *,
        group_size: int = 1,
        seed: int,
        greedy: bool = False,
        samples: int = 1,
        on_done: OnDone | None = None,
    ) -> list[Episode]:
        """`group_size` × `samples` episodes of every task, in the tasks' order; each is a group.

        A task may be there several times. seed: with it, the task and the weights, what is drawn is the same
        but for rounding, whatever is drawn beside it. on_done: hears how far it is after every turn of
        writing and while the sandbox is waited for; what it raises goes through. Raises
        ConfigurationError for a task that does not fit into context_window, SandboxError when the sandbox
        goes away.
        """
        count = group_size * samples
        running = [_Running(task, number) for number, task in enumerate(tasks) for _ in range(count)]
        standing = Standing(episodes=len(running), turns=self._settings.turns)
        asked = _Asked(seed, greedy, on_done, running, self._rewards.reward, standing)
        before, began = (self._rewards.programs, self._rewards.repeated), time.monotonic()
        self._backend.begin()
        for turn in range(self._settings.turns):
            going_on = [each for each in running if not each.is_solved]
            for profile in self._profiles if going_on else ():
                self._act(profile, turn, going_on, asked)
            self._judge(going_on, asked)
        episodes = [each.done() for each in running]
        self.figures = RolloutFigures(
            len(episodes),
            sum(episode.tokens for episode in episodes),
            time.monotonic() - began - asked.waited,
            asked.waited,
            self._rewards.programs - before[0],
            self._rewards.repeated - before[1],
        )
        return episodes

    def _act(self, profile: Profile, turn: int, running: Sequence[_Running], asked: "_Asked") -> None:
        """One agent writes for all episodes; programs are submitted as they are finished."""
        asked.standing = asked.standing.begins(profile.role, turn, len(running))
        asked.tell()
        prompts = [self._prompt(profile, turn, each) for each in running]
        distinct, owners = _shared(prompts)
        request = Request(
            self._settings.max_new_tokens,
            temperature=0.0 if asked.greedy else self._settings.temperature,
            stop=getattr(self._prompting, "stops", ()),
            seed=draw(asked.seed, "rollout", turn, profile.role).getrandbits(32),
            logprobs=not asked.greedy,
        )

        def heard(place: tuple[int, int], completion: Completion) -> None:
            prompt, sample = place
            whose = owners[prompt] if asked.greedy else [owners[prompt][sample]]
            for owner in whose:
                each = running[owner]
                each.actions.append(_action(profile.role, turn, prompts[owner], completion))
                if profile.with_answer:
                    code = self._extract(each.task, completion.text)
                    each.programs.append(code or "")
                    each.pending = self._rewards.submit(each.task, code)
            asked.standing = asked.standing.wrote(len(whose), len(completion.ids))

        counts = [1 if asked.greedy else len(each) for each in owners]
        self._backend.write(
            profile.role, distinct, counts, request, on_row=heard, on_done=lambda *_: asked.tell()
        )

    def _prompt(self, profile: Profile, turn: int, each: _Running) -> tuple[int, ...]:
        program = each.programs[-1] if each.programs else None
        result = said(each.outcome) if each.outcome is not None else None
        return tuple(self._prompting(profile, each.task, each.texts(turn), program, result))

    def _judge(self, running: Sequence[_Running], asked: "_Asked") -> None:
        """Every program's outcome. A turn is worth what it has added to the last one's program.

        So the rewards of an episode are together what its last program is worth, and no turn gains by
        what an earlier one has left undone (potential-based shaping, Ng et al. 1999).
        """
        began = time.monotonic()
        asked.standing = asked.standing.begins(None, asked.standing.turn, len(running))
        pending = {each.pending for each in running if each.pending is not None}
        while wait(pending, BEAT).not_done:
            asked.tell()
        for each in running:
            assert each.pending is not None
            each.outcome, each.pending = each.pending.result(), None
            worth = self._rewards.reward(each.outcome)
            each.rewards += [0.0] * (len(each.actions) - len(each.rewards) - 1) + [worth - each.worth]
            each.worth = worth
        asked.waited += time.monotonic() - began


@dataclass
class _Asked:
    """A rollout as it was asked for, and how far it is."""

    seed: int
    greedy: bool
    on_done: OnDone | None
    running: Sequence[_Running]
    reward: Callable[[Outcome], float]
    standing: Standing
    began: float = field(default_factory=time.monotonic)
    waited: float = 0.0  # seconds

    def tell(self) -> None:
        if self.on_done is not None:
            known = [outcome for each in self.running if (outcome := each.known) is not None]
            rewards, solved = list(map(self.reward, known)), sum(outcome.passed for outcome in known)
            writes = self.standing.role is not None
            seconds = time.monotonic() - self.began - self.waited if writes else self.standing.seconds
            self.standing = self.standing.after(seconds, rewards, solved)
            self.on_done(self.standing)


def prompt_tokens(config: object, settings: Reinforcement) -> int:
    """Of a prompt at most: context_window, or less where the model's context has less beside the answer."""
    context = getattr(config, "max_position_embeddings", None)
    if context is None:
        return settings.context_window
    return max(1, min(settings.context_window, int(context) - settings.max_new_tokens))


def _shared(prompts: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], list[list[int]]]:
    """The prompts without repetition, and for each the numbers of those that are it."""
    owners: dict[tuple[int, ...], list[int]] = {}
    for number, prompt in enumerate(prompts):
        owners.setdefault(prompt, []).append(number)
    return list(owners), list(owners.values())


def _action(role: str, turn: int, prompt: tuple[int, ...], completion: Completion) -> Action:
    return Action(
        role, turn, prompt, completion.action, completion.text, completion.finished, completion.logprobs
    )
