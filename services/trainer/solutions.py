"""Solutions: programs of reinforcement rounds that passed their tests, kept for fine-tuning rounds.

Rejection sampling as in Yuan et al. 2023 (arXiv 2308.01825): what a model gains from its own right answers
grows with how many different ones there are to a task, so the few that are kept differ.
"""

import builtins
import hashlib
import io
import keyword
import math
import tokenize
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.db import Transaction
from services.core.errors import ConfigurationError
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.solutions import Solution

MOST = 4  # solutions of a task that are offered at a time
MOST_CHARACTERS = 8_000  # of a program: a longer one is no example to anybody
SHINGLE = 3  # tokens that are looked at together when programs are compared
WITHOUT_MEANING = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
)  # fmt: skip
KNOWN = {*keyword.kwlist, *dir(builtins)}  # names that mean the same in every program


@dataclass(frozen=True)
class Solved:
    """A program that passed all tests of a task that its round trains on."""

    task_id: int
    prompt: str  # the task as a model is asked without other agents
    code: str

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.code.encode()).digest()

    @property
    def is_storable(self) -> bool:
        """Whether PostgreSQL takes it, and anybody would learn from it."""
        text = self.prompt + self.code
        is_text = "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)
        return is_text and self.code.strip() != "" and len(self.code) <= MOST_CHARACTERS


def store(tx: Transaction, round_id: int, solved: Iterable[Solved], most: int = MOST) -> int:
    """Keep the programs of a round that say something new; how many of them are.

    Of a task at most `most` are offered, whichever round wrote them: the shortest and those that differ
    most. Safe to call again with the same programs. The database refuses a task that the round does not
    train on.
    """
    new: dict[int, dict[bytes, Solved]] = {}
    for each in solved:
        if each.is_storable:
            new.setdefault(each.task_id, {})[each.sha256] = each
    if not new:
        return 0
    known: dict[int, dict[bytes, Any]] = {task_id: {} for task_id in new}
    for row in tx.all("solutions_of_tasks", task_ids=sorted(new)):  # locks the tasks
        if row.solution_id is not None:
            known[row.task_id][bytes(row.sha256)] = row
    kept = 0
    for task_id, programs in sorted(new.items()):
        standing = {key: row.code for key, row in known[task_id].items()}
        chosen = distinct(standing | {key: each.code for key, each in programs.items()}, most)
        gone = [row.solution_id for key, row in known[task_id].items() if key not in chosen]
        tx.execute("retire_solutions", solution_ids=gone)
        for key in chosen - standing.keys():
            each = programs[key]
            about = {"task_id": task_id, "round_id": round_id, "sha256": key}
            kept += tx.execute("record_solution", prompt=each.prompt, code=each.code, **about)
    return kept


def distinct(codes: Mapping[bytes, str], most: int = MOST) -> set[bytes]:
    """The keys of at most `most` of these programs: the shortest, then what differs most from those taken.

    Programs that differ in comments, white space and names alone are one. The same for the same programs.
    """
    by_tokens: dict[tuple[str, ...], bytes] = {}
    ordered = sorted(codes, key=lambda key: (len(codes[key]), key))
    for key in ordered:
        by_tokens.setdefault(tokens(codes[key]), key)
    shingles = {key: _shingles(found) for found, key in by_tokens.items()}
    waiting = list(by_tokens.values())
    taken = waiting[:1]
    nearest = dict.fromkeys(waiting, math.inf)  # distance to the nearest that is taken
    while len(taken) < min(most, len(waiting)):
        for key in waiting:
            nearest[key] = min(nearest[key], _distance(shingles[key], shingles[taken[-1]]))
        left = [key for key in waiting if key not in taken]
        taken.append(max(left, key=lambda key: nearest[key]))  # of equals the shortest: the first
    return set(taken[:most])


def tokens(code: str) -> tuple[str, ...]:
    """The program's tokens without comments and white space, and with its own names numbered as they come.

    Of what is no Python, its words.
    """
    try:
        found = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return tuple(code.split())
    numbers: dict[str, str] = {}
    told = [""]
    for each in found:
        if each.type in WITHOUT_MEANING:
            continue
        is_own = each.type == tokenize.NAME and told[-1] != "." and each.string not in KNOWN
        told.append(numbers.setdefault(each.string, f"¶{len(numbers)}") if is_own else each.string)
    return tuple(told[1:])


@dataclass(frozen=True)
class Offered:
    """A solution that a track has not learned, as a snapshot takes it."""

    solution_id: int
    task: bytes  # SHA-256
    sha256: bytes


def offered(
    tx: Transaction, track: str, recipe: Recipe, most_texts: int, barred: Collection[bytes] = ()
) -> list[Offered]:
    """The solutions that a round of at most `most_texts` texts may have, one of every task first.

    barred: `prompt_sha256` of tasks that the recipe's suites ask, which are never trained on.
    """
    most = int(_limit(recipe, most_texts) * recipe.solutions_share)
    if most == 0:
        return []
    rows = tx.all("offered_solutions", track=track, most=most, barred=list(barred))
    return [Offered(row.solution_id, bytes(row.task), bytes(row.sha256)) for row in rows]


def room(recipe: Recipe, most_texts: int, found: int) -> int:
    """How many contents a round may have beside so many solutions."""
    return most_texts if found == 0 else _limit(recipe, most_texts) - found


def share(found: Sequence[Offered], recipe: Recipe, contents: int) -> list[Offered]:
    """So many of them that they are at most the recipe's share beside so many training contents."""
    return list(found[: round(contents * recipe.solutions_share / (1 - recipe.solutions_share))])


def snapshot_hash(contents: "hashlib._Hash", chosen: Iterable[Offered]) -> str:
    """SHA-256 of a snapshot: that over its contents gone on with task and code of each solution."""
    digest = contents.copy()
    for each in chosen:
        digest.update(b"solution" + each.task + each.sha256)
    return digest.hexdigest()


def store_snapshot(tx: Transaction, round_id: int, chosen: Iterable[Offered]) -> None:
    """The solutions of a new round, in order."""
    rows = [(round_id, each.solution_id, position) for position, each in enumerate(chosen)]
    tx.copy("round_solutions", ("round_id", "solution_id", "position"), rows)


def read(tx: Transaction, round_id: int) -> list[Solution]:
    """The solutions of a round's snapshot, in order."""
    return [Solution(*row) for row in tx.all("round_solutions", round_id=round_id)]


def record_seen(tx: Transaction, round_id: int, seen: Mapping[int, int]) -> None:
    """How often each solution was in a step behind the weights that were published."""
    tx.execute("solutions_seen", round_id=round_id, solution_ids=list(seen), seen=list(seen.values()))


def withdraw(tx: Transaction, *, task_set: str | None, round_id: int | None) -> int:
    """Take back the solutions of a task set, of a reinforcement round, or of both; how many.

    Their texts go; what names them, snapshots and receipts, has their digests. They are not kept again.
    Raises ConfigurationError while an open round trains on one of them.
    """
    about = {"task_set": task_set, "round_id": round_id}
    held = tx.one("solutions_held", **about)
    if held is not None:
        raise ConfigurationError(
            f"round {held.number} of {held.track} is open and trains on solution {held.solution_id}: withdraw"
            " it when the round is closed"
        )
    return tx.execute("withdraw_solutions", **about)


def _limit(recipe: Recipe, most_texts: int) -> int:
    return min(most_texts, recipe.max_contents or most_texts)


def _shingles(found: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(found[at : at + SHINGLE]) for at in range(max(1, len(found) - SHINGLE + 1)))


def _distance(one: frozenset[Any], other: frozenset[Any]) -> float:
    """Jaccard's: 0 of the same sets, 1 of sets that share nothing."""
    return 1 - len(one & other) / max(1, len(one | other))
