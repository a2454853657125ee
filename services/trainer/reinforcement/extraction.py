"""The program in what an agent wrote."""

from services.trainer.suites.extraction import FENCED, answered
from services.trainer.suites.formats import Task


def extract(task: Task, text: str) -> str | None:
    """The program to be tested; None where there is no code at all, which is worth 0.

    As of a chat model's answer, see `suites.extraction.answered`. Code that does not compile is a program
    all the same: what the sandbox says of it is what the team hears in its next turn.
    """
    blocks = [found["code"] for found in FENCED.finditer(text)] or [text]
    return answered(task, text) if any(block.strip() for block in blocks) else None
