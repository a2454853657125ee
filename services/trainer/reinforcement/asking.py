"""A published team at work on what a person asks: each agent in its order, the last one answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.generation import Completion, Request, complete
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement.prompting import TeamPrompts
from services.trainer.reinforcement.rollout import prompt_tokens
from services.trainer.reinforcement.team import Team
from services.trainer.subjects import Subject
from services.trainer.suites.formats import Task


@dataclass(frozen=True)
class Said:
    """What one agent wrote."""

    role: str
    text: str
    tokens: int
    finished: bool  # False when it ran out of tokens


def load(base: Any, tokenizer: Any, subject: Subject) -> Team:
    """The team on a base that `model.load_base` loaded. Raises ConfigurationError for what is none."""
    if subject.kind != "team" or subject.folder is None:
        raise ConfigurationError(f"{subject.name} is no team but a {subject.kind}")
    return Team.load(base, tokenizer, subject.recipe, subject.profiles, subject.folder)


def ask(
    team: Team, subject: Subject, tasks: Sequence[Task], request: Request, *,
    on_said: Callable[[Said], None] | None = None, on_done: Callable[[int, int], None] | None = None,
) -> list[list[tuple[Said, ...]]]:  # fmt: skip
    """What the team makes of each task, `request.n` times: what every agent said, in order.

    Agents are prompted as in a round, each with what those before it said. on_said: hears what an agent said
    as soon as it has, of all tasks. Raises ConfigurationError for a task longer than the recipe's
    context_window.
    """
    settings = section(subject.recipe).model_copy(update={"max_new_tokens": request.max_new_tokens})
    prompting = TeamPrompts(team.tokenizer, subject.profiles, prompt_tokens(team.model.config, settings))
    every = [task for task in tasks for _ in range(request.n)]
    said: list[tuple[Said, ...]] = [() for _ in every]
    asked = replace(request, n=1, stop=(*request.stop, *prompting.stops))
    for profile in subject.profiles:
        prompts = [
            tuple(prompting(profile, task, [each.text for each in before], None, None))
            for task, before in zip(every, said, strict=True)
        ]
        with team.acting(profile.role):
            written = _written(team, prompts, asked, on_done)
        answers = [Said(profile.role, each.text, len(each.ids), each.finished) for each in written]
        if on_said is not None:
            for answer in answers:
                on_said(answer)
        said = [(*before, answer) for before, answer in zip(said, answers, strict=True)]
    return [said[at : at + request.n] for at in range(0, len(said), request.n)]


def as_task(text: str) -> Task:
    """A question in words, which nothing tests."""
    return Task("the question", text, text, "", "", "", "", "check")


def _written(
    team: Team, prompts: Sequence[tuple[int, ...]], request: Request,
    on_done: Callable[[int, int], None] | None,
) -> list[Completion]:  # fmt: skip
    """An answer to each prompt; equal ones are read once, and answered differently where they are drawn."""
    owners: dict[tuple[int, ...], list[int]] = {}
    for at, prompt in enumerate(prompts):
        owners.setdefault(prompt, []).append(at)
    counts = [len(each) for each in owners.values()]
    found = complete(team.model, team.tokenizer, list(owners), request, counts=counts, on_done=on_done)
    of_place = {
        at: each
        for places, completions in zip(owners.values(), found, strict=True)
        for at, each in zip(places, completions, strict=True)
    }
    return [of_place[at] for at in range(len(prompts))]
