"""Episodes for a round's page: some of each outcome, never longer than they may be."""

import json

from hypothesis import given
from hypothesis import strategies as st

from services.trainer import transcripts
from services.trainer.reinforcement.episodes import Action, Episode
from services.trainer.suites.formats import Task
from services.trainer.tasks.store import StoredTask

TASK = Task(
    "easy/1", "def f(n):\n", None, "def f(n):\n", "    return n\n", "def check(f): pass", "f", "check"
)
MOST_BYTES = 16_384  # as the table has it


def episode(
    task: str = TASK.key, *, solved: bool = False, texts: tuple[str, ...] = ("plan", "program")
) -> Episode:
    roles = ("analyzer", "coder")
    actions = tuple(
        Action(roles[at % 2], at // 2, (1,), (2, 3), text, finished=True) for at, text in enumerate(texts)
    )
    rewards = (0.0,) * (len(actions) - 1) + (float(solved),)
    return Episode(task, 0, actions, rewards, solved, "passed" if solved else "wrong\0answer", ("x = 1\n",))


def told(*episodes: Episode) -> list[transcripts.Transcript]:
    return transcripts.told(episodes, {TASK.key: StoredTask(7, TASK)})


def test_solved_and_unsolved_ones_are_shown_of_different_tasks() -> None:
    made = [episode("a"), episode("a"), episode("b"), episode("a", solved=True), episode("c", solved=True)]
    chosen = transcripts.chosen(made)
    assert [(each.task, each.solved) for each in chosen] == [
        ("a", True),
        ("a", False),
        ("c", True),
        ("b", False),
    ]


def test_without_one_outcome_the_other_fills_the_page() -> None:
    assert len(transcripts.chosen([episode(str(number)) for number in range(9)])) == transcripts.EPISODES
    assert transcripts.chosen([]) == []


def test_an_episode_says_what_was_asked_who_wrote_what_and_what_came_of_it() -> None:
    (found,) = told(episode(solved=True))
    assert (found.task_id, found.reward, found.solved, found.result) == (7, 1.0, True, "passed")
    assert [(turn["role"], turn["text"]) for turn in found.turns] == [
        ("analyzer", "plan"),
        ("coder", "program"),
    ]
    assert found.prompt == TASK.prompt


def test_nothing_is_shown_of_a_task_that_the_round_does_not_train_on() -> None:
    assert told(episode("another")) == []


def test_a_long_text_keeps_its_beginning_and_end_and_says_what_is_missing() -> None:
    (found,) = told(episode(texts=("plan", "a" * 40_000 + "the end")))
    short, long = found.turns
    assert short == {"role": "analyzer", "text": "plan"}
    assert long["text"].startswith("aaa")
    assert long["text"].endswith("the end")
    assert long["left_out"] > 20_000


@given(st.lists(st.text(max_size=9_000), min_size=1, max_size=40))
def test_whatever_agents_write_it_can_be_stored(texts: list[str]) -> None:
    """No NUL, no half of a pair, no more than the table takes."""
    (found,) = told(episode(texts=tuple(texts)))
    stored = json.dumps(list(found.turns), ensure_ascii=False)
    assert len(stored.encode()) <= MOST_BYTES
    assert "\\u0000" not in stored
    assert "\0" not in found.result
