"""What a training says of itself: while it runs, to whoever listens, and when it is done."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from services.core.models import Json, ServiceState


@dataclass(frozen=True)
class Training:
    """What the finished training measured."""

    train_loss: float  # nats a learned token, mean over the last tenth of the steps
    eval_loss: float  # of the best step
    bits_per_byte: float
    steps: int
    total_steps: int
    best_step: int
    weights_step: int  # steps behind the weights that are in the model: the best, or all where it is damaged
    samples: int
    tokens: int
    seconds: float  # in steps
    tokens_per_s: float
    stopped_early: bool
    micro_batch: int  # rows at once
    ran_out_of_memory: int  # times
    rollbacks: int
    skipped_batches: int
    left_out: tuple[int, ...]  # numbers of the batches that were skipped
    processes: tuple[tuple[int, int], ...]  # step, and how many have shared it and those after it
    input_stall: float  # share of the time in steps spent waiting for data
    peak_memory_bytes: int

    def as_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Progress:
    """Where the training is, for a heartbeat."""

    step: int
    total_steps: int
    loss: float | None  # of the last step, nats a token
    tokens_per_s: float  # 0 until the first step is done, which may compile for minutes
    eta_s: float | None
    message: str | None = None  # what has happened, to be told at once
    doing: str | None = None  # what is under way
    state: ServiceState | None = None  # None: training, and starting before the first step is done


@dataclass(frozen=True)
class Hooks:
    """What the round wants to hear of, and how it says stop."""

    on_progress: Callable[[Progress], None]  # after every micro-batch
    on_log: Callable[[str, int, Json], None]  # "train" or "eval", step, metrics
    stop_requested: Callable[[], bool]
    evaluate: Callable[[int], tuple[float, float]]  # at a step: nats a token, bits per byte
