"""What a round of reinforcement says that it does, from its tasks to its verdict."""

import dataclasses
from typing import Any

import pytest

from services.core.models import ServiceState
from services.trainer.heartbeat import Beat, Heart
from services.trainer.rounds import run
from tests.integration.trainer.reinforcement.conftest import Contexts


class Listening(Heart):
    """Keeps every beat."""

    def __init__(self) -> None:
        super().__init__(None)
        self.heard: list[Beat] = []

    def beat(self, *, urgent: bool = False, **changes: Any) -> None:
        super().beat(urgent=urgent, **changes)
        self.heard.append(self._beat)


@pytest.mark.usefixtures("lenient_gate")
def test_every_part_of_a_round_is_said_as_it_begins(contexts: Contexts) -> None:
    heart = Listening()
    run(dataclasses.replace(contexts(), heart=heart))
    said = list(dict.fromkeys((str(each.state), each.message) for each in heart.heard))
    parts = (
        (ServiceState.STARTING, "reading the tasks"),
        (ServiceState.STARTING, "trying the tasks' references in the sandbox, 1 of "),
        (ServiceState.STARTING, "getting the base model ready"),
        (ServiceState.STARTING, "loading the model"),
        (ServiceState.EVALUATING, "base on held-out tasks: analyzer writes, 0 of "),
        (ServiceState.EVALUATING, "base on held-out tasks: coder writes, 0 of "),
        (ServiceState.EVALUATING, "validation tasks before iteration 1: analyzer writes, 0 of "),
        (ServiceState.TRAINING, "analyzer writes, 0 of "),
        (ServiceState.TRAINING, "reading "),
        (ServiceState.TRAINING, "learning from "),
        (ServiceState.EVALUATING, "validation tasks after iteration 4 of 4: analyzer writes, 0 of "),
        (ServiceState.EVALUATING, "candidate on held-out tasks: analyzer writes, 0 of "),
        (ServiceState.EVALUATING, "the gate decides"),
        (ServiceState.PUBLISHING, "writing the adapters"),
    )
    places = [_place(said, state, words) for state, words in parts]
    assert -1 not in places, said
    assert places == sorted(places)
    measured = next(at for at, each in enumerate(said) if "held-out tasks" in (each[1] or ""))
    assert ServiceState.STARTING not in {state for state, _ in said[measured:]}  # nothing is loaded any more
    assert said[-1][1] is not None  # the verdict's reason


def _place(said: list[tuple[str, str | None]], state: str, words: str) -> int:
    """Of the first beat that begins so; -1 if none does."""
    return next(
        (at for at, each in enumerate(said) if each[0] == state and (each[1] or "").startswith(words)), -1
    )
