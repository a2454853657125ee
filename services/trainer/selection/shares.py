"""No language and no source above its share of what a round trains on. Pure.

A source's share is of bytes, since one large file poisons as well as many small ones; and of what the round
takes, since a share of what there is would grow with a flood of it. Why it is this way:
docs/decisions/0023-planted-secrets.md
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Protocol, TypeVar

from services.trainer.recipes.recipe import Recipe

PRECISION = 256  # what a source may give is found to this part of it
ROUNDING = 1 + 1e-9


class Content(Protocol):
    """What is asked of a content."""

    @property
    def language(self) -> str: ...
    @property
    def size(self) -> int: ...  # bytes
    @property
    def sources(self) -> tuple[int, ...]: ...  # ids of those that it lies in


T = TypeVar("T", bound=Content)


@dataclass(frozen=True)
class Taken(Generic[T]):
    contents: list[T]
    waiting: Mapping[int, int]  # source → contents that it has beyond its share


def within(ordered: Sequence[T], recipe: Recipe, limit: int, known: Collection[int]) -> Taken[T]:
    """The first `limit` of these, in order, as the recipe shares a round among languages and sources.

    known: sources that share the round though they may have nothing for it. However few others there are, a
    source may have an even share, and one content.
    """
    share = recipe.source_share
    if share is None:
        return Taken(within_shares(ordered, recipe.language_weights, limit), {})
    sources = {source for content in ordered for source in content.sources} | set(known)

    def pick(admits: Callable[[T], bool]) -> list[T]:
        return within_shares(ordered, recipe.language_weights, limit, admits)

    return within_source_share(pick, max(share, 1 / max(1, len(sources))))


def within_shares(
    ordered: Sequence[T],
    weights: Mapping[str, float] | None,
    limit: int,
    admits: Callable[[T], bool] = lambda _: True,
) -> list[T]:
    """The first `limit` of these, in order, no language above its share of them; `*` stands for the others.

    Shares are of the smaller of `limit` and all there are, and among the languages that there are. What a
    language has beyond its share is for later rounds, whatever room the others leave. `admits` is asked of
    each that there is room for, in order.
    """
    if weights is None:
        return list(islice(filter(admits, ordered), limit))
    group = {each.language: each.language if each.language in weights else "*" for each in ordered}
    present = {name: weights.get(name, 0.0) for name in set(group.values())}
    total = sum(present.values())
    size = min(limit, len(ordered))
    left = {name: math.ceil(size * weight / total) if weight else 0 for name, weight in present.items()}
    taken: list[T] = []
    for content in ordered:
        if len(taken) == limit:
            break
        if left[group[content.language]] > 0 and admits(content):
            left[group[content.language]] -= 1
            taken.append(content)
    return taken


def within_source_share(pick: Callable[[Callable[[T], bool]], list[T]], share: float) -> Taken[T]:
    """What `pick` takes when no source gives more than `share` of the bytes taken, but for one content each.

    `pick` asks of each content, in order, whether it is admitted. How much a source may give is searched for
    by halving: as much as is found to keep to the share, which one content of each source always does.
    """

    def tried(most: float) -> tuple[Taken[T], "_Accounts"]:
        accounts = _Accounts(most)
        contents = pick(accounts.admits)
        return Taken(contents, dict(accounts.refused)), accounts

    everything, accounts = tried(math.inf)
    if accounts.keep_to(share):
        return everything
    low, high = 0, max(accounts.given.values())
    best, _ = tried(low)
    while high - low > max(1, low // PRECISION):
        middle = (low + high) // 2
        found, accounts = tried(middle)
        if accounts.keep_to(share):
            low, best = middle, found
        else:
            high = middle
    return best


@dataclass
class _Accounts:
    """What each source has given, and may."""

    most: float  # bytes
    total: int = 0
    given: dict[int, int] = field(default_factory=dict)
    contents: Counter[int] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)

    def admits(self, content: Content) -> bool:
        """Whether one of its sources may still give it: the one that has given least is charged.

        A copy elsewhere thus gives a content more room, never less: nobody uses up another's share by copying
        what is in it.
        """
        if not content.sources:
            return True
        payer = min(content.sources, key=lambda source: (self.given.get(source, 0), source))
        given = self.given.get(payer, 0) + content.size
        if self.contents[payer] and given > self.most:
            self.refused[payer] += 1
            return False
        self.total += content.size
        self.given[payer] = given
        self.contents[payer] += 1
        return True

    def keep_to(self, share: float) -> bool:
        most = share * self.total * ROUNDING
        return all(given <= most or self.contents[source] == 1 for source, given in self.given.items())
