"""What only a GPU shows of a team: captured steps that outlive an update, rounding, memory that runs out."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from services.trainer.generation import Request, graphs
from services.trainer.model import load_base, locate
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement import decoded, policy
from services.trainer.reinforcement.backend import OwnWriter
from services.trainer.reinforcement.episodes import Action, Episode
from services.trainer.reinforcement.experience import Experience
from services.trainer.reinforcement.team import Team
from tests import toy_team
from tests.unit.trainer.reinforcement import teams

ROWS, TOKENS = 24, 40
LONG = 100  # tokens of an answer
REQUEST = Request(TOKENS, temperature=1.0, seed=1, logprobs=True)
ROUNDING = 0.1  # nats of a token: bf16 has 8 bits, and sums are made in another order


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_team.make(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The rows of every graph that is captured."""
    rows: list[int] = []
    capture = graphs.Steps.capture

    def counted(steps: graphs.Steps, batch: Any) -> None:
        rows.append(steps.rows)
        capture(steps, batch)

    monkeypatch.setattr(graphs.Steps, "capture", counted)
    return rows


def made(base: Path, section: dict[str, Any] | None = None, **fields: Any) -> teams.Learning:
    chosen = teams.recipe(section, base_model=str(base), **fields)
    source = locate(str(base), None, base)
    team = Team.fresh(load_base(chosen, source), toy_team.tokenizer(), chosen, teams.PROFILES)
    teams.shake(team)
    return teams.Learning(chosen, team)


def written(learning: teams.Learning, tokens: int = TOKENS) -> list[Episode]:
    """Every role goes on with the same prompts."""
    known = learning.team.tokenizer
    prompts = [known.encode(words + ":") for words in toy_team.SPECIFICATIONS]
    counts = [ROWS // len(prompts)] * len(prompts)
    request = Request(tokens, temperature=1.0, seed=1, logprobs=True)
    of_role = {
        role: OwnWriter(learning.team).write(
            role, prompts, counts, request, on_row=lambda *_: None, on_done=lambda *_: None
        )
        for role in teams.ROLES
    }
    return [
        Episode(
            str(at),
            at,
            tuple(
                Action(
                    role, 0, tuple(prompt), one.action, one.text, True, one.logprobs
                )
                for role in teams.ROLES
                for one in [of_role[role][at][sample]]
            ),
            (0.0, float(sample % 2)),
            False,
            "",
            (),
        )
        for at, prompt in enumerate(prompts)
        for sample in range(counts[at])
    ]  # fmt: skip


def apart(learning: teams.Learning, rollout: list[Episode]) -> torch.Tensor:
    """Of every token written (N,): recorded while writing, less what a pass over the whole text says."""
    team, experience = learning.team, Experience(rollout, teams.ROLES)
    recorded = experience.recorded(range(len(experience.actions)))
    assert recorded is not None
    found = torch.zeros(experience.tokens, device=team.device)
    for role in teams.ROLES:
        at = [n for n, action in enumerate(experience.actions) if action.role == role]
        with team.acting(role), torch.no_grad():
            for part in experience.parts(at, 4096, team.device):
                found[part.tokens] = policy.seen(
                    team, policy.states(team, part.batch), part.batch, 1.0
                ).logprobs
    return recorded - found.cpu()


def test_what_is_recorded_is_what_the_policy_says_before_and_after_an_update(
    base: Path, captures: list[int]
) -> None:
    """One graph writes for both roles, and with the weights of now."""
    learning = made(base)
    for seed in (1, 2):
        rollout = written(learning)
        assert float(apart(learning, rollout).abs().max()) < ROUNDING
        before = learning.weights()
        learning.update(rollout, seed)
        assert any(not torch.equal(one, before[name]) for name, one in learning.weights().items())
    assert len(captures) == len(set(captures))


def test_layers_that_keep_the_forward_of_peft_have_a_graph_a_role(base: Path) -> None:
    learning = made(base, use_dora=True)
    assert learning.team.turns_of("analyzer") is not learning.team.turns_of("coder")
    assert float(apart(learning, written(learning)).abs().max()) < ROUNDING


@pytest.mark.parametrize("algorithm", ["appo", "tppo", "grpo"])
def test_optimizers_come_back_bit_for_bit(base: Path, tmp_path: Path, algorithm: str) -> None:
    """Through files, with the counters where the fused step wants them."""
    first, second = (made(base, {"algorithm": algorithm, "group_size": 2}) for _ in range(2))
    rollout = written(first)
    first.update(rollout, 1)
    first.team.save(tmp_path)
    tensors, numbers = first.optimizers.state()
    save_file({name: one.contiguous() for name, one in tensors.items()}, tmp_path / "o.safetensors")
    second.team.restore(tmp_path)
    second.optimizers.restore(load_file(tmp_path / "o.safetensors"), numbers)
    again, named = second.optimizers.state()
    assert numbers == named
    assert all(torch.equal(one.cpu(), again[name].cpu()) for name, one in tensors.items())
    assert all(one.device == again[name].device for name, one in tensors.items())
    figures = second.update(rollout, 2)
    assert all(math.isfinite(role.policy_loss) for role in figures.roles.values())


def test_decoded_nf4_is_nf4_bit_for_bit(base: Path) -> None:
    """What is decoded once is what bitsandbytes decodes each time; a GPU with room has it so."""
    chosen: Recipe = teams.recipe(method="qlora", base_model=str(base))
    plain = load_base(chosen, locate(str(base), None, base))
    ids = torch.randint(2, 40, (3, 30), device="cuda")
    with torch.no_grad():
        expected = plain(ids).logits
        assert decoded.decode(plain)
        torch.testing.assert_close(plain(ids).logits, expected, atol=0, rtol=0)
    layer = made(base, method="qlora").team.causal_lm.model.layers[0].mlp.up_proj
    assert layer.base_layer.weight.dtype is torch.bfloat16


def test_memory_that_runs_out_is_found_again(base: Path) -> None:
    """What writing keeps goes first; then there is less in a pass; and the update is made."""
    learning = made(base, {"context_window": 20_000}, batch_size=64, target_modules=["q_proj", "v_proj"])
    chosen = random.Random(0)

    def long(episode: Episode) -> Episode:
        ids = tuple(chosen.randrange(2, 40) for _ in range(LONG))
        return replace(
            episode, actions=tuple(replace(one, ids=ids, logprobs=None) for one in episode.actions)
        )

    rollout = [long(episode) for episode in written(learning) for _ in range(100)]
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    limit = torch.cuda.memory_reserved() + 400 * 2**20
    torch.cuda.set_per_process_memory_fraction(limit / total)
    try:
        figures = learning.update(rollout)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    asked = 64 * (20_000 + learning.recipe.reinforcement.max_new_tokens)
    assert learning.team.most_tokens is not None
    assert learning.team.most_tokens < asked
    assert figures.tokens == sum(episode.tokens for episode in rollout)


@pytest.mark.parametrize("shape", [(2, 3, 5, 2, 16), (1, 7, 12, 2, 128), (3, 1, 5, 5, 24)])
def test_fused_kernels_compute_what_is_written_of_them(shape: tuple[int, ...]) -> None:
    """Forward and backward, laid out as attention has it; heads and widths that are no powers of two too."""
    from services.trainer.engine import fused_kernels, fusing

    batch, length, heads, kv_heads, width = shape
    torch.manual_seed(0)

    def laid(count: int) -> torch.Tensor:
        return torch.randn(batch, length, count, width, device="cuda").transpose(1, 2)

    angles = torch.randn(1, length, width // 2, device="cuda").repeat(1, 1, 2)
    q, k, d_q, d_k = laid(heads), laid(kv_heads), laid(heads), laid(kv_heads)
    gate, up, slope = laid(heads), laid(heads), laid(heads)
    for inputs, slopes, plain, fused in (
        (
            (q, k), (d_q, d_k),
            lambda q, k: fusing.rotated_plainly(q, k, angles.cos(), angles.sin()),
            lambda q, k: fused_kernels.rotated(q, k, angles.cos(), angles.sin()),
        ),
        (
            (gate, up), (slope,),
            lambda gate, up: (fusing.gated_plainly(gate, up),),
            lambda gate, up: (fused_kernels.gated(gate, up),),
        ),
    ):  # fmt: skip
        found = []
        for way in (plain, fused):
            leaves = [one.detach().clone().requires_grad_() for one in inputs]
            out = way(*leaves)
            torch.autograd.backward(out, slopes)
            found.append([*(one.detach() for one in out), *(one.grad for one in leaves)])
        with torch.no_grad():
            found.append([*fused(*inputs), *found[0][len(slopes) :]])
        for others in found[1:]:
            torch.testing.assert_close(others, found[0], atol=2e-5, rtol=1e-4)


def test_a_team_on_a_gpu_is_fused(base: Path) -> None:
    layer = made(base).team.causal_lm.model.layers[0]
    assert "forward" in vars(layer.mlp)
    assert "forward" in vars(layer.self_attn)
    assert "forward" in vars(layer.input_layernorm)
