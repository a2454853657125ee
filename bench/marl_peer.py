"""The authors' way of an iteration, to be timed beside ours: MARFT, July 2025 (arXiv 2504.16129).

Written anew from what their code does, with its costs: transformers' `generate` over all threads for one
agent after another (or, `per_thread`, a call for every agent and thread), programs tested one after the
other, log-probabilities from whole float32 logits with every forward run twice and one of the two thrown
away, loops over threads and agents in Python, and the critic's frozen backbone run again for every epoch and
mini-batch. What made it slower without being its way is left out: one copy of the base here, theirs is one
an agent, and no emptying of the cache at every step. What is drawn is drawn at temperature 1 from all tokens.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig, get_peft_model

from services.core.sandbox import Program
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement.prompting import Prompting
from services.trainer.reinforcement.rewards import Runner
from services.trainer.suites.formats import Task
from services.trainer.suites.references import program_of

numbers = itertools.count()
MOST_KL = 1e-3  # theirs, above which a step is skipped


@dataclass(frozen=True)
class Batch:
    """A rollout; lists have an item an agent."""

    prompts: list[torch.Tensor]  # (B, P) int64, padded on the left
    masks: list[torch.Tensor]
    actions: list[torch.Tensor]  # (B, new tokens) int64
    log_probs: torch.Tensor  # (B, agents)
    values: torch.Tensor  # (B, agents)
    advantages: torch.Tensor
    returns: torch.Tensor

    @property
    def tokens(self) -> int:
        return sum(one.numel() for one in self.actions)


class Authors:
    """Two agents and a critic, on one base."""

    def __init__(
        self, base: Any, tokenizer: Any, recipe: Recipe, prompting: Prompting, runner: Runner,
        *, per_thread: bool,
    ) -> None:  # fmt: skip
        self._settings, self._prompting, self._runner = section(recipe), prompting, runner
        self._tokenizer, self._per_thread, self._rate = tokenizer, per_thread, recipe.max_grad_norm
        base.set_attn_implementation("sdpa")
        base.enable_input_require_grads()
        config = LoraConfig(
            r=recipe.lora_r, lora_alpha=recipe.lora_alpha, target_modules=list(recipe.target_modules),
            task_type="CAUSAL_LM",
        )  # fmt: skip
        first, *others = self._settings.roles
        self._model = get_peft_model(base, config, adapter_name=first)
        for role in others:
            self._model.add_adapter(role, config)
        hidden = base.config.hidden_size
        self._head = torch.nn.Sequential(
            torch.nn.Linear(hidden, 1024, bias=False), torch.nn.ReLU(),
            torch.nn.Linear(1024, 512, bias=False), torch.nn.ReLU(),
            torch.nn.Linear(512, 1, bias=False),
        ).to(base.device)  # fmt: skip
        self._optimizers = {
            role: torch.optim.AdamW(self._own(role), lr=recipe.learning_rate, eps=1e-5, weight_decay=0)
            for role in self._settings.roles
        }
        self._critic = torch.optim.Adam(self._head.parameters(), lr=self._settings.critic_lr, eps=1e-5)

    def rollout(self, tasks: Sequence[Task]) -> Batch:
        """An episode of every task."""
        device = self._model.device
        said: list[list[str]] = [[] for _ in tasks]
        prompts, masks, actions = [], [], []
        for profile in self._settings.profiles:
            rows = [
                self._prompting(profile, task, texts, None, None)
                for task, texts in zip(tasks, said, strict=True)
            ]
            ids, mask = (one.to(device) for one in self._padded(rows))
            written = self._generate(profile.role, ids, mask)
            for row, texts in enumerate(said):
                texts.append(self._tokenizer.decode(written[row], skip_special_tokens=True))
            prompts.append(ids)
            masks.append(mask)
            actions.append(written)
        rewards = self._rewards(tasks, [texts[-1] for texts in said])
        with torch.no_grad():
            values = self._values(prompts, masks)
            log_probs, _ = self._log_probs(prompts, masks, actions)
        returns = rewards[:, None].to(device).expand_as(values)
        return Batch(prompts, masks, actions, log_probs, values, returns - values, returns)

    def update(self, batch: Batch) -> None:
        """Every epoch's mini-batches."""
        rows = len(batch.returns)
        for _ in range(self._settings.ppo_epoch):
            for chosen in torch.randperm(rows).chunk(self._settings.num_mini_batch):
                self._step(batch, chosen.to(batch.returns.device))

    def _step(self, batch: Batch, chosen: torch.Tensor) -> None:
        prompts, masks, actions = (
            [one[chosen] for one in each] for each in (batch.prompts, batch.masks, batch.actions)
        )
        self._critic.zero_grad()
        error = self._values(prompts, masks) - batch.returns[chosen]
        error.square().mean().backward()
        self._critic.step()

        for optimizer in self._optimizers.values():
            optimizer.zero_grad()
        log_probs, entropies = self._log_probs(prompts, masks, actions)
        log_ratio = log_probs - batch.log_probs[chosen]
        ratio, advantages = log_ratio.exp(), batch.advantages[chosen]
        advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
        low, high = 1 - self._settings.clip_param, 1 + self._settings.clip_param
        loss = torch.max(-ratio * advantages, -ratio.clamp(low, high) * advantages).mean()
        (loss - 0.01 * entropies.mean()).backward()
        if float(((ratio - 1) - log_ratio).mean()) > MOST_KL:
            return  # theirs has computed it all by now, too
        for role, optimizer in self._optimizers.items():
            torch.nn.utils.clip_grad_norm_(self._own(role), self._rate)
            optimizer.step()

    def _generate(self, role: str, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self._acts(role)
        options: dict[str, Any] = {
            "do_sample": True, "temperature": 1.0, "top_k": 0, "use_cache": True,
            "max_new_tokens": self._settings.max_new_tokens, "min_new_tokens": self._settings.max_new_tokens,
            "pad_token_id": self._tokenizer.pad_token_id, "eos_token_id": self._tokenizer.eos_token_id,
        }  # fmt: skip
        parts = ids.split(1), mask.split(1)
        with torch.no_grad():
            if not self._per_thread:
                parts = (ids,), (mask,)
            written = [
                self._model.generate(input_ids=one, attention_mask=its_mask, **options)
                for one, its_mask in zip(*parts, strict=True)
            ]
        return torch.cat(written)[:, ids.shape[1] :]

    def _rewards(self, tasks: Sequence[Task], texts: Sequence[str]) -> torch.Tensor:
        """One program after the other."""
        programs: list[Program] = [
            program_of(task, distinct(task, text)) for task, text in zip(tasks, texts, strict=True)
        ]
        return torch.tensor([float(self._runner.run([one])[0].passed) for one in programs])

    def _values(self, prompts: list[torch.Tensor], masks: list[torch.Tensor]) -> torch.Tensor:
        """(B, agents): the frozen backbone's last hidden states, each time anew."""
        found = []
        for ids, mask in zip(prompts, masks, strict=True):
            with torch.no_grad(), self._model.disable_adapter():
                states = self._model(
                    input_ids=ids, attention_mask=mask, output_hidden_states=True, use_cache=False
                ).hidden_states[-1][:, -1]
            found.append(self._head(states.float()))
        return torch.cat(found, dim=1)

    def _log_probs(
        self, prompts: list[torch.Tensor], masks: list[torch.Tensor], actions: list[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Of whole actions and their mean entropies, each (B, agents)."""
        sliced = []
        for role, ids, mask, written in zip(self._settings.roles, prompts, masks, actions, strict=True):
            self._acts(role)
            whole = torch.cat([ids, written], dim=1)
            whole_mask = torch.cat([mask, torch.ones_like(written)], dim=1)
            with torch.no_grad():
                self._sliced(self._model(input_ids=whole, attention_mask=whole_mask).logits, written)
            logits = self._model(input_ids=whole, attention_mask=whole_mask).logits
            sliced.append(self._sliced(logits, written))
        logits = torch.stack(sliced, dim=1)  # (B, agents, new tokens, V) float32
        log_softmax = torch.log_softmax(logits, dim=-1)
        rows, agents = logits.shape[:2]
        found, entropies = (torch.empty(rows, agents, device=logits.device) for _ in range(2))
        for row in range(rows):
            for agent in range(agents):
                taken = log_softmax[row, agent].gather(-1, actions[agent][row][:, None])
                found[row, agent] = taken.sum() / len(taken)
                spread = torch.distributions.Categorical(logits=logits[row, agent])
                entropies[row, agent] = spread.entropy().mean()
        return found, entropies

    def _sliced(self, logits: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
        """(B, new tokens, V) float32: those of what was written, row by row."""
        rows, tokens = written.shape
        found = torch.zeros(rows, tokens, logits.shape[-1], device=logits.device)
        for row in range(rows):
            found[row] = logits[row, -tokens - 1 : -1].clone()
        return found

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """On the left: ids and mask (B, longest)."""
        longest = max(map(len, rows))
        pad = self._tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        return ids, mask

    def _acts(self, role: str) -> None:
        self._model.set_adapter(role)
        for name, parameter in self._model.named_parameters():
            if "lora_" in name:
                parameter.requires_grad_(requires_grad=True)

    def _own(self, role: str) -> list[torch.nn.Parameter]:
        return [one for name, one in self._model.named_parameters() if f".{role}." in name]


def distinct(task: Task, _text: str) -> str:
    """A right program that no other is equal to, whatever was written: every arm's programs cost the same."""
    return f"{task.reference}\n# {next(numbers)}"
