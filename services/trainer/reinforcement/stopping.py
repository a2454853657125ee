"""When a team has collapsed: it has left its base behind, or found nothing for too long. Pure, without torch.

A policy that is pushed too far writes anything; its reward falls to where there is no signal left to come
back by. Between two updates little moves, so that limits on the step (`kl_threshold`, the clip) do not see
it; the distance to the base does.
"""

import math
from dataclasses import dataclass, replace

CHANCE = 1e-4  # that so many episodes in a row fail at the share solved before: less is no bad luck


@dataclass(frozen=True)
class Watch:
    """What the iterations so far have shown."""

    episodes: int = 0  # up to the last iteration with any reward
    rewarded: float = 0.0  # of them, together
    barren: int = 0  # episodes since, none of them rewarded
    reference_kl: float = 0.0  # nats a token, at the last iteration with any reward

    def seen(self, reward: float, episodes: int, reference_kl: float) -> "Watch":
        """After an iteration of so many episodes with this mean reward."""
        if reward <= 0:
            return replace(self, barren=self.barren + episodes)
        so_far = self.episodes + self.barren + episodes
        return Watch(so_far, self.rewarded + reward * episodes, 0, reference_kl)

    @property
    def chance(self) -> float:
        """Of the barren stretch, were the reward's mean still what it was: all or nothing each time."""
        mean = self.rewarded / self.episodes if self.episodes else 0.0
        return (1.0 - min(mean, 1.0)) ** self.barren


def collapse(watch: Watch, reference_kl: float, most: float) -> str | None:
    """Why the team counts as collapsed, None while it does not.

    reference_kl: to the base now, nats a token, of the role that is farthest from it; most: the recipe's
    `max_reference_kl`.
    """
    if not math.isfinite(reference_kl):
        return f"the KL to the base is {reference_kl}"
    if reference_kl > most:
        return f"the KL to the base is {reference_kl:.3g} nats a token, above max_reference_kl {most:g}"
    if watch.chance < CHANCE and reference_kl > watch.reference_kl:
        mean = watch.rewarded / watch.episodes
        return (
            f"no episode of the last {watch.barren} had a reward, before it was {mean:.3f} in the mean, and"
            f" the KL to the base has risen from {watch.reference_kl:.3g} to {reference_kl:.3g} nats a token"
        )
    return None


def advice(learning_rate: float, kl_coef: float) -> str:
    """What helps."""
    return (
        f"lower learning_rate (it is {learning_rate:g}) or raise kl_coef (it is {kl_coef:g}), which holds"
        " the team near its base"
    )
