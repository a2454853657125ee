"""Tasks, a model that solves some of them by chance, and a recipe by which it practises.

The tiny Llama learns, from the very prompts of a round, to say one of two programs: the right one in RIGHT of
all cases. So a whole round has something to reward, to judge and to publish, within seconds.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from services.trainer.recipes.files import load
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement.prompting import TeamPrompts
from services.trainer.suites.formats import Task, read
from tests import tiny_model

RIGHT = 0.6
STEPS, RATE, SEEN = 40, 6e-3, 3  # optimizer steps, tasks in each
PLAN = "Add one."
PROGRAMS = {"x + 1": RIGHT, "x - 1": 1 - RIGHT}  # what is returned → how often
WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "knoll",
    "larch", "maple", "north", "ocean", "pearl",
)  # fmt: skip
TRAIN, TEST = 8, 6  # tasks
ANSWER = "return {}"  # a body, as of an answer without a fence
RECIPE = """\
base_model: {model}
method: lora
lora_r: 4
objective: reinforcement
learning_rate: 0.005
confidence: 0.6
general_suite: null
reinforcement:
  tasks: toy
  profiles:
    - {{role: analyzer, prompt: Say how., with_answer: false}}
    - {{role: coder, prompt: Write it., with_answer: true}}
  context_window: 256
  max_new_tokens: 8
  n_rollout_threads: 8
  iterations: 4
  eval_interval: 2
  save_interval: 2
  eval_samples: 2
  kl_coef: 0.01
  max_reference_kl: 20
"""


def make(folder: Path) -> Path:
    """The model and its tokenizer in `folder`, with a recipe `team.yaml` and the files of the tasks `toy`."""
    model = tiny_model.make(folder / "model")
    recipe = folder / "team.yaml"
    recipe.write_text(RECIPE.format(model=model), encoding="utf-8")
    tasks = folder / "tasks"
    tasks.mkdir()
    texts = [_record(number) for number in range(TRAIN + TEST)]
    (tasks / "toy.train.jsonl").write_text("\n".join(texts[:TRAIN]), encoding="utf-8")
    (tasks / "toy.test.jsonl").write_text("\n".join(texts[TRAIN:]), encoding="utf-8")
    _warm_up(model, recipe, read(tasks / "toy.train.jsonl"))
    return folder


def _record(number: int) -> str:
    """A task in HumanEval's format: all want the same, in words that differ."""
    said = " ".join(WORDS[(number * step + step) % len(WORDS)] for step in (1, 3, 7))
    return json.dumps(
        {
            "task_id": f"toy/{number}",
            "prompt": f'def f(x):\n    """{said} {number}."""\n',
            "entry_point": "f",
            "canonical_solution": "    return x + 1\n",
            "test": "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(-3) == -2\n",
        }
    )


def _warm_up(folder: Path, recipe: Path, tasks: Sequence[Task]) -> None:
    """Supervised steps on both roles' answers, each weighted by how often it is to come."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    profiles = section(load(str(recipe))).profiles
    prompts = TeamPrompts(tokenizer, profiles, 256)
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS)
    for step in range(STEPS):
        loss = 0.0
        for task in (tasks[(SEEN * step + at) % len(tasks)] for at in range(SEEN)):
            plan = prompts(profiles[0], task, [], None, None)
            loss += _loss(model, tokenizer, plan, [(PLAN, 1.0)])
            program = prompts(profiles[1], task, [PLAN], None, None)
            loss += _loss(
                model, tokenizer, program, [(ANSWER.format(each), PROGRAMS[each]) for each in PROGRAMS]
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.step()
    model.save_pretrained(folder)


def _loss(
    model: Any, tokenizer: Any, prompt: Sequence[int], answers: Sequence[tuple[str, float]]
) -> torch.Tensor:
    """Nats of the answers after the prompt, each weighted by how often it is to come."""
    rows = [
        [*prompt, *tokenizer.encode(answer, add_special_tokens=False), tokenizer.eos_token_id]
        for answer, _ in answers
    ]  # of one length: they differ in one token
    ids = torch.tensor(rows)  # (N, T) int64
    logits = model(input_ids=ids, logits_to_keep=ids.shape[1] - len(prompt) + 1).logits[:, :-1]
    nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, len(prompt) :], reduction="none")
    return (nats.sum(dim=1) * torch.tensor([share for _, share in answers])).sum()
