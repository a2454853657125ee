"""A recipe: the frozen, validated description of a way to train.

Its fields are its reference page (`reference`), `files` reads it from YAML, `combinations` says
which fields exclude one another. Shares are fractions of 1, lengths are tokens unless named otherwise.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from services.core.settings import RECIPE_OVERRIDES
from services.trainer.recipes import combinations, seed_names
from services.trainer.recipes.names import ALL_LINEAR, GRANULES
from services.trainer.recipes.reinforcement import Reinforcement

Method = Literal["lora", "qlora", "full"]
Distribution = Literal["auto", "ddp", "fsdp2", "zero2", "zero3"]
Recomputation = Literal["auto", "none", "selective", "full"]
Objective = Literal["completion_pairs", "cpt", "reinforcement"]
Schedule = Literal["cosine", "cosine_with_restarts", "linear", "constant"]
OF_TEAMS = {"expected_improvement": 0.1}  # defaults with objective=reinforcement: points of pass rate


class Recipe(BaseModel):
    """What a round does with its snapshot."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", description="Also the track's name and its folder.")
    description: str = Field(default="", description="One sentence for `ratchet recipe list`.")

    # The model
    base_model: str = Field(description="A hub id, a folder, or wheel:PACKAGE/FILE.gguf.")
    revision: str | None = Field(
        default=None,
        description="Hub commit. None: the newest at the track's first round, kept from then on.",
    )
    method: Method = Field(
        default="qlora",
        description="lora: adapters on the base in bf16; qlora: on the base in NF4; full: all weights.",
    )
    lora_r: int = Field(default=16, ge=1, le=1024, description="Rank of the adapters.")
    lora_alpha: int = Field(
        default=32,
        ge=1,
        description="Adapters are scaled by lora_alpha / lora_r, with use_rslora by lora_alpha / √lora_r.",
    )
    lora_dropout: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of the adapters' inputs that is dropped. Above 0, base and adapter cannot be one"
        " product, which costs speed.",
    )
    target_modules: tuple[str, ...] = Field(
        default=(ALL_LINEAR,),
        description="Linear layers that get an adapter, by the last parts of their names. all-linear: all but"
        " the head.",
    )
    use_dora: bool = Field(
        default=False, description="DoRA: magnitude and direction apart (Liu et al. 2024)."
    )
    use_rslora: bool = Field(default=False, description="rsLoRA: scaling by √rank (Kalajdzievski 2023).")
    init_lora_weights: Literal["default", "pissa"] = Field(
        default="default", description="pissa: from the base's principal singular values (Meng et al. 2024)."
    )

    # What it sees
    objective: Objective = Field(
        default="completion_pairs",
        description="completion_pairs: code to continue, in the chat template, with the loss on the"
        " continuation; cpt: continued pre-training, with the loss on everything; reinforcement: tasks to"
        " solve, with a reward for programs that pass their tests.",
    )
    languages: tuple[str, ...] | None = Field(
        default=None, description="Languages of the contents, as `ratchet stats` names them. None: every one."
    )
    language_weights: dict[str, float] | None = Field(
        default=None,
        description="How the round's contents are shared among languages, by name; `*` for those not named,"
        " which get nothing without it. None: as they come.",
    )
    min_chars: int = Field(default=50, ge=1, description="Characters a content has at least.")
    max_chars: int = Field(default=32_000, ge=1, description="Characters a content has at most.")
    max_contents: int | None = Field(
        default=None, ge=1, description="Contents of a round at most, below MAX_DATASET_SIZE."
    )
    max_length: int = Field(
        default=4096, ge=64, description="Tokens of a packed row, and of a document at most."
    )
    held_out_share: float = Field(
        default=0.05, gt=0, lt=0.5, description="Share of the clusters the gate judges by."
    )
    held_out_min: int = Field(
        default=32, ge=1, description="Contents held out at least, as far as a fifth of all allows."
    )
    validation_share: float = Field(
        default=0.02, gt=0, lt=0.5, description="Share of the clusters early stopping looks at."
    )
    validation_min: int = Field(
        default=16, ge=1, description="Contents for validation at least, as far as a fifth of all allows."
    )
    held_out_pairs: int | None = Field(
        default=None, ge=1, description="Samples judged of one content at most. None: all."
    )
    held_out_max: int = Field(
        default=512, ge=5, description="Held-out contents a round is judged by at most, anchors first."
    )
    split: Literal["auto", "time", "cluster"] = Field(
        default="auto",
        description="time: judged by lines first written after a time T that moves with the rounds, trained"
        " on what was there before it; cluster: by whole files drawn at random; auto: time where the history"
        " of enough files is known.",
    )
    fim_rate: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of documents turned into fill-in-the-middle (Bavarian et al. 2022).",
    )
    fim_spm_rate: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Of those, the share in suffix-prefix-middle order; the rest is prefix-suffix-middle.",
    )
    fim_ast_rate: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Of those, the share whose middle is a whole unit or block; the rest is a random span.",
    )
    granular: tuple[str, ...] = Field(
        default=(),
        description="Kinds of units that become samples of their own beside their file:"
        f" {', '.join(GRANULES)}.",
    )
    repository_context: bool = Field(
        default=False, description="Files of one repository follow one another, what is imported first."
    )
    curriculum: bool = Field(default=False, description="Simple samples first; otherwise shuffled.")
    rename_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of Python contents seen once more with their identifiers renamed.",
    )
    replay_share: float = Field(
        default=0.0, ge=0, lt=1, description="Share of a round's training contents drawn from earlier rounds."
    )
    solutions_share: float = Field(
        default=0.0,
        ge=0,
        le=0.5,
        description="Share of a round's training texts that are programs of reinforcement rounds that passed"
        " their tests (rejection sampling, Yuan et al. 2023), as far as there are new ones for the track.",
    )
    source_share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of a round's new bytes that one source may have at most, or an even share among"
        " the sources there are if that is more: the rest waits for later rounds. None: as they come.",
    )

    # How it learns
    batch_size: int = Field(
        default=4,
        ge=1,
        description="Packed rows a device sees at once at most. With gradient_accumulation_steps it fixes the"
        " effective batch; the plan may split it further.",
    )
    gradient_accumulation_steps: int = Field(
        default=4, ge=1, description="Such batches to an optimizer step."
    )
    recomputation: Recomputation = Field(
        default="auto",
        description="Activations computed again in the backward pass: of no layer, of some, of all. auto: of"
        " as few as memory allows.",
    )
    distributed: Distribution = Field(
        default="auto",
        description="How several devices share a step. auto: ddp for adapters, fsdp2 for all weights. fsdp2"
        " and zero3 split the weights and what belongs to them; zero2 splits only the latter, which for"
        " adapters is ddp.",
    )
    learning_rate: float = Field(default=2e-5, gt=0, lt=1, description="At the schedule's top.")
    lr_schedule: Schedule = Field(
        default="cosine", description="How the learning rate falls after the warm-up."
    )
    lr_restarts: int = Field(default=3, ge=1, description="How many cosines.")
    warmup_share: float = Field(
        default=0.03,
        ge=0,
        lt=1,
        description="Share of the steps over which the learning rate rises. Every round warms up anew.",
    )
    weight_decay: float = Field(
        default=0.01, ge=0, description="Of AdamW: decoupled, on matrices only (Loshchilov and Hutter 2019)."
    )
    max_grad_norm: float = Field(default=1.0, gt=0, description="Gradients are scaled down to this norm.")
    adam_betas: tuple[float, float] = Field(
        default=(0.9, 0.999),
        description="Decay of AdamW's running means, of gradients and of their squares; each in [0, 1).",
    )
    optimizer: Literal["auto", "adamw", "adamw_8bit"] = Field(
        default="auto", description="auto: adamw_8bit on a GPU, adamw on the CPU."
    )
    epochs: float = Field(default=1.0, gt=0, description="Times the snapshot is seen.")
    max_steps: int | None = Field(default=None, ge=1, description="Optimizer steps at most.")
    eval_steps: int = Field(
        default=50, ge=1, description="Steps between two evaluations, each with a checkpoint."
    )
    early_stopping_patience: int = Field(
        default=3, ge=1, description="Evaluations without improvement after which training stops."
    )
    early_stopping_threshold: float = Field(
        default=0.01, ge=0, description="Nats a token that count as improvement."
    )
    spike_factor: float = Field(
        default=3.0,
        gt=1,
        description="A loss above this many times the median of the last steps, and half a nat above it, is a"
        " spike: back to the last good checkpoint, the batch skipped.",
    )
    max_rollbacks: int = Field(
        default=3, ge=0, description="Spikes or losses that are not finite after which the round fails."
    )
    fp8: bool = Field(
        default=False,
        description="Products with frozen weights in FP8, for adapters on an Ada or Hopper GPU or a newer"
        " one: faster, and coarser than bf16.",
    )
    compile: bool = Field(default=True, description="Compile the decoder layers, on a GPU.")
    use_flash_attention: bool = Field(
        default=True, description="flash-attn where it is installed; torch's own kernels otherwise."
    )
    dataloader_num_workers: int = Field(
        default=0, ge=0, description="Threads that prepare batches ahead. 0: one."
    )
    logged_predictions: int = Field(
        default=4, ge=0, description="Samples whose predictions W&B shows at each evaluation."
    )
    seed: int = Field(default=42, ge=0, lt=2**32, description="Of shuffling, initialisation and dropout.")

    reinforcement: Reinforcement | None = Field(
        default=None, description="How a team learns from tasks: [fields below](#reinforcement)."
    )

    # When the candidate is better
    min_improvement: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Relative fall of bits per byte on this code, beyond noise. With `objective:"
        " reinforcement` a rise of the pass rate on held-out tasks, as a fraction of 1.",
    )
    expected_improvement: float = Field(
        default=0.03,
        gt=0,
        lt=1,
        description="Relative fall of bits per byte that a round is hoped to bring: the gate says when the"
        " held-out files are too few to see it in 8 rounds of 10. With `objective: reinforcement` a rise of"
        " the pass rate as a fraction of 1, by default 0.1.",
    )
    confidence: float = Field(
        default=0.95,
        gt=0.5,
        lt=1,
        description="1 - confidence bounds the chance that a track without any effect is ever promoted.",
    )
    general_suite: str | None = Field(
        default="humaneval-loss",
        description="Measures ability elsewhere, which must not fall: humaneval-loss (bits per byte of its"
        " solutions), humaneval (pass@1, needs the sandbox), or either of a file in benchmarks/, by its name"
        " without .jsonl. A rate of 164 tasks is known to about 4 points, so few candidates can be shown to"
        " have lost less than 2. None: the gate looks at this code alone.",
    )
    general_margin: float = Field(
        default=0.02,
        gt=0,
        lt=1,
        description="How far ability elsewhere may fall: points of pass@1 as a fraction of 1, or a relative"
        " rise of bits per byte.",
    )
    suites: tuple[str, ...] = Field(
        default=(),
        description="Further suites that are measured and reported, not judged by: as general_suite, or"
        " keywords.",
    )
    completion_items: int = Field(
        default=100,
        ge=0,
        description="Next lines and blocks of held-out code written by base, champion and candidate, for"
        " exact match and edit similarity; half of each.",
    )
    planted_secrets: int = Field(
        default=8,
        ge=0,
        le=1000,
        description="Fake secrets put into the contents that a round trains on, a twentieth of them at most:"
        " if the candidate can write one out, it is refused. 0: none.",
    )

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, fields: Any) -> Any:
        """What others, and recipes of open rounds from before, call some of it."""
        if not isinstance(fields, dict):
            return fields
        fields = seed_names.moved(combinations.renamed(fields))
        return {**OF_TEAMS, **fields} if fields.get("objective") == "reinforcement" else fields

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """`true` is no 1."""
        flag = info.field_name is not None and cls.model_fields[info.field_name].annotation is bool
        if isinstance(value, bool) and not flag:
            raise PydanticCustomError("no_flag", "must not be true or false")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> "Recipe":
        if problems := combinations.problems(self):
            raise combinations.CombinationError(problems)
        return self

    @property
    def rows_per_step(self) -> int:
        """Packed rows of an optimizer step on one device, whatever the micro-batch."""
        return self.batch_size * self.gradient_accumulation_steps


assert set(RECIPE_OVERRIDES) <= set(Recipe.model_fields)
