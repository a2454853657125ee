"""An update: the gradients that the definitions say, in few passes, and of nothing that is not trained."""

import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from services.core.errors import ConfigurationError
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement import policy
from services.trainer.reinforcement.episodes import Action, Episode
from tests.unit.trainer.engine import tiny
from tests.unit.trainer.reinforcement import naive, teams

ALGORITHMS: dict[str, dict[str, Any]] = {
    "appo by token": {"algorithm": "appo", "normalization_mode": "token"},
    "appo by sum, hot, with entropy": {
        "algorithm": "appo", "normalization_mode": "sum", "entropy_coef": 0.1, "temperature": 1.3,
    },
    "tppo": {"algorithm": "tppo"},
    "grpo": {"algorithm": "grpo", "group_size": 2},
}  # fmt: skip


def expected_advantages(learning: teams.Learning, rollout: list[Episode]) -> dict[Action, Any]:
    """By the definitions, in plain Python; appo: a number an action, otherwise a list of one a token."""
    settings = learning.recipe.reinforcement
    model = naive.Model(learning.recipe, learning.weights())
    gained: dict[Action, Any] = {}
    if settings.algorithm == "grpo":
        for episode in rollout:
            for at, action in enumerate(episode.actions):
                alike = [
                    sum(other.rewards[at:]) for other in rollout
                    if other.group == episode.group and len(other.actions) > at
                ]  # fmt: skip
                if max(alike) > min(alike):
                    gained[action] = [sum(episode.rewards[at:]) - sum(alike) / len(alike)] * len(action.ids)
        return gained
    critic = learning.team.critic
    with torch.no_grad():
        for episode in rollout:
            values = [float(critic(model.state(action)[None])) for action in episode.actions]
            found = naive.gae(episode.rewards, values, settings.gamma, settings.gae_lambda)
            for action, advantage, value in zip(episode.actions, found, values, strict=True):
                gained[action] = advantage
                if settings.algorithm == "tppo":
                    gained[action] = [
                        advantage + value - float(v) for v in critic(model.token_states(action))
                    ]
    flat = [x for each in gained.values() for x in (each if isinstance(each, list) else [each])]
    mean = sum(flat) / len(flat)
    spread = max(0.1, (sum((x - mean) ** 2 for x in flat) / len(flat)) ** 0.5)
    return {
        action: [(x - mean) / spread for x in each] if isinstance(each, list) else (each - mean) / spread
        for action, each in gained.items()
    }


def expected_gradients(
    chosen: Recipe,
    now: dict[str, Any],
    then: dict[str, Any],
    rollout: list[Episode],
    gained: dict[Action, Any],
) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    behaviour = naive.Model(chosen, then)
    for role in teams.ROLES:
        model = naive.Model(chosen, now)
        naive.loss(chosen, role, rollout, model, behaviour, gained).backward()
        found |= {name: one.grad for name, one in model.model.named_parameters() if one.grad is not None}
    return found


def assert_close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert max(float(one.abs().max()) for one in expected.values()) > 1e-3
    for name, one in expected.items():
        torch.testing.assert_close(found[name], one, atol=2e-6, rtol=2e-3, msg=name)


@pytest.mark.parametrize("section", ALGORITHMS.values(), ids=ALGORITHMS)
def test_gradients_are_those_of_the_definition(section: dict[str, Any]) -> None:
    """Of each of two steps: on policy, where every ratio is 1, and after a step that moved the weights."""
    learning = teams.Learning(teams.recipe({**section, "ppo_epoch": 2, "turns": 2, "kl_coef": 0.05}))
    rollout = teams.episodes(4, turns=2)
    gained = expected_advantages(learning, rollout)
    figures = learning.update(rollout)
    assert len(learning.gradients) == 2
    before = learning.seen[0]
    for now, found in zip(learning.seen, learning.gradients, strict=True):
        assert_close(found, expected_gradients(learning.recipe, now, before, rollout, gained))
    assert all(each.clip_share > 0 and each.approx_kl > 0 for each in figures.roles.values())


def test_mini_batches_cover_the_rollout_and_know_what_was_thought_before() -> None:
    """The second mini-batch is judged by the policy before the first."""
    learning = teams.Learning(teams.recipe({"num_mini_batch": 2, "kl_coef": 0.0}))
    rollout = teams.episodes()
    gained = expected_advantages(learning, rollout)
    learning.update(rollout, seed=5)
    order = torch.randperm(len(rollout), generator=torch.Generator().manual_seed(5)).tensor_split(2)
    for part, now, found in zip(order, learning.seen, learning.gradients, strict=True):
        chosen = [rollout[at] for at in part.tolist()]
        assert_close(found, expected_gradients(learning.recipe, now, learning.seen[0], chosen, gained))


def test_every_pass_is_heard_of_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign of life: on a GPU an update has no other. The base reads before the first step."""
    learning = teams.Learning(teams.recipe({"num_mini_batch": 2, "ppo_epoch": 2}))
    passes, heard = Passes(monkeypatch), []
    learning.update(teams.episodes(), on_part=lambda *each: heard.append(each))
    assert len(heard) == len(passes.seen)
    assert list(dict.fromkeys(heard)) == [(step, 4) for step in range(5)]


def test_what_a_listener_raises_ends_the_update() -> None:
    def interrupt(*_: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        teams.Learning(teams.recipe()).update(teams.episodes(), on_part=interrupt)


def recorded(learning: teams.Learning, rollout: list[Episode]) -> list[Episode]:
    """With the log-probabilities that the policy had."""
    model = naive.Model(learning.recipe, learning.weights())

    def written(action: Action) -> Action:
        with torch.no_grad():
            return replace(action, logprobs=tuple(model.logprobs(action).tolist()))

    return [replace(each, actions=tuple(map(written, each.actions))) for each in rollout]


class Passes:
    """Counts tokens that go through the layers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, int]] = []  # who, tokens
        through = policy.states

        def counted(team: Any, batch: Any) -> torch.Tensor:
            layer = team._layers[0]
            kind = "base" if layer.disable_adapters else layer.acting
            self.seen.append((f"{kind}{'' if torch.is_grad_enabled() else ', no gradients'}", batch.tokens))
            return through(team, batch)

        monkeypatch.setattr(policy, "states", counted)

    @property
    def who(self) -> list[str]:
        return [who for who, _ in self.seen]


def test_an_update_of_one_step_is_one_pass_of_the_base_and_one_of_each_role(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every row goes through the layers twice: at rest, and once with its role's adapter."""
    learning, rollout = teams.Learning(teams.recipe()), teams.episodes()
    passes = Passes(monkeypatch)
    learning.update(rollout)
    assert passes.who == ["base, no gradients", "analyzer", "coder"]
    rows = sum(len(one.prompt_ids) + len(one.ids) for each in rollout for one in each.actions)
    assert sum(tokens for _, tokens in passes.seen) == 2 * rows


def test_epochs_need_no_pass_for_the_policy_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first epoch's own pass has it."""
    learning, rollout = teams.Learning(teams.recipe({"ppo_epoch": 3})), teams.episodes()
    passes = Passes(monkeypatch)
    learning.update(rollout)
    assert passes.who == ["base, no gradients", *["analyzer", "coder"] * 3]


def test_recorded_logprobs_save_mini_batches_their_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the gradients are the same."""
    section = {"num_mini_batch": 2, "ppo_epoch": 2}
    first, second = teams.Learning(teams.recipe(section)), teams.Learning(teams.recipe(section))
    rollout = teams.episodes()
    first.update(rollout)
    passes = Passes(monkeypatch)
    second.update(recorded(second, rollout))
    assert passes.who == ["base, no gradients", *["analyzer", "coder"] * 4]
    for one, other in zip(first.gradients, second.gradients, strict=True):
        for name, gradient in one.items():
            torch.testing.assert_close(gradient, other[name], atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize("section", [{"kl_threshold": 9.0}, {"normalization_mode": "sum"}])
def test_what_was_recorded_in_bf16_is_computed_again_where_rounding_would_add_up(
    section: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be clipped, or stop the update, before anything is learned."""
    chosen = teams.recipe({"num_mini_batch": 2, **section})
    learning = teams.Learning(chosen, teams.team(chosen, tiny.base(dtype=torch.bfloat16)))
    rollout = recorded(teams.Learning(chosen), teams.episodes())
    passes = Passes(monkeypatch)
    learning.update(rollout)
    before = ["analyzer, no gradients", "coder, no gradients"]
    assert passes.who == ["base, no gradients", *before, *["analyzer", "coder"] * 2]


def test_a_single_step_is_on_policy_whatever_was_recorded() -> None:
    """Rounding in generation is no ratio; it shows in the KL to the policy that wrote."""
    learning = teams.Learning(teams.recipe())
    rollout = recorded(learning, teams.episodes())
    for at, each in enumerate(rollout):
        off = [replace(one, logprobs=tuple(x - 0.1 for x in one.logprobs)) for one in each.actions]
        rollout[at] = replace(each, actions=tuple(off))
    figures = learning.update(rollout).roles["coder"]
    assert figures.ratio_mean == pytest.approx(1)
    assert figures.clip_share == 0
    assert figures.approx_kl == pytest.approx(2.718281828**0.1 - 1 - 0.1, rel=1e-3)


def test_a_frozen_role_acts_and_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of it only the prompts go through the base, for the critic."""
    learning, rollout = teams.Learning(teams.recipe({"frozen_roles": ("analyzer",)})), teams.episodes()
    before, passes = learning.weights(), Passes(monkeypatch)
    figures = learning.update(rollout)
    after = learning.weights()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == set(learning.team.parameters_of("coder"))
    assert set(figures.roles) == {"coder"}
    coder = [one for each in rollout for one in each.actions if one.role == "coder"]
    whole = sum(len(one.prompt_ids) + len(one.ids) for one in coder)
    prompts = sum(len(each.actions[0].prompt_ids) for each in rollout)
    assert passes.seen == [("base, no gradients", whole + prompts), ("coder", whole)]


def test_truncated_answers_are_masked_and_counted() -> None:
    """What they would teach is nothing, whatever their reward is; of the others nothing changes."""
    chosen = random.Random(7)
    rollout = teams.episodes(4)
    cut = teams.action(chosen, "coder", finished=False)
    rollout[0] = replace(rollout[0], actions=(rollout[0].actions[0], cut))
    learning = teams.Learning(teams.recipe({"kl_coef": 0.0}))
    figures = learning.update(rollout)
    other = replace(cut, ids=cut.ids[::-1])
    changed = [replace(rollout[0], actions=(rollout[0].actions[0], other)), *rollout[1:]]
    again = teams.Learning(teams.recipe({"kl_coef": 0.0}))
    again.update(changed)
    assert figures.truncated == 1
    assert figures.roles["coder"].actions == 3
    assert figures.roles["analyzer"].actions == 4
    for name, gradient in learning.gradients[0].items():
        torch.testing.assert_close(gradient, again.gradients[0][name], atol=1e-7, rtol=1e-4)


def test_truncated_answers_may_be_learned_from() -> None:
    """With mask_truncated off."""
    rollout = teams.episodes(4)
    cut = replace(rollout[0].actions[1], finished=False)
    rollout[0] = replace(rollout[0], actions=(rollout[0].actions[0], cut))
    learning = teams.Learning(teams.recipe({"mask_truncated": False}))
    assert learning.update(rollout).roles["coder"].actions == 4


def test_groups_that_are_all_alike_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost no pass either."""
    rollout = teams.episodes(4, group=2)
    rollout[:2] = [replace(each, rewards=(0.0, 1.0)) for each in rollout[:2]]
    learning, passes = (
        teams.Learning(teams.recipe({"algorithm": "grpo", "group_size": 2})),
        Passes(monkeypatch),
    )
    figures = learning.update(rollout)
    assert figures.skipped_groups == 2  # of the analyzer and of the coder
    assert figures.roles["coder"].actions == 2
    rows = sum(len(one.prompt_ids) + len(one.ids) for each in rollout[2:] for one in each.actions)
    assert sum(tokens for _, tokens in passes.seen) == 2 * rows


def test_a_rollout_that_teaches_nothing_changes_nothing() -> None:
    """All groups alike."""
    learning = teams.Learning(teams.recipe({"algorithm": "grpo", "group_size": 2}))
    rollout = [replace(each, rewards=(0.0, 0.0)) for each in teams.episodes(4)]
    before = learning.weights()
    figures = learning.update(rollout)
    assert figures.roles == {}
    assert figures.kl_reference == 0
    assert all(torch.equal(one, before[name]) for name, one in learning.weights().items())


def test_a_policy_that_has_gone_too_far_stops_for_this_update() -> None:
    """The step that would go on from there is not taken; the critic learns on."""
    section = {"ppo_epoch": 4, "kl_threshold": 1e-4}
    learning, rollout = teams.Learning(teams.recipe(section, learning_rate=0.02)), teams.episodes()
    figures = learning.update(rollout)
    assert figures.stopped_early
    for role in figures.roles.values():
        assert role.stopped_early
        assert role.steps == 1
    assert [bool(each) for each in learning.gradients] == [True, False, False, False]
    assert len(learning.optimizers.critic.state[learning.team.critic.out]) == 3
    assert float(learning.optimizers.critic.state[learning.team.critic.out]["step"]) == 4


def test_a_gradient_that_is_not_finite_is_left_out() -> None:
    """And the weights stay finite."""
    learning = teams.Learning(teams.recipe())
    rollout = [replace(each, rewards=(0.0, float("inf"))) for each in teams.episodes(2)]
    before = learning.weights()
    learning.update(rollout)
    assert all(torch.equal(one, before[name]) for name, one in learning.weights().items())


def test_recomputed_layers_have_the_same_gradients() -> None:
    """None is zero, though roles are switched: backward passes end before."""
    rollout = teams.episodes()
    kept = teams.Learning(teams.recipe(recomputation="none"))
    again = teams.Learning(teams.recipe(recomputation="full"))
    assert again.team.recomputes
    kept.update(rollout)
    again.update(rollout)
    for name, gradient in kept.gradients[0].items():
        assert float(gradient.abs().max()) > 0
        assert torch.equal(gradient, again.gradients[0][name])


def test_smaller_parts_have_the_same_gradients() -> None:
    """An action is never divided; parts add up."""
    rollout = teams.episodes()
    whole, parts = teams.Learning(teams.recipe()), teams.Learning(teams.recipe())
    parts.team.most_tokens = 16
    whole.update(rollout)
    parts.update(rollout)
    for name, gradient in whole.gradients[0].items():
        torch.testing.assert_close(gradient, parts.gradients[0][name], atol=1e-6, rtol=1e-3)


def test_running_out_of_memory_begins_the_step_again_with_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """First with fewer tokens, then with layers that are computed again; the step is the same."""
    rollout = teams.episodes()
    whole, short = teams.Learning(teams.recipe()), teams.Learning(teams.recipe())
    whole.update(rollout)
    through = policy.states

    def states(team: Any, batch: Any) -> torch.Tensor:
        if torch.is_grad_enabled() and not team.recomputes:
            raise torch.OutOfMemoryError("made up")
        return through(team, batch)

    monkeypatch.setattr(policy, "states", states)
    short.update(rollout)
    assert short.team.recomputes
    assert short.team.most_tokens < 512
    for name, gradient in whole.gradients[0].items():
        torch.testing.assert_close(gradient, short.gradients[0][name], atol=1e-6, rtol=1e-3)


def test_without_memory_for_one_action_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing left to give."""

    def states(team: Any, batch: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("made up")

    monkeypatch.setattr(policy, "states", states)
    with pytest.raises(torch.OutOfMemoryError):
        teams.Learning(teams.recipe()).update(teams.episodes(2))


def test_the_rates_fall_linearly() -> None:
    """To 0 at the training's end, of adapters and critic."""
    learning = teams.Learning(
        teams.recipe({"use_linear_lr_decay": True, "critic_lr": 0.004}, learning_rate=0.01)
    )
    learning.update(teams.episodes(2), progress=0.75)
    assert learning.optimizers.rates == pytest.approx({"adapters": 0.0025, "critic": 0.001})


def test_the_critic_learns_the_rewards() -> None:
    """Two tasks, one always solved: after some rollouts it explains most of the variance."""
    learning = teams.Learning(teams.recipe({"value_clip": 1.0, "critic_lr": 1e-2}, learning_rate=1e-8))
    rollout = teams.episodes(4)
    first = learning.update(rollout)
    for _ in range(25):
        last = learning.update(rollout)
    assert first.explained_variance < 0.5
    assert last.explained_variance > 0.9


def test_an_update_follows_its_generator_alone() -> None:
    """Bit for bit, whatever else was drawn."""
    section = {"ppo_epoch": 2, "num_mini_batch": 3}
    first, second = teams.Learning(teams.recipe(section)), teams.Learning(teams.recipe(section))
    first.update(teams.episodes(), seed=4)
    torch.manual_seed(99)
    second.update(teams.episodes(), seed=4)
    weights = second.weights()
    assert all(torch.equal(one, weights[name]) for name, one in first.weights().items())


def test_a_role_that_is_not_in_the_team_is_named() -> None:
    """Before anything is computed."""
    rollout = teams.episodes(2)
    stranger = replace(rollout[0].actions[0], role="tester")
    rollout[0] = replace(rollout[0], actions=(stranger, rollout[0].actions[1]))
    with pytest.raises(ConfigurationError, match=r"tester.*analyzer, coder"):
        teams.Learning(teams.recipe()).update(rollout)


def test_figures_are_flat_for_the_ledger() -> None:
    """Means over roles, the largest KL to the base, and each role's own."""
    flat = teams.Learning(teams.recipe()).update(teams.episodes()).as_json()
    assert flat["kl_reference"] == max(flat["kl_reference/analyzer"], flat["kl_reference/coder"]) > 0
    assert flat["entropy"] == pytest.approx((flat["entropy/analyzer"] + flat["entropy/coder"]) / 2)
    assert flat["tokens"] == sum(each.tokens for each in teams.episodes())
    assert all(isinstance(value, int | float) for value in flat.values())
