"""A team: who acts, what is kept of it, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file

from services.core.errors import ConfigurationError, RoundError, UnsafeAdapterError
from services.trainer.engine.compute import Compute
from services.trainer.generation import Request, complete
from services.trainer.model import load_base, locate
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement import policy
from services.trainer.reinforcement.episodes import Action, Episode
from services.trainer.reinforcement.experience import Experience
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.profiles import Profile, check
from services.trainer.reinforcement.team import Team
from tests import toy_team
from tests.unit.trainer.engine import tiny
from tests.unit.trainer.reinforcement import naive, teams

IDS = torch.arange(3, 40)[None]  # (1, T)


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    return model(IDS).logits


@torch.no_grad()
def acting(team: Team, role: str) -> torch.Tensor:
    with team.acting(role):
        return logits(team.model)


@pytest.fixture(scope="module")
def team() -> Team:
    return teams.team(teams.recipe())


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_logprobs_are_those_of_plain_transformers_and_peft(family: str) -> None:
    """Of each role and of the base, packed and in chunks, hot too."""
    chosen = teams.recipe({"temperature": 0.8})
    learning = teams.Learning(chosen, teams.team(chosen, tiny.base(family)))
    rollout = teams.episodes(3)
    model, experience = (
        naive.Model(chosen, learning.weights(), tiny.base(family)),
        Experience(rollout, teams.ROLES),
    )
    for role in (*teams.ROLES, None):
        acts = learning.team.at_rest() if role is None else learning.team.acting(role)
        at = [n for n, action in enumerate(experience.actions) if role in {None, action.role}]
        found = torch.zeros(experience.tokens)
        with acts, torch.no_grad():
            for part in experience.parts(at, 40, learning.team.device):
                hidden = policy.states(learning.team, part.batch)
                found[part.tokens] = policy.seen(learning.team, hidden, part.batch, 0.8).logprobs
            expected = [model.logprobs(experience.actions[n], base=role is None) for n in at]
        torch.testing.assert_close(
            found[experience.token_indices(at)], torch.cat(expected), atol=1e-5, rtol=1e-5
        )


def test_a_fresh_team_is_the_base() -> None:
    """Every role of it; adapters begin the same whatever came before, and differ between roles."""
    fresh = teams.team(teams.recipe(), std=0)
    for role in fresh.roles:
        torch.testing.assert_close(acting(fresh, role), logits(tiny.base()))
    torch.manual_seed(99)
    again = teams.team(teams.recipe(), std=0)
    first, second = fresh.parameters_of("analyzer"), again.parameters_of("analyzer")
    assert all(torch.equal(one, second[name]) for name, one in first.items())
    ours = next(iter(first.values()))
    assert not torch.equal(ours, next(iter(fresh.parameters_of("coder").values())))


def test_acting_changes_no_weight(team: Team) -> None:
    """A copy of who acts is a copy, in float32 too."""
    before = {
        role: [one.detach().clone() for one in team.parameters_of(role).values()] for role in team.roles
    }
    for role in ("coder", "analyzer", "coder"):
        acting(team, role)
    for role, weights in before.items():
        assert all(map(torch.equal, weights, team.parameters_of(role).values()))


def test_roles_differ_and_come_back(team: Team) -> None:
    """Also one within the other."""
    analyzer, coder = acting(team, "analyzer"), acting(team, "coder")
    assert (analyzer - coder).abs().max() > 0.1
    with team.acting("analyzer"):
        assert torch.equal(acting(team, "coder"), coder)
        assert torch.equal(logits(team.model), analyzer)


def test_at_rest_the_team_is_the_base(team: Team) -> None:
    """And afterwards who acted before acts."""
    with team.acting("coder"):
        before = logits(team.model)
        with team.at_rest():
            torch.testing.assert_close(logits(team.model), logits(tiny.base()))
        assert torch.equal(logits(team.model), before)


def test_with_and_without_gradients_the_policy_is_the_same(team: Team) -> None:
    """Not a bit apart: what is trained is what wrote."""
    with team.acting("coder"):
        assert torch.equal(team.model(IDS).logits, logits(team.model))


def test_what_was_recorded_in_writing_is_what_an_update_sees() -> None:
    """Of both roles, at the temperature they wrote at, before and after weights moved."""
    known, chosen = toy_team.tokenizer(), teams.recipe({"temperature": 0.9})
    made = Team.fresh(toy_team.untrained(), known, chosen, teams.PROFILES)
    for seed in (1, 2):
        teams.shake(made, std=0.2, seed=seed)
        for role in made.roles:
            prompt = tuple(known.encode("double:"))
            request = Request(8, temperature=0.9, logprobs=True, seed=seed)
            with made.acting(role):
                [[written]] = complete(made.model, known, [prompt], request)
            action = Action(role, 0, prompt, written.action, "", finished=True, logprobs=written.logprobs)
            episode = Episode("t", 0, (action,), (0.0,), solved=False, result="", programs=())
            [part] = Experience([episode], made.roles).parts((0,), 64, made.device)
            with made.acting(role):
                seen = policy.seen(made, policy.states(made, part.batch), part.batch, 0.9)
            assert seen.logprobs.tolist() == pytest.approx(written.logprobs, abs=1e-5)


def test_every_adapter_stays_trainable(team: Team) -> None:
    """PEFT freezes all but the active one."""
    acting(team, "coder")
    with team.at_rest():
        pass
    for role in team.roles:
        parameters = team.parameters_of(role).values()
        assert all(one.requires_grad and one.dtype is torch.float32 for one in parameters)
    assert not any(one.requires_grad for name, one in team.model.named_parameters() if "lora_" not in name)


def test_parameters_belong_to_one_role(team: Team) -> None:
    """None to two of them, none to nobody."""
    every = [name for role in team.roles for name in team.parameters_of(role)]
    adapters = [name for name, _ in team.model.named_parameters() if "lora_" in name]
    assert sorted(every) == sorted(adapters)


def test_a_team_of_one_can_be_measured_by_the_engine() -> None:
    """Whose united products would no longer follow the weights."""
    only = (Profile("coder", "Write.", with_answer=True),)
    chosen = teams.recipe({"profiles": only})
    alone = Team.fresh(tiny.base(), None, chosen, only)
    Compute(alone.model)
    teams.shake(alone)
    assert (acting(alone, "coder") - logits(tiny.base())).abs().max() > 0.1


@pytest.mark.parametrize(
    "fields", [{}, {"use_dora": True}, {"use_rslora": True}], ids=["lora", "dora", "rslora"]
)
def test_a_saved_team_is_what_peft_loads(fields: dict[str, Any], tmp_path: Path) -> None:
    """Each role's folder by itself, on the plain base; and loaded again it is the same team."""
    chosen = teams.recipe(**fields)
    first = teams.team(chosen)
    first.save(tmp_path)
    for role in first.roles:
        served = PeftModel.from_pretrained(tiny.base(), str(tmp_path / role)).eval()
        torch.testing.assert_close(logits(served), acting(first, role), atol=1e-5, rtol=1e-5)
    second = Team.load(tiny.base(), None, chosen, teams.PROFILES, tmp_path)
    for role in first.roles:
        torch.testing.assert_close(acting(second, role), acting(first, role))
        assert all(one.requires_grad for one in second.parameters_of(role).values())
    assert second.critic is not None
    assert torch.equal(second.critic.out, first.critic.out)


def test_restoring_keeps_the_tensors_that_optimizers_hold(tmp_path: Path) -> None:
    """A resumed training moves what it restored."""
    team = teams.team(teams.recipe())
    team.save(tmp_path)
    wanted, held = acting(team, "coder"), team.parameters_of("coder")
    teams.shake(team, seed=9)
    assert not torch.equal(acting(team, "coder"), wanted)
    team.restore(tmp_path)
    assert torch.equal(acting(team, "coder"), wanted)
    assert all(one is held[name] for name, one in team.parameters_of("coder").items())


def test_a_team_without_a_critic_has_none_on_disk(tmp_path: Path) -> None:
    """GRPO; what has one of its own keeps it when it restores such a folder."""
    alone = teams.team(teams.recipe({"algorithm": "grpo"}))
    assert alone.critic is None
    alone.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["analyzer", "coder"]
    Team.load(tiny.base(), None, teams.recipe(), teams.PROFILES, tmp_path)


def test_other_roles_are_refused(tmp_path: Path) -> None:
    """By both names."""
    teams.team(teams.recipe()).save(tmp_path)
    (tmp_path / "coder").rename(tmp_path / "tester")
    with pytest.raises(ConfigurationError, match=r"adapters of analyzer, tester: expected analyzer, coder"):
        Team.load(tiny.base(), None, teams.recipe(), teams.PROFILES, tmp_path)


def test_adapters_of_another_base_are_refused(tmp_path: Path) -> None:
    """By what their shapes say."""
    teams.team(teams.recipe()).save(tmp_path)
    path = tmp_path / "coder" / "adapter_model.safetensors"
    save_file({name: torch.cat([one, one], -1) for name, one in load_file(path).items()}, path)
    with pytest.raises(UnsafeAdapterError, match=r"coder.*"):
        Team.load(tiny.base(), None, teams.recipe(), teams.PROFILES, tmp_path)


@pytest.mark.parametrize("name", ["coder/adapter_model.safetensors", "critic/value_head.safetensors"])
def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    """Cut off in the middle, as a crash leaves it."""
    team = teams.team(teams.recipe())
    team.save(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RoundError, match=Path(name).name):
        team.restore(tmp_path)


def test_tensors_of_another_shape_are_not_restored(tmp_path: Path) -> None:
    """And nothing is half restored: shapes are compared first."""
    teams.team(teams.recipe(lora_r=2)).save(tmp_path)
    with pytest.raises(RoundError, match="other tensors"):
        teams.team(teams.recipe()).restore(tmp_path)


def test_a_role_that_is_not_in_the_team_cannot_act(team: Team) -> None:
    """Nor has it parameters."""
    for asked in (team.parameters_of, lambda role: team.acting(role).__enter__()):
        with pytest.raises(ConfigurationError, match=r"'tester' is not in the team: it has analyzer, coder"):
            asked("tester")


def test_the_output_layer_has_no_adapter() -> None:
    """Its logits are made in parts, from its plain weight."""
    with pytest.raises(ConfigurationError, match="output layer"):
        teams.team(teams.recipe(target_modules=["q_proj", "lm_head"]))


def test_qlora_learns_on_nf4(tmp_path: Path) -> None:
    """Gradients of both roles and in all of their matrices, with layers computed again; a step moves them."""
    plain = tiny.base()
    plain.config.bos_token_id = plain.config.eos_token_id = None
    plain.save_pretrained(tmp_path)
    chosen = teams.recipe(method="qlora", base_model=str(tmp_path), recomputation="full")
    made = teams.team(chosen, load_base(chosen, locate(str(tmp_path), None, tmp_path)))
    assert made.causal_lm.model.layers[0].mlp.up_proj.base_layer.weight.dtype is torch.uint8
    learning = teams.Learning(chosen, made)
    rollout = teams.episodes(4)
    before = learning.weights()
    figures = learning.update(rollout)
    after = learning.weights()
    assert set(learning.gradients[0]) == set(before)
    assert all(float(one.abs().max()) > 0 for one in learning.gradients[0].values())
    assert not any(torch.equal(one, after[name]) for name, one in before.items())
    assert figures.kl_reference > 0


def test_optimizers_resume_bit_for_bit(tmp_path: Path) -> None:
    """Two updates at a stretch, or with another process between them."""
    whole, first, second = (teams.Learning(teams.recipe({"ppo_epoch": 2})) for _ in range(3))
    for seed in (1, 2):
        whole.update(teams.episodes(4, seed=seed), seed)
    first.update(teams.episodes(4, seed=1), 1)
    first.team.save(tmp_path)
    tensors, numbers = first.optimizers.state()
    save_file({name: one.contiguous() for name, one in tensors.items()}, tmp_path / "optimizers.safetensors")
    second.team.restore(tmp_path)
    second.optimizers.restore(load_file(tmp_path / "optimizers.safetensors"), numbers)
    second.update(teams.episodes(4, seed=2), 2)
    weights = second.weights()
    assert all(torch.equal(one, weights[name]) for name, one in whole.weights().items())
    assert torch.equal(second.team.critic.out, whole.team.critic.out)


def test_frozen_roles_have_no_optimizer() -> None:
    """And no state."""
    chosen = teams.recipe({"frozen_roles": ("analyzer",)})
    optimizers = Optimizers(teams.team(chosen), chosen)
    assert set(optimizers.roles) == {"coder"}
    assert {group["role"] for group in optimizers.adapters.param_groups} == {"coder"}


ANALYZER, CODER = teams.PROFILES


@pytest.mark.parametrize(
    ("profiles", "said"),
    [
        ((), "expected one agent at least"),
        ((CODER, CODER), "'coder' is there twice"),
        ((ANALYZER,), "none"),
        ((CODER, ANALYZER), r"for \['coder'\].*last agent alone, analyzer"),
        ((Profile("critic", "x", with_answer=True),), "'critic'.*none of base, critic"),
        ((Profile("a/b", "x", with_answer=True),), "'a/b'"),
        ((Profile("lora", "x", with_answer=True),), "'lora'"),
        ((Profile("coder", " ", with_answer=True),), "prompt of coder is empty"),
    ],
)
def test_profiles_that_make_no_team_are_refused(profiles: tuple[Profile, ...], said: str) -> None:
    """The role and what is wrong with it are named."""
    with pytest.raises(ConfigurationError, match=said):
        check(profiles)


def test_full_training_and_pissa_are_refused() -> None:
    """A team is adapters that begin at the base."""
    for fields in ({"method": "full"}, {"init_lora_weights": "pissa"}):
        chosen = Recipe.model_construct(**{**teams.recipe().__dict__, **fields})
        with pytest.raises(ConfigurationError, match=next(iter(fields.values()))):
            teams.team(chosen)
