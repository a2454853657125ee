"""Near duplicates among prompts: what share of their word triples two have in common."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from services.trainer.suites.formats import Task
from services.trainer.tasks.placed import words

TOGETHER = 3  # words in a row
SIMILAR = 0.8  # Jaccard index from which on two prompts ask the same
Triples = frozenset[tuple[str, ...]]


def triples(task: Task) -> Triples:
    """All runs of three words of the prompt; a shorter prompt is one run."""
    found = words(task)
    last = max(1, len(found) - TOGETHER + 1)
    return frozenset(tuple(found[at : at + TOGETHER]) for at in range(last))


def finder(tasks: Sequence[Task]) -> Callable[[Task], Task | None]:
    """A function that finds the task among these that asks what a given one asks, or None."""
    known = [(task, triples(task)) for task in tasks]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, (_, its) in enumerate(known):
        for each in its:
            holders[each].append(number)

    def find(task: Task) -> Task | None:
        its = triples(task)
        shared = Counter(_holders(its, holders))
        for number, common in shared.most_common():
            other, others = known[number]
            if common / (len(its) + len(others) - common) >= SIMILAR:
                return other
        return None

    return find


def _holders(its: Triples, holders: dict[tuple[str, ...], list[int]]) -> Iterable[int]:
    for each in its:
        yield from holders.get(each, ())
