"""What an agent reads: its profile, the task, what the agents before it said, and how the last turn ended."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from services.core.errors import ConfigurationError
from services.trainer.reinforcement.profiles import Profile
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.template import frame
from services.trainer.suites.formats import Task
from services.trainer.suites.programs import question

HEADING = "### {}"
STOPS = ("\n###",)  # plain prompts: the next part is not the agent's to write
LEFT_OUT = "\n[…]\n"
RESULT_CHARACTERS = 1_000  # of what the tests said


class Prompting(Protocol):
    """Makes prompts. `stops`, where it has such a tuple of strings, end an agent's text."""

    def __call__(
        self,
        profile: Profile,
        task: Task,
        texts: Sequence[str],
        program: str | None,
        result: str | None,
        /,
    ) -> list[int]:
        """Token ids for this agent.

        texts: what the agents before it said this turn, in their order. program, result: the team's last
        program and what its tests said; None in the first turn.
        """


class TeamPrompts:
    """The prompts of a team: in the tokenizer's chat template, or as plain text where there is none."""

    def __init__(self, tokenizer: Any, profiles: Sequence[Profile], most_tokens: int) -> None:
        """most_tokens: of a prompt. Raises ConfigurationError for a template that does not go on."""
        self._encoder = Encoder(tokenizer)
        self._roles = [profile.role for profile in profiles]
        self._most = most_tokens
        self._frame = frame(self._encoder) if getattr(tokenizer, "chat_template", None) else None

    @property
    def stops(self) -> tuple[str, ...]:
        """Where an answer ends though the model goes on."""
        return () if self._frame is not None else STOPS

    def __call__(
        self,
        profile: Profile,
        task: Task,
        texts: Sequence[str],
        program: str | None,
        result: str | None,
    ) -> list[int]:
        """See `Prompting`. What others said is cut in its middle as far as it must be, the task never.

        Raises ConfigurationError for a task that does not fit with nothing else said.
        """
        result = None if result is None else shortened(result, RESULT_CHARACTERS)
        said = [*texts, program or "", result or ""]

        def asked(most: int) -> list[int]:
            cut = [shortened(text, most) for text in said]
            shown = None if program is None else cut[-2], None if result is None else cut[-1]
            return self._ids(profile, task, cut[: len(texts)], *shown)

        whole = max(map(len, said))
        if len(found := asked(whole)) <= self._most:
            return found
        least = asked(0)
        if len(least) > self._most:
            raise ConfigurationError(
                f"task {task.name}: the prompt of {profile.role} has {len(least)} tokens with the task alone,"
                f" and at most {self._most} fit: raise context_window (as far as the model's context goes"
                " beside max_new_tokens), or leave the task out"
            )
        return _largest(asked, least, whole, self._most)

    def _ids(
        self, profile: Profile, task: Task, texts: Sequence[str], program: str | None, result: str | None
    ) -> list[int]:
        parts = list(self._parts(task, texts, program, result))
        if self._frame is not None:
            text = "\n\n".join([profile.prompt.strip(), *parts])
            lead = [*self._frame.between, *self._frame.lead]
            return [*self._frame.before, *self._encoder.plain([text])[0], *lead]
        text = "\n\n".join([profile.prompt.strip(), *parts, HEADING.format(profile.role)])
        return [*self._encoder.begin, *self._encoder.plain([text])[0]]

    def _parts(
        self, task: Task, texts: Sequence[str], program: str | None, result: str | None
    ) -> Iterator[str]:
        yield _part("task", question(task))
        if program is not None:
            yield _part("last program", f"```python\n{program.strip()}\n```")
        if result is not None:
            yield _part("what its tests said", result)
        for role, text in zip(self._roles, texts, strict=False):
            yield _part(role, text)


def shortened(text: str, most: int) -> str:
    """The text, and where it has more than so many characters a sign in the place of its middle."""
    text = text.strip()
    if len(text) <= most:
        return text
    first = most // 2
    return f"{text[:first]}{LEFT_OUT}{text[len(text) - (most - first) :]}".strip()


def _part(heading: str, text: str) -> str:
    return f"{HEADING.format(heading)}\n{text.strip()}".strip()


def _largest(asked: Callable[[int], list[int]], least: list[int], whole: int, most_tokens: int) -> list[int]:
    """Of the prompts with so many characters of each text, one that is as long as fits."""
    fits, does_not = 0, whole
    while does_not - fits > 1:
        middle = (fits + does_not) // 2
        found = asked(middle)
        if len(found) <= most_tokens:
            fits, least = middle, found
        else:
            does_not = middle
    return least
