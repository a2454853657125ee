"""A team of one number, as little as the loop needs: what it earns is that number."""

from dataclasses import dataclass, replace

import torch
from safetensors.torch import load_file, save_file

from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement.episodes import Action, Episode
from services.trainer.reinforcement.loop import Setup
from services.trainer.reinforcement.standing import Standing
from services.trainer.samples.chance import draw
from services.trainer.suites.formats import Task

FILE = "weight.safetensors"


class FakeTeam:
    roles = ("coder",)

    def __init__(self):
        self.weight = torch.zeros(3)

    def save(self, folder):
        (folder / "coder").mkdir()
        save_file({"weight": self.weight}, folder / "coder" / FILE)

    def restore(self, folder):
        self.weight = load_file(folder / "coder" / FILE)["weight"]


class FakeOptimizers:
    learning_rate = 0.1

    def __init__(self):
        self.moment = torch.zeros(3)

    def state(self):
        return {"moment": self.moment}, {"count": 1.0}

    def restore(self, tensors, numbers):
        self.moment = tensors["moment"]


@dataclass
class FakeRollouts:
    """Of the samples of a task as many pass as the rate of its iteration says."""

    team: FakeTeam
    rates: list[float]  # of the iterations'
    judged: list[float]  # of the evaluations'
    asked: list[tuple] = None

    def __post_init__(self):
        self.asked = []

    def collect(self, tasks, *, group_size=1, seed, greedy=False, samples=1, on_done=None):
        is_evaluation = samples > 1
        self.asked.append((is_evaluation, seed, tuple(task.name for task in tasks)))
        rates = self.judged if is_evaluation else self.rates
        number = sum(each[0] == is_evaluation for each in self.asked) - 1
        rate = rates[min(number, len(rates) - 1)]
        on_done(Standing(episodes=2, turns=1, role="coder", written=1, of=2, tokens=30, seconds=2.0))
        count = len(tasks) * group_size * samples
        chance = draw(seed)
        passed = set(chance.sample(range(count), round(rate * count)))
        every = [task for task in tasks for _ in range(group_size * samples)]
        return [episode(task, at in passed) for at, task in enumerate(every)]


def episode(task, solved):
    action = Action("coder", 0, (1, 2), (3, 4, 5), "text", finished=True)
    return Episode(task.key, 0, (action,), (float(solved),), solved, "passed", ("code",))


def tasks(count, prefix="task"):
    return [
        Task(f"{prefix}{n}", "prompt", None, "", "pass", "assert True", "f", "assert") for n in range(count)
    ]


def recipe(**settings):
    patience = settings.pop("early_stopping_patience", 100)
    return Recipe(
        name="fake",
        base_model="none",
        method="lora",
        objective="reinforcement",
        general_suite=None,
        early_stopping_patience=patience,
        reinforcement={"iterations": 8, "eval_interval": 2, "save_interval": 1, **settings},
    )


def setup(folder, rates=(0.5,), judged=(0.5,), **settings):
    team = FakeTeam()
    return Setup(
        team, FakeOptimizers(), FakeRollouts(team, list(rates), list(judged)), tasks(5), tasks(2, "judged"),
        recipe(**settings), folder,
    )  # fmt: skip


@dataclass
class FakeFigures:
    policy_loss: float = 0.25
    kl_reference: float = 0.01

    def as_json(self):
        return vars(self)


class FakeUpdate:
    """Moves the weight by what was earned and by the generator's next number."""

    def __init__(self, kl=()):
        self.kl = dict(kl)  # iteration -> KL to the base
        self.progress = []

    def __call__(self, team, episodes, optimizers, settings, recipe, generator, progress, on_part):
        on_part(1, 4)
        self.progress.append(progress)
        earned = sum(each.reward for each in episodes)
        optimizers.moment = 0.9 * optimizers.moment + earned * torch.rand(3, generator=generator)
        team.weight = team.weight + optimizers.moment + torch.rand(3)  # the global generator's too
        step = round(progress * settings.iterations) + 1
        return replace(FakeFigures(), kl_reference=self.kl.get(step, 0.01))
