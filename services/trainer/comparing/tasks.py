"""Tasks and prompts as a model, or a whole team, is asked them; programs are run in the sandbox.

A model alone is asked a task in its chat template, as suites of programs do. A team works on it as in a
round: what every agent said is shown, and the last one's program is run.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.trainer.comparing import prompting
from services.trainer.comparing.questions import Prompt
from services.trainer.generation import Request, complete
from services.trainer.reinforcement import asking
from services.trainer.reinforcement.asking import Said
from services.trainer.reinforcement.team import Team
from services.trainer.subjects import Subject
from services.trainer.suites import programs
from services.trainer.suites.formats import Task
from services.trainer.suites.references import Runner
from services.trainer.suites.suite import Score

OnDone = Callable[[int, int], None]


@dataclass(frozen=True)
class Told:
    """What one suite, or the prompts of a file, came to."""

    scores: Sequence[Score]
    figures: Mapping[str, float]
    from_cache: int = 0
    tokens: int = 0  # written now
    writing: float = 0.0  # seconds


def of_model(
    model: Any, tokenizer: Any, tasks: Sequence[Task], request: Request, sandbox: Runner,
    on_done: OnDone,
) -> Told:  # fmt: skip
    """The programs of one model, in one answer each."""
    chat = bool(getattr(tokenizer, "chat_template", None))
    asked = replace(request, stop=(*request.stop, *programs.stops(chat=chat)))
    began = time.perf_counter()
    written = complete(
        model, tokenizer, programs.prompts(tasks, tokenizer, chat=chat), asked, on_done=on_done
    )
    seconds = time.perf_counter() - began
    texts = [completion.text for (completion,) in written]
    scores = judged(tasks, texts, texts, sandbox, chat=chat)
    tokens = sum(len(completion.ids) for (completion,) in written)
    return Told(scores, programs.figures(scores), tokens=tokens, writing=seconds)


def of_team(
    team: Team, subject: Subject, tasks: Sequence[Task], request: Request, sandbox: Runner,
    on_done: OnDone,
) -> Told:  # fmt: skip
    """The programs of a team."""
    said, tokens, seconds = _asked(team, subject, tasks, request, on_done)
    answers = [answer[-1].text for answer in said]
    scores = judged(tasks, answers, list(map(shown, said)), sandbox, chat=True)
    return Told(scores, programs.figures(scores), tokens=tokens, writing=seconds)


def prompts_of_team(
    team: Team, subject: Subject, prompts: Sequence[Prompt], request: Request, on_done: OnDone
) -> Told:
    """What a team makes of the prompts of a file; its answer is the last agent's."""
    tasks = [asking.as_task(each.prompt) for each in prompts]
    said, tokens, seconds = _asked(team, subject, tasks, request, on_done)
    scores = [
        replace(score, detail={**score.detail, "written": shown(answer)})
        for prompt, answer in zip(prompts, said, strict=True)
        for score in prompting.scores(prompt.key, prompt, answer[-1].text, answer[-1].tokens)
    ]
    return Told(scores, prompting.figures(scores), tokens=tokens, writing=seconds)


def judged(
    tasks: Sequence[Task],
    answers: Sequence[str],
    seen: Sequence[str],
    sandbox: Runner,
    *,
    chat: bool,
) -> list[Score]:
    """Whether each answer's program passes. seen: what is shown of each."""
    found = programs.judge(tasks, [[text] for text in answers], sandbox, chat=chat, asked="compared")
    return [
        replace(score, detail={**score.detail, "written": text})
        for score, text in zip(found, seen, strict=True)
    ]


def shown(said: Sequence[Said]) -> str:
    """What every agent said, below its role."""
    return "\n\n".join(f"── {each.role} ──\n{each.text.strip()}" for each in said)


def _asked(
    team: Team, subject: Subject, tasks: Sequence[Task], request: Request, on_done: OnDone
) -> tuple[list[tuple[Said, ...]], int, float]:
    """One answer to each task; tokens and seconds of all agents."""
    began = time.perf_counter()
    answers = asking.ask(team, subject, tasks, replace(request, n=1), on_done=on_done)
    seconds = time.perf_counter() - began
    said = [answer for (answer,) in answers]
    return said, sum(each.tokens for answer in said for each in answer), seconds
