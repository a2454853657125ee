"""The process behind `ratchet compare`: models and what they are asked as JSON on standard input, what each
answered on standard output, its progress on standard error as lines of `progress DONE TOTAL WHAT`.
"""

import gc
import json
import sys
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch

from services.core.models import Json
from services.core.settings import Settings, from_environment
from services.trainer import inquiry, model, subjects
from services.trainer.answering import loading
from services.trainer.assessing import is_loss
from services.trainer.comparing import measure
from services.trainer.comparing.measure import Asked
from services.trainer.comparing.questions import Prompt, content_of
from services.trainer.generation import Request
from services.trainer.reinforcement import asking
from services.trainer.subjects import ADAPTER_CONFIG, Subject
from services.trainer.suites import keywords, programs, run
from services.trainer.tasks.placed import from_payload

BEFORE_LINES = 12  # of code before an answer, to be shown


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    settings = from_environment()
    return inquiry.answer(lambda sent: compared(sent, settings))


def compared(sent: Json, settings: Settings) -> Json:
    """What every model found, in the order they were named."""
    found = [subjects.resolve(name, settings) for name in sent["subjects"]]
    asked = asked_of(sent)
    answers: dict[str, Json] = {}
    items: dict[str, Json] = {}
    for _, group in groupby(sorted(found, key=_base_key), key=_base_key):
        answers |= _of_one_base(list(group), asked, settings, items)
    return {
        "found": [answers[subject.name] for subject in found],
        "items": items,
        "device": torch.cuda.get_device_name()
        if model.has_gpu()
        else f"{torch.get_num_threads()} CPU threads",
    }


def asked_of(sent: Json) -> Asked:
    request = {**sent["request"], "stop": tuple(sent["request"]["stop"])}
    return Asked(
        suites=tuple(sent["suites"]),
        contents=tuple(content_of(fields) for fields in sent["contents"]),
        prompts=tuple(Prompt(**each) for each in sent["prompts"]),
        items=sent["items"],
        seed=sent["seed"],
        most=sent["items"],
        request=Request(**request),
        chat=sent["chat"],
        tasks=tuple(from_payload(each) for each in sent["tasks"]),
    )


def _base_key(subject: Subject) -> str:
    """Subjects of one key share a base model in memory."""
    if subject.kind == "model":
        return f"model {subject.folder}"
    return f"base {subject.recipe.base_model} {subject.revision} {subject.recipe.method}"


def _of_one_base(
    found: Sequence[Subject], asked: Asked, settings: Settings, items: dict[str, Json]
) -> dict[str, Json]:
    """The base is loaded once; its adapters come and go, the bare base is asked first. Into `items` goes what
    was asked, by name.
    """
    answers = {}
    base: Any = None
    for subject in sorted(found, key=lambda each: each.kind != "base"):
        if base is None:
            base, tokenizer = loading.load_base(subject, settings)
        items |= _shown(asked, subject, tokenizer, settings)
        if subject.kind == "team" and (asked.prompts or asked.tasks):
            measured = _of_team(base, tokenizer, subject, asked, settings)
            base = None  # a team changes the layers of its base
        else:
            alone = loading.alone(subject)
            loaded = measure.loaded(alone, settings, base, tokenizer)
            measured = measure.measure(loaded, asked, settings, _say(subject.name))
            base = _bare(loaded.model, alone)
            del loaded
        answers[subject.name] = {"name": subject.name, **measured.as_json()}
        gc.collect()
    return answers


def _of_team(base: Any, tokenizer: Any, subject: Subject, asked: Asked, settings: Settings) -> measure.Found:
    """Prompts and tasks go to all of the team."""
    began = time.monotonic()
    team = asking.load(base, tokenizer, subject)
    told = measure.measure_team(team, subject, asked, settings, _say(subject.name))
    return measure.together(told, time.monotonic() - began)


def _shown(asked: Asked, subject: Subject, tokenizer: Any, settings: Settings) -> dict[str, Json]:
    """What stands before each answer, and what would be right, where that is not in the scores."""
    shown = {each.name: {"before": each.prompt, "wanted": each.answer} for each in asked.prompts}
    shown |= {
        each.name: {"before": programs.question(each), "wanted": each.reference} for each in asked.tasks
    }
    if run.COMPLETION in asked.suites:
        for item in measure.completions(asked, subject, tokenizer):
            before = "".join(item.prefix.splitlines(keepends=True)[-BEFORE_LINES:])
            shown[f"{item.name} {item.kind}"] = {"before": before, "wanted": item.answer}
    for suite in asked.suites:
        if suite not in (run.COMPLETION, keywords.NAME) and not is_loss(suite):
            tasks = programs.load(suite, settings.benchmarks_dir)
            shown |= {task.name: {"before": task.prompt, "wanted": task.solution} for task in tasks}
    return shown


def _bare(loaded: Any, subject: Subject) -> Any:
    """The base without the adapter; None where that has replaced some of its modules."""
    if subject.kind != "adapter" or subject.folder is None:
        return loaded
    config = json.loads((subject.folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    is_plain = config.get("peft_type") == "LORA" and not (
        config.get("modules_to_save") or config.get("trainable_token_indices")
    )
    return loaded.unload() if is_plain else None


def _say(name: str) -> measure.OnDone:
    def say(what: str, done: int, total: int) -> None:
        inquiry.progress(done, total, f"{name}, {what}")

    return say


if __name__ == "__main__":
    sys.exit(main())
