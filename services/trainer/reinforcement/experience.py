"""A rollout as an update sees it: actions in a row, their tokens in one more, and batches of both.

What is known of every action is a tensor (A,), of every written token a tensor (N,); an index leads from the
one to the other, so that nothing loops over tokens.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy
import torch

from services.core.errors import ConfigurationError
from services.trainer.engine.batch import Batch, batch_of
from services.trainer.packing import pack
from services.trainer.reinforcement.episodes import Action, Episode
from services.trainer.samples.sample import Sample


@dataclass(frozen=True)
class Part:
    """Some of the actions, laid end to end for one forward pass."""

    batch: Batch  # `learned_at` are the states that predict a written token, action after action
    actions: torch.Tensor  # (a,) int64: which they are, in the order of the batch
    prompt_ends: torch.Tensor  # (a,) int64: where in the batch the last token of each prompt is
    tokens: torch.Tensor  # (n,) int64: which of all N tokens are written here
    owners: torch.Tensor  # (n,) int64: which of these a actions wrote each
    lengths: torch.Tensor  # (a,) float32: how many tokens each wrote here


class Experience:
    """Every action of the episodes, episode after episode."""

    def __init__(
        self, episodes: Sequence[Episode], roles: Sequence[str], on_part: Callable[[], None] = lambda: None
    ) -> None:
        """on_part: a sign of life before every pass. Raises ConfigurationError for a role not in the team."""
        self._on_part = on_part
        self.actions: tuple[Action, ...] = tuple(one for each in episodes for one in each.actions)
        for action in self.actions:
            if action.role not in roles:
                raise ConfigurationError(
                    f"an episode has an action of role {action.role!r}: the team's are {', '.join(roles)}"
                )
        counts = [len(each.actions) for each in episodes]
        self.episodes = numpy.repeat(numpy.arange(len(episodes)), counts)  # (A,)
        self._places = torch.from_numpy(  # (A,): where in a table (E, K) each action stands
            numpy.concatenate([numpy.arange(count) for count in counts]) + self.episodes * max(counts)
        )
        self._table = (len(episodes), max(counts))
        self.rewards = torch.tensor([one for each in episodes for one in each.rewards])  # (A,) float32
        self._groups = [each.group for each in episodes]
        lengths = [len(action.ids) for action in self.actions]
        self.owners = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))  # (N,)
        self._starts = numpy.cumsum([0, *lengths])

    @property
    def tokens(self) -> int:
        """Written by all together: N."""
        return len(self.owners)

    def table(self, each: torch.Tensor) -> torch.Tensor:
        """Of (A,) a row an episode (E, K), filled up with zeros."""
        flat = each.new_zeros(self._table[0] * self._table[1])
        return flat.index_copy(0, self._places, each).view(self._table)

    def row(self, table: torch.Tensor) -> torch.Tensor:
        """Of (E, K) what belongs to actions (A,)."""
        return table.flatten()[self._places]

    def groups(self, chosen: Sequence[int]) -> torch.Tensor:
        """Of these actions (a,) int64: the same number where task, role and turn are the same."""
        keys = [
            (self._groups[self.episodes[at]], self.actions[at].role, self.actions[at].turn) for at in chosen
        ]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return torch.tensor([numbers[key] for key in keys], dtype=torch.int64)

    def recorded(self, chosen: Iterable[int]) -> torch.Tensor | None:
        """Log-probabilities (N,) that were written down for these actions; None if one of them has none."""
        found = torch.zeros(self.tokens)
        for at in chosen:
            logprobs = self.actions[at].logprobs
            if logprobs is None:
                return None
            found[self._starts[at] : self._starts[at + 1]] = torch.tensor(logprobs)
        return found

    def token_indices(self, chosen: Sequence[int]) -> torch.Tensor:
        """Which of all N tokens these actions wrote, action after action."""
        spans = [numpy.arange(self._starts[at], self._starts[at + 1]) for at in chosen]
        return torch.from_numpy(numpy.concatenate(spans) if spans else numpy.zeros(0, dtype=numpy.int64))

    def parts(
        self,
        whole: Sequence[int],
        most_tokens: int,
        device: torch.device,
        *,
        prompts_only: Sequence[int] = (),
    ) -> Iterator[Part]:
        """Actions with what they wrote, others with their prompts alone, so many tokens at once.

        An action is never divided: one that is longer is alone in its part. Densely packed, without padding.
        """
        samples = [self._sample(at, with_ids=True) for at in whole]
        samples += [self._sample(at, with_ids=False) for at in prompts_only]
        if not samples:
            return
        for row in pack(samples, max(most_tokens, *(len(sample.ids) for sample in samples))):
            sizes = [len(sample.ids) for sample in row.samples]
            batch = batch_of([row], 0, max(sizes))
            starts = numpy.cumsum([0, *sizes])[:-1]
            written = [len(sample.ids) - sample.prompt_tokens for sample in row.samples]
            learned = [sample.content_id for sample in row.samples if len(sample.ids) > sample.prompt_tokens]
            ends = torch.from_numpy(starts + [sample.prompt_tokens - 1 for sample in row.samples])
            self._on_part()
            yield Part(
                batch=batch.to(device),
                actions=torch.tensor([sample.content_id for sample in row.samples]).to(device),
                prompt_ends=ends.to(device),
                tokens=self.token_indices(learned).to(device),
                owners=torch.arange(len(written)).repeat_interleave(torch.tensor(written)).to(device),
                lengths=torch.tensor(written, dtype=torch.float32).to(device),
            )

    def _sample(self, at: int, *, with_ids: bool) -> Sample:
        action = self.actions[at]
        ids = action.prompt_ids + action.ids if with_ids else action.prompt_ids
        return Sample(at, ids, len(action.prompt_ids), 0, 0, 0)
