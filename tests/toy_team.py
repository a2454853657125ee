"""A task that two agents can only solve together, small enough to be learned on one core in seconds.

Six specifications, such as "double the number". The analyzer reads one and writes a letter, the plan; the
coder sees the plan and nothing else, and writes the body of `def f(x)`, which asserts then judge. A model of
287 thousand random weights first learns the form from noisy pairs (`warmed_up`): an analyzer that is right
PLANNED of the time and a coder that is right CODED of the time, otherwise wrong at random. So about
PLANNED x CODED of its programs pass, whatever the seed; all that comes above it is what rewards taught. An
analyzer that stays as it is lets no coder pass more often than PLANNED.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from services.trainer.engine.optimizer import set_learning_rate
from services.trainer.reinforcement.profiles import Profile
from services.trainer.suites.formats import Task

SPECIFICATIONS = {  # in words → body, and what f(3), f(-4), f(7) are
    "add one": "x+1",
    "double": "x*2",
    "square": "x*x",
    "negate": "-x",
    "halve": "x//2",
    "subtract two": "x-2",
}
LETTERS = "ABCDEF"  # the plans, in the specifications' order, as the warm-up writes them
ARGUMENTS = (3, -4, 7)
OPENING = "def f(x): return "
PLANNED, CODED = 0.36, 0.5  # shares of right pairs in the warm-up
END, PAD = "<end>", "<pad>"
CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEF0123456789 :()+-*/"
WARM_STEPS, WARM_RATE, RISING = 100, 3e-3, 15  # AdamW steps, and how many of them the rate rises
IGNORED = -100  # no label
ROLES = ("analyzer", "coder")
PROFILES = (
    Profile("analyzer", "Writes a letter.", with_answer=False),
    Profile("coder", "Writes a body.", with_answer=True),
)
Pair = tuple[str, str, float]  # what is seen, what is written, how often


def tasks() -> list[Task]:
    """One a specification; its test is asserts."""
    return [
        Task(
            name=words,
            prompt=f"{words}: ",
            instruction=None,
            opening=OPENING,
            solution=body,
            test="\n".join(f"assert f({x}) == {eval(body, {'x': x})}" for x in ARGUMENTS),
            entry_point="f",
            style="assert",
        )
        for words, body in SPECIFICATIONS.items()
    ]


def asked(role: str, words: str, plan: str = "") -> str:
    """What an agent of this role goes on with; only the plan reaches the coder."""
    return f"{words}:" if role == ROLES[0] else f"{plan}:"


class Prompts:
    """See `reinforcement.prompting.Prompting`."""

    def __init__(self, known: Any) -> None:
        self._known = known

    def __call__(
        self, profile: Profile, task: Task, texts: Sequence[str], program: str | None, result: str | None
    ) -> list[int]:
        return self._known.encode(asked(profile.role, task.name, *texts))


def program(task: Task, text: str) -> str:
    """The whole function, of what the coder wrote as its body."""
    return task.opening + text


def tokenizer() -> PreTrainedTokenizerFast:
    """A character is a token."""
    vocabulary = {token: number for number, token in enumerate([END, PAD, *CHARACTERS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=PAD))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    made.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD)


def untrained(seed: int = 0) -> Qwen2ForCausalLM:
    """287 thousand random weights."""
    torch.manual_seed(seed)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(CHARACTERS) + 2,
            hidden_size=96,
            intermediate_size=360,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=128,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=0,
            pad_token_id=1,
        )
    )


def make(folder: Path, seed: int = 0) -> Path:
    """Write the warmed-up model and its tokenizer into a folder, as any base model."""
    warmed_up(seed).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def warmed_up(seed: int = 0) -> Qwen2ForCausalLM:
    """The model after supervised steps on the noisy pairs of both agents, weighted by how often they come."""
    model, known = untrained(seed), tokenizer()
    batches = [_batch(pairs, known) for pairs in (_plans(), _bodies())]
    optimizer = torch.optim.AdamW(model.parameters(), WARM_RATE, betas=(0.9, 0.95))
    for step in range(WARM_STEPS):
        share = min(1.0, (step + 1) / RISING) * 0.5 * (1 + math.cos(math.pi * step / WARM_STEPS))
        set_learning_rate(optimizer, WARM_RATE * share)
        loss = sum(_weighted_loss(model, *batch) for batch in batches)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def _plans() -> list[Pair]:
    return [
        (asked(ROLES[0], words), letter, PLANNED if right == place else (1 - PLANNED) / (len(LETTERS) - 1))
        for right, words in enumerate(SPECIFICATIONS)
        for place, letter in enumerate(LETTERS)
    ]


def _bodies() -> list[Pair]:
    return [
        (asked(ROLES[1], "", letter), body, CODED if right == place else (1 - CODED) / (len(LETTERS) - 1))
        for right, letter in enumerate(LETTERS)
        for place, body in enumerate(SPECIFICATIONS.values())
    ]


def _batch(pairs: Sequence[Pair], known: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """ids and labels (rows, longest) int64, weights (rows); learned is what is written, and its end."""
    rows = [(known.encode(seen), [*known.encode(written), 0]) for seen, written, _ in pairs]
    longest = max(len(seen) + len(written) for seen, written in rows)
    ids = torch.ones(len(rows), longest, dtype=torch.int64)
    labels = torch.full_like(ids, IGNORED)
    for row, (seen, written) in enumerate(rows):
        whole = torch.tensor([*seen, *written])
        ids[row, : len(whole)] = whole
        labels[row, len(seen) : len(whole)] = whole[len(seen) :]
    return ids, labels, torch.tensor([weight for _, _, weight in pairs]) / len(LETTERS)


def _weighted_loss(
    model: Any, ids: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Nats of a pair in the mean of what is to come."""
    logits = model(input_ids=ids).logits[:, :-1]  # (rows, longest - 1, V)
    nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels[:, 1:], reduction="none")
    return (nats.sum(dim=1) * weights).sum()
