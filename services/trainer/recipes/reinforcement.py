"""The section `reinforcement` of a recipe: how a team of agents learns from programs that pass their tests.

Only with `objective: reinforcement`. What others call some of it is in `seed_names`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from services.core.errors import ConfigurationError
from services.trainer.recipes.combinations import CombinationError, Problem
from services.trainer.reinforcement.profiles import Profile, check

if TYPE_CHECKING:
    from services.trainer.recipes.recipe import Recipe

SECTION = "reinforcement"  # the objective's name, and its section's
GRPO_DEFAULTS = {"group_size": 8, "clip_high": 0.28}  # DAPO, 2503.14476, section 3.1
CRITIC = ("critic_lr", "gamma", "gae_lambda", "value_loss_coef", "use_clipped_value_loss", "value_clip",
          "huber_delta")  # fmt: skip
PROFILES = (
    Profile(
        "analyzer",
        "You are the analyzer of a team of two programmers. Read the task and say how to solve it: the"
        " approach, its steps, and the cases that are easy to get wrong. Be short. Do not write the program.",
        with_answer=False,
    ),
    Profile(
        "coder",
        "You are the coder of a team of two programmers. Write the program that solves the task, along the"
        " analysis where it is right. Answer with one complete Python program in a code block.",
        with_answer=True,
    ),
)


class Reinforcement(BaseModel):
    """How episodes are made, rewarded and learned from."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    algorithm: Literal["appo", "tppo", "grpo"] = Field(
        default="appo",
        description="appo: PPO with one ratio for a whole answer; tppo: with one for each token; grpo:"
        " without a critic, an answer is compared with others to the same task.",
    )
    profiles: tuple[Profile, ...] = Field(
        default=PROFILES,
        description="The agents in the order in which they speak: role, prompt, and with_answer for the last,"
        " who writes the program. A list, or the path of a JSON file with one, from the recipe's folder.",
    )
    frozen_roles: tuple[str, ...] = Field(
        default=(), description="Agents that act without being trained, to see what their learning brings."
    )
    tasks: str = Field(
        default="easy",
        min_length=1,
        description="Task set that is trained on, as `ratchet tasks` names them.",
    )
    eval_tasks: str | None = Field(
        default=None,
        min_length=1,
        description="Task set whose test split the gate judges by. None: that of tasks.",
    )
    min_new_tasks: int = Field(
        default=1, ge=1, description="Tasks not yet practised that begin a round by themselves."
    )
    keep_solutions: bool = Field(
        default=True,
        description="Programs that passed are kept, as samples for fine-tuning rounds (rejection sampling).",
    )

    context_window: int = Field(
        default=2048,
        ge=16,
        description="Tokens of an agent's prompt at most: what other agents said is shortened.",
    )
    max_new_tokens: int = Field(default=512, ge=1, description="Tokens of an agent's answer at most.")
    temperature: float = Field(
        default=1.0, gt=0, description="Of what is sampled. At 1 what is learned from is the policy's own."
    )
    writer: Literal["own", "vllm"] = Field(
        default="own",
        description="Who writes in rollouts. own: the model that is trained; vllm: vLLM on the same GPU,"
        " where it is installed.",
    )
    n_rollout_threads: int = Field(default=8, ge=1, description="Episodes at a time.")
    episode_length: int = Field(
        default=1, ge=1, description="Turns of the whole team that each of them takes between two updates."
    )
    turns: int = Field(
        default=1,
        ge=1,
        description="Turns of the team that an episode has at most. After the first, agents see the last"
        " program and what its tests said.",
    )
    group_size: int = Field(
        default=1, ge=1, description="Episodes of the same task in a rollout; grpo: 8, at least 2."
    )
    reward_type: Literal["binary", "continuous"] = Field(
        default="binary",
        description="binary: 1 for a program that passes all tests; continuous: the share it passes.",
    )
    mask_truncated: bool = Field(
        default=True, description="Nothing is learned from answers that were cut off at max_new_tokens."
    )

    iterations: int = Field(default=100, ge=1, description="Rollouts with an update each, a round at most.")
    ppo_epoch: int = Field(default=1, ge=1, description="Times an update goes through its rollout.")
    num_mini_batch: int = Field(default=1, ge=1, description="Optimizer steps to such a time.")
    clip_param: float = Field(
        default=0.2, gt=0, lt=1, description="How far a ratio may fall below 1 (Schulman et al. 2017)."
    )
    clip_high: float = Field(default=0.2, gt=0, description="How far it may rise above 1; grpo: 0.28.")
    normalization_mode: Literal["sum", "token"] = Field(
        default="token",
        description="sum: an answer's log-probability is the sum of its tokens'; token: their mean, so that"
        " long answers are not clipped at once. `word` is read as token.",
    )
    critic_lr: float = Field(default=5e-4, gt=0, lt=1, description="Learning rate of the value head.")
    gamma: float = Field(default=1.0, gt=0, le=1, description="Discount of an agent's turn.")
    gae_lambda: float = Field(
        default=0.95, ge=0, le=1, description="Of advantages over agents and turns (Schulman et al. 2016)."
    )
    value_loss_coef: float = Field(default=1.0, ge=0, description="Weight of the critic's loss.")
    use_clipped_value_loss: bool = Field(
        default=True, description="A value moves no further than value_clip from what it was at the rollout."
    )
    value_clip: float = Field(default=0.2, gt=0, description="See use_clipped_value_loss.")
    huber_delta: float = Field(
        default=10.0, gt=0, description="Error from which the critic's loss is linear, on both sides."
    )
    entropy_coef: float = Field(default=0.0, ge=0, description="Weight of the policy's entropy.")
    kl_coef: float = Field(
        default=0.02, ge=0, description="Weight of the distance to the base (KL, adapters off)."
    )
    kl_threshold: float | None = Field(
        default=None,
        gt=0,
        description="KL of the policy to that of the rollout, in nats a token, above which the rest of an"
        " update is left out. None: never.",
    )
    max_reference_kl: float = Field(
        default=1.0,
        gt=0,
        description="KL to the base, in nats a token, above which training stops as collapsed.",
    )
    use_linear_lr_decay: bool = Field(
        default=True, description="Learning rates fall to 0 over the iterations; otherwise they stay."
    )
    save_interval: int = Field(default=10, ge=1, description="Iterations between two checkpoints.")
    eval_interval: int = Field(default=10, ge=1, description="Iterations between two evaluations.")
    eval_samples: int = Field(
        default=4, ge=1, description="Programs written to a task when the team is evaluated."
    )

    @model_validator(mode="before")
    @classmethod
    def _as_it_is_here(cls, fields: Any) -> Any:
        """grpo has defaults of its own, names are in small letters, `n_agents` is what the profiles say."""
        if not isinstance(fields, dict):
            return fields
        fields = dict(fields)
        if isinstance(fields.get("algorithm"), str):
            fields["algorithm"] = fields["algorithm"].lower()
        if fields.get("normalization_mode") == "word":
            fields["normalization_mode"] = "token"
        profiles = fields.get("profiles", PROFILES)
        if isinstance(profiles, str):
            raise CombinationError([_said(f"profiles={profiles}: a path is read from a recipe's file only")])
        agents = fields.pop("n_agents", None)
        if agents is not None and isinstance(profiles, list | tuple) and agents != len(profiles):
            raise CombinationError([_said(f"n_agents={agents}, but there are {len(profiles)} profiles")])
        return {**GRPO_DEFAULTS, **fields} if fields.get("algorithm") == "grpo" else fields

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_numbers(cls, value: Any, info: Any) -> Any:
        """`true` is no 1."""
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation is not bool:
            raise PydanticCustomError("no_flag", "must not be true or false")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> "Reinforcement":
        if problems := list(_problems(self)):
            raise CombinationError(problems)
        return self

    @property
    def roles(self) -> tuple[str, ...]:
        """The agents' names, in order."""
        return tuple(profile.role for profile in self.profiles)

    @property
    def task_sets(self) -> tuple[str, ...]:
        """What is trained on and what is judged by, each once."""
        return tuple(dict.fromkeys((self.tasks, self.eval_tasks or self.tasks)))

    @property
    def rollout_turns(self) -> int:
        """Turns of the whole team between two updates."""
        return self.n_rollout_threads * self.episode_length


def section(recipe: "Recipe") -> Reinforcement:
    """The recipe's section. Raises ConfigurationError for a recipe with another objective."""
    if recipe.reinforcement is None:
        raise ConfigurationError(
            f"recipe {recipe.name}: objective={recipe.objective} has no section {SECTION}:"
            f" take a recipe with objective={SECTION}"
        )
    return recipe.reinforcement


def require_fine_tuning(recipe: "Recipe", what: str) -> None:
    """Raises ConfigurationError for a recipe with objective=reinforcement. what: that it has no part in."""
    if recipe.objective == SECTION:
        raise ConfigurationError(
            f"recipe {recipe.name} has objective={SECTION}, which practises tasks: {what} is of recipes that"
            " train on code. Name another recipe"
        )


def _problems(asked: Reinforcement) -> Iterator[Problem]:
    try:
        check(asked.profiles)
    except ConfigurationError as exc:
        yield Problem((SECTION,), str(exc))
    for role in asked.frozen_roles:
        if role not in asked.roles:
            yield _said(
                f"frozen_roles: {role} is no role of the profiles (there are: {', '.join(asked.roles)})"
            )
    if set(asked.roles) <= set(asked.frozen_roles):
        yield _said("frozen_roles has every role: nothing would be trained")
    if asked.algorithm == "grpo":
        yield from _groups(asked)
    if asked.rollout_turns % asked.group_size:
        yield _said(
            f"group_size={asked.group_size} does not divide n_rollout_threads × episode_length"
            f" = {asked.rollout_turns}: the last task of a rollout would have fewer episodes"
        )
    if asked.algorithm != "appo" and asked.normalization_mode != "token":
        yield _said(
            f"normalization_mode={asked.normalization_mode} has no effect with algorithm={asked.algorithm}:"
            " set algorithm to appo, or leave normalization_mode out"
        )


def _groups(asked: Reinforcement) -> Iterator[Problem]:
    if asked.group_size < 2:
        yield _said(
            f"group_size={asked.group_size}: algorithm=grpo compares episodes of the same task, at least 2"
        )
    for field in CRITIC:
        value = getattr(asked, field)
        if value != Reinforcement.model_fields[field].default:
            yield _said(
                f"{field}={value} has no effect with algorithm=grpo, which has no critic:"
                f" set algorithm to appo or tppo, or leave {field} out"
            )


def _said(what: str) -> Problem:
    return Problem((SECTION,), f"{SECTION}: {what}")
