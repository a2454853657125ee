"""One update of a team from the episodes of a rollout: observe, weigh, then step by step.

The base sees every row once, for the reference and for the critic's features. A step is one forward and one
backward pass of each role over its own rows. docs/explanation/reinforcement.md counts what that comes to.
"""

import logging
from collections.abc import Callable, Collection, Sequence

import torch

from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement import losses, observing, policy, weighing
from services.trainer.reinforcement.critic import value_loss
from services.trainer.reinforcement.episodes import Episode
from services.trainer.reinforcement.experience import Experience, Part
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.room import Room
from services.trainer.reinforcement.team import Team
from services.trainer.reinforcement.update_figures import SUMMED, RoleFigures, Step, Sums, UpdateFigures
from services.trainer.reinforcement.weighing import Values

__all__ = ["RoleFigures", "UpdateFigures", "update"]

log = logging.getLogger(__name__)
OnPart = Callable[[int, int], None]  # the step that is taken, 0 before the first; of how many


def update(
    team: Team,
    episodes: Sequence[Episode],
    optimizers: Optimizers,
    settings: Reinforcement,
    recipe: Recipe,
    generator: torch.Generator,
    progress: float,
    on_part: OnPart = lambda *_: None,
) -> UpdateFigures:
    """Learn from a rollout, `ppo_epoch` times in `num_mini_batch` steps; what came of it.

    generator: of the order of episodes, which is all that is random; progress: the share of the training
    that is done, in [0, 1), for the learning rates; on_part: heard before every pass, what it raises goes
    through. The log-probabilities of before are those of the first step's own pass; further mini-batches of
    the first epoch have the recorded ones if every action has them. Raises ValueError without an episode,
    ConfigurationError for a role that is not in the team.
    """
    if not episodes:
        raise ValueError("a rollout without an episode: expected one at least")
    optimizers.set_progress(progress)
    steps = _Steps(team, episodes, optimizers, settings, recipe, on_part)
    epochs = [
        torch.randperm(len(episodes), generator=generator).tensor_split(
            min(settings.num_mini_batch, len(episodes))
        )
        for _ in range(settings.ppo_epoch)
    ]
    mini_batches = [set(part.tolist()) for epoch in epochs for part in epoch]
    steps.remember(mini_batches, len(epochs[0]))
    for number, mini_batch in enumerate(mini_batches):
        steps.take(mini_batch, is_first=number == 0)
    return steps.figures()


class _Steps:
    """The optimizer steps of one update, and what all of them share."""

    def __init__(
        self,
        team: Team,
        episodes: Sequence[Episode],
        optimizers: Optimizers,
        settings: Reinforcement,
        recipe: Recipe,
        on_part: OnPart,
    ) -> None:
        self._taken = 0
        steps = settings.ppo_epoch * min(settings.num_mini_batch, len(episodes))
        self._team, self._optimizers = team, optimizers
        self._settings, self._recipe = settings, recipe
        self._clip = losses.Clip(settings.clip_param, settings.clip_high)
        self._room = Room(team, recipe.batch_size * (settings.context_window + settings.max_new_tokens))
        self._experience = experience = Experience(episodes, team.roles, lambda: on_part(self._taken, steps))
        self._sums = {role: Sums() for role in optimizers.roles}
        self._value_losses: list[torch.Tensor] = []
        roles = set(optimizers.roles)
        chosen = weighing.eligible(experience, roles, settings)
        if team.critic is None:
            self._weighed = weighing.by_groups(experience, chosen, roles, settings)
            chosen = self._weighed.learned
        self._observed = observing.observe(team, experience, chosen, settings, self._room)
        if team.critic is not None:
            self._values = self._expected()
            self._weighed = weighing.by_values(experience, chosen, self._values, settings)
        self._advantages = self._weighed.advantages.to(team.device)
        self._before = torch.zeros(experience.tokens, device=team.device)  # log-probs of who wrote (N,)
        self._written: torch.Tensor | None = None  # (N,): the same as recorded, only to be told

    def remember(self, mini_batches: Sequence[Collection[int]], first_epoch: int) -> None:
        """What the policies thought before the first step, as far as steps after it will ask.

        The first step has it from its own forward pass, the first epoch's others from what was recorded,
        or from a pass without gradients.
        """
        recorded = self._experience.recorded(self._weighed.learned)
        if recorded is not None and len(mini_batches) == 1:
            self._written = recorded.to(self._team.device)
        later = set[int]().union(*mini_batches[1:first_epoch])
        if recorded is not None and later and self._is_near_enough():
            self._before = recorded.to(self._team.device)
            return
        for role in self._sums:
            if chosen := self._learned(role, later):
                self._before += observing.logprobs(
                    self._team, role, self._experience, chosen, self._settings.temperature, self._room
                )

    def _is_near_enough(self) -> bool:
        """Whether rounding between writing and learning does not matter: in bf16 some 0.04 nats a token.

        Summed over an answer that would be clipped, and its KL above a threshold, before anything is learned.
        """
        by_sum = self._settings.algorithm == "appo" and self._settings.normalization_mode == "sum"
        is_exact = self._team.causal_lm.get_input_embeddings().weight.dtype is torch.float32
        return is_exact or not (by_sum or self._settings.kl_threshold)

    def take(self, mini_batch: Collection[int], *, is_first: bool) -> None:
        """Every policy's step on these episodes, and the critic's."""
        self._taken += 1
        for role, sums in self._sums.items():
            chosen = self._learned(role, mini_batch)
            if chosen and not sums.stopped_early:
                self._learn(role, chosen, on_policy=is_first)
        self._optimizers.adapters.step()
        self._optimizers.adapters.zero_grad(set_to_none=True)
        if self._team.critic is not None:
            self._learn_values(mini_batch)

    def figures(self) -> UpdateFigures:
        actions = self._experience.actions
        of_roles = {}
        for role, sums in self._sums.items():
            learned = [at for at in self._weighed.learned if actions[at].role == role]
            if learned:
                of_roles[role] = sums.figures(
                    actions=len(learned),
                    tokens=sum(len(actions[at].ids) for at in learned),
                    truncated=self._truncated(role),
                )
        losses_ = torch.stack(self._value_losses).mean().item() if self._value_losses else None
        return UpdateFigures(
            roles=of_roles,
            value_loss=losses_,
            explained_variance=self._weighed.explained,
            skipped_groups=self._weighed.skipped_groups,
            truncated=sum(map(self._truncated, self._sums)),
            tokens=self._experience.tokens,
        )

    def _expected(self) -> Values:
        """The critic's, before it learns."""
        critic, observed = self._team.critic, self._observed
        assert critic is not None
        with torch.no_grad():
            of_actions = critic(observed.features)
            of_tokens = None if observed.token_features is None else critic(observed.token_features)
        return Values(of_actions.cpu(), None if of_tokens is None else of_tokens.cpu())

    def _learned(self, role: str, episodes: Collection[int]) -> tuple[int, ...]:
        """The role's actions in these episodes that it learns from."""
        of, actions = self._experience.episodes, self._experience.actions
        return tuple(at for at in self._weighed.learned if actions[at].role == role and of[at] in episodes)

    def _truncated(self, role: str) -> int:
        masked = self._settings.mask_truncated
        return sum(masked and one.role == role and not one.finished for one in self._experience.actions)

    def _learn(self, role: str, chosen: tuple[int, ...], *, on_policy: bool) -> None:
        """Gradients of one policy's step, unless it has gone too far or they are not finite."""
        parameters = list(self._optimizers.roles[role].values())
        tokens = sum(len(self._experience.actions[at].ids) for at in chosen)
        units = len(chosen) if self._settings.algorithm == "appo" else tokens

        def work() -> torch.Tensor:
            for parameter in parameters:
                parameter.grad = None
            sums = torch.zeros(len(SUMMED), device=self._team.device)
            most = self._room.tokens(gradients=True)
            for part in self._experience.parts(chosen, most, self._team.device):
                surrogate, tokenwise, own = self._losses(part, on_policy=on_policy)
                (surrogate / units + tokenwise / tokens).backward()
                sums += own
            return sums

        with self._team.acting(role):
            sums = self._room.within(work)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self._recipe.max_grad_norm)
        *found, norm_found = torch.cat([sums, norm.detach()[None]]).tolist()
        step = Step(**dict(zip(SUMMED, found, strict=True)), norm=norm_found, units=units, tokens=tokens)
        mine, most_kl = self._sums[role], self._settings.kl_threshold
        if not step.is_finite:
            log.warning("%s: a gradient of norm %s is left out: it is not finite", role, norm_found)
        elif most_kl is not None and not on_policy and step.approx / tokens > most_kl:
            mine.stopped_early = True
        mine.add(step, taken=step.is_finite and not mine.stopped_early)
        if not step.is_finite or mine.stopped_early:
            for parameter in parameters:
                parameter.grad = None

    def _losses(self, part: Part, *, on_policy: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Of a part: the surrogate, what else a token costs, both summed, and the sums that are told (6,)."""
        settings, learn_entropy = self._settings, self._settings.entropy_coef > 0
        hidden = policy.states(self._team, part.batch)
        new, entropy = policy.seen(
            self._team, hidden, part.batch, settings.temperature, learn_entropy=learn_entropy
        )
        now = new.detach()
        if on_policy:  # every ratio is 1
            self._before[part.tokens] = now
        old = self._before[part.tokens]
        behaviour = old if self._written is None else self._written[part.tokens]
        if settings.algorithm == "appo":
            by_mean = settings.normalization_mode == "token"
            actions = losses.Actions(part.owners, part.lengths, by_mean=by_mean)
            gained = self._advantages[part.actions]
            surrogate = losses.action_surrogate(new, old, gained, self._clip, actions)
        else:
            surrogate = losses.token_surrogate(new, old, self._advantages[part.tokens], self._clip)
        distance = losses.kl(new, self._observed.reference[part.tokens]).sum()
        tokenwise = settings.kl_coef * distance
        if learn_entropy:
            tokenwise = tokenwise - settings.entropy_coef * entropy.sum()
        sums = (*surrogate, entropy.sum(), distance, losses.kl(behaviour, now).sum())
        return surrogate.loss, tokenwise, torch.stack([each.detach().float() for each in sums])

    def _learn_values(self, mini_batch: Collection[int]) -> None:
        """The critic's step: states at the ends of prompts, for TPPO also those before each token."""
        critic, optimizer, settings = self._team.critic, self._optimizers.critic, self._settings
        assert critic is not None
        assert optimizer is not None
        of, device = self._experience.episodes, self._team.device
        actions = torch.tensor([at for at, episode in enumerate(of) if episode in mini_batch])
        features, before = self._observed.features[actions.to(device)], self._values.of_actions[actions]
        returns = self._weighed.returns[actions]
        if self._observed.token_features is not None and self._values.of_tokens is not None:
            learned = [at for at in self._weighed.learned if of[at] in mini_batch]
            tokens = self._experience.token_indices(learned)
            features = torch.cat([features, self._observed.token_features[tokens.to(device)]])
            before = torch.cat([before, self._values.of_tokens[tokens]])
            returns = torch.cat([returns, self._weighed.returns[self._experience.owners[tokens]]])
        clip = settings.value_clip if settings.use_clipped_value_loss else None
        loss = value_loss(
            critic(features), before.to(device), returns.to(device), settings.huber_delta, clip
        ).mean()
        optimizer.zero_grad(set_to_none=True)
        (settings.value_loss_coef * loss).backward()
        torch.nn.utils.clip_grad_norm_(critic.parameters(), self._recipe.max_grad_norm)
        optimizer.step()
        self._value_losses.append(loss.detach())
