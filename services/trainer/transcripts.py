"""Some episodes of a reinforcement round as its agents wrote them, for its page.

Kept are four episodes of the round's first rollout and four of its latest, 12 kB of text each at most: a long
text loses its middle. What is written is a model's, and is shown inert.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.core.db import Transaction, as_json
from services.core.models import Json
from services.trainer.reinforcement.episodes import Episode
from services.trainer.tasks.store import StoredTask

EPISODES = 4  # of a rollout
PROMPT_CHARACTERS = 1_500
TURN_BYTES = 12_000  # of all turns of an episode as JSON
MOST_TURNS = 24
FEWEST_CHARACTERS = 40  # of a text that is cut
RESULT_CHARACTERS = 400
NUL, REPLACEMENT = "\0", "\N{REPLACEMENT CHARACTER}"  # PostgreSQL stores no NUL


@dataclass(frozen=True)
class Transcript:
    task_id: int
    prompt: str
    turns: tuple[Json, ...]  # role and text of each agent's turn; left_out: characters out of its middle
    reward: float  # of all turns
    solved: bool
    result: str


def store(tx: Transaction, round_id: int, iteration: int, transcripts: Sequence[Transcript]) -> None:
    """In place of what an earlier iteration but the first has left."""
    tx.execute("drop_episodes", round_id=round_id, iteration=iteration)
    for number, each in enumerate(transcripts, 1):
        tx.execute(
            "record_episode",
            round_id=round_id,
            iteration=iteration,
            number=number,
            task_id=each.task_id,
            prompt=each.prompt,
            turns=as_json(list(each.turns)),
            reward=each.reward,
            solved=each.solved,
            result=each.result,
        )


def told(episodes: Sequence[Episode], tasks: Mapping[str, StoredTask]) -> list[Transcript]:
    """Of a rollout's episodes some, of different tasks and outcomes where there are. tasks: by their keys."""
    return [_transcript(each, tasks[each.task]) for each in chosen(episodes) if each.task in tasks]


def chosen(episodes: Sequence[Episode], most: int = EPISODES) -> list[Episode]:
    """Solved ones and others in turn, of each task one first; the same of the same episodes."""
    queues = [_by_task([each for each in episodes if each.solved is solved]) for solved in (True, False)]
    found: list[Episode] = []
    while len(found) < most and any(queues):
        found += [queue.pop(0) for queue in queues if queue]
    return found[:most]


def _by_task(episodes: Sequence[Episode]) -> list[Episode]:
    """The first of each task, then the second of each, …"""
    seen: dict[str, int] = {}
    ranked = []
    for each in episodes:
        seen[each.task] = seen.get(each.task, 0) + 1
        ranked.append((seen[each.task], each))
    return [each for _, each in sorted(ranked, key=lambda one: one[0])]


def _transcript(episode: Episode, stored: StoredTask) -> Transcript:
    task = stored.task
    return Transcript(
        task_id=stored.task_id,
        prompt=str(_cut(task.instruction or task.prompt, PROMPT_CHARACTERS)["text"]),
        turns=tuple(_turns(episode)),
        reward=float(sum(episode.rewards)),
        solved=episode.solved,
        result=_storable(episode.result)[:RESULT_CHARACTERS],
    )


def _turns(episode: Episode) -> list[Json]:
    """Within their room: the longest lose most."""
    actions = episode.actions[-MOST_TURNS:]
    room = max((len(each.text) for each in actions), default=0)
    while True:
        turns = [{"role": each.role, **_cut(each.text, room)} for each in actions]
        if room <= FEWEST_CHARACTERS or len(json.dumps(turns, ensure_ascii=False).encode()) <= TURN_BYTES:
            return turns
        room = max(FEWEST_CHARACTERS, room * 3 // 4)


def _cut(text: str, most: int) -> Json:
    """A longer text as its beginning and its end, with how much is left out between them."""
    text = _storable(text)
    if len(text) <= most:
        return {"text": text}
    head = most * 2 // 3
    tail = most - head
    return {"text": f"{text[:head]}\n⋯\n{text[-tail:]}", "left_out": len(text) - most}


def _storable(text: str) -> str:
    return text.encode(errors="replace").decode().replace(NUL, REPLACEMENT)
