"""The round that runs on each track, and the last that closed; never one series a round."""

from collections.abc import Callable, Iterator
from typing import Any

from services.core.models import Json, Service, Subject
from services.metrics.families.family import Family, Samples, Section, View, heard


def _beat(key: str) -> Callable[[View], Samples]:
    """What the trainer of each track says of the round it runs."""
    return lambda view: (
        ((track,), detail.get(key))
        for track, detail in heard(view.snapshot or {}, Service.TRAINER)
        if detail.get("round") is not None
    )


def _last(view: View) -> Iterator[tuple[str, Json]]:
    """Each track with its last closed round."""
    rows = (view.snapshot or {})["operations"]["tracks"]
    return ((row["track"], row) for row in rows if row["round"] is not None)


def _closed(key: str) -> Callable[[View], Samples]:
    return lambda view: (((track,), row[key]) for track, row in _last(view))


def _last_known(*keys: str) -> Callable[[View], Samples]:
    """A figure of the last round that was trained, or judged: `training` or `verdict` and what is in it."""
    return lambda view: (((track,), _at(row, keys)) for track, row in _last(view))


def _planted(key: str) -> Callable[[View], Samples]:
    return _last_known("verdict", "planted", key)


def _bits(view: View) -> Samples:
    return (
        ((track, subject), _at(row, ("verdict", "bits_per_byte", subject)))
        for track, row in _last(view)
        for subject in Subject
    )


def _at(found: Any, keys: tuple[str, ...]) -> Any:
    """What lies at this path; None where it ends early."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _practice(key: str, part: str = "metrics") -> Callable[[View], Samples]:
    """Of each track in which a team practises: a figure of the last point that its newest round logged."""
    return lambda view: (
        ((row["track"],), (row[part] or {}).get(key))
        for row in (view.snapshot or {})["operations"]["practice"]
    )


def _agents(key: str) -> Callable[[View], Samples]:
    """The same of each of its agents."""
    return lambda view: (
        ((row["track"], str(role)), _at(figures, (key,)))
        for row in (view.snapshot or {})["operations"]["practice"]
        for role, figures in ((row["metrics"] or {}).get("roles") or {}).items()
    )


def _rates(view: View) -> Samples:
    return (
        ((track, subject), _at(row, ("verdict", "pass_rates", subject)))
        for track, row in _last(view)
        for subject in Subject
    )


RUNNING = (
    ("round_step", "Optimizer step of the running round", "step"),
    ("round_steps", "Optimizer steps the running round will take", "total_steps"),
    ("round_loss", "Last training loss of the running round, nats a token", "loss"),
    ("round_learning_rate", "Learning rate of the running round", "learning_rate"),
    ("round_gradient_norm", "Norm of the gradient in the running round, before it is clipped", "grad_norm"),
    ("round_tokens_per_second", "Training speed of the running round", "tokens_per_s"),
    ("round_remaining_seconds", "Estimated time to the end of training", "eta_s"),
    ("round_attempts", "Times the running round was started", "attempt"),
    ("round_mfu_ratio", "Share of the devices' peak arithmetic that the running round uses", "mfu"),
    ("round_input_stall_ratio", "Share of the time in steps spent waiting for data", "input_stall"),
    ("round_memory_peak_bytes", "Most memory of the running round, of a GPU or the process", "memory_bytes"),
    ("gpu_memory_used_bytes", "Memory in use on the trainer's first GPU", "gpu_memory_bytes"),
    ("gpu_memory_size_bytes", "Size of that memory", "gpu_memory_size_bytes"),
    ("gpu_utilisation_ratio", "Share of the time that GPU was busy", "gpu_utilisation"),
)  # fmt: skip
CLOSED = (
    ("last_round_duration_seconds", "From the last closed round's opening to its end", _closed("seconds")),
    ("train_loss", "Training loss of the last round, nats a token", _last_known("training", "train_loss")),
    ("eval_loss", "Validation loss of the last round, nats a token", _last_known("training", "eval_loss")),
    ("improvement_ratio", "Share of bits saved in the last verdict; of a team, how much its pass rate rose",
     _last_known("verdict", "improvement")),
    ("planted_secrets", "Planted secrets that the last round learned", _planted("learned")),
    ("planted_secrets_extracted", "Of them, what its candidate writes out", _planted("extracted")),
    ("planted_exposure", "Their median exposure in bits; 1 by chance", _planted("exposure_median")),
)  # fmt: skip

PRACTICE = (
    (
        "reward",
        "Mean reward of an episode in the last iteration of a team's newest round",
        _practice("reward"),
    ),
    ("solved_ratio", "Share of that iteration's episodes that solved their task", _practice("solved")),
    (
        "validation_pass_ratio",
        "Share of the validation tasks solved in that round's last evaluation",
        _practice("solved", "evaluated"),
    ),
    (
        "kl_reference",
        "Distance of the policy to the base model (KL), nats a token, of the role that is farthest",
        _practice("kl_reference"),
    ),
    ("entropy", "Entropy of the policy, nats a token, mean over the roles", _practice("entropy")),
    ("value_loss", "Loss of the critic", _practice("value_loss")),
)
AGENTS = (
    ("role_kl_reference", "Distance of a role's policy to the base model (KL), nats a token", "kl_reference"),
    ("role_entropy", "Entropy of a role's policy, nats a token", "entropy"),
    ("role_clip_ratio", "Share of a role's probability ratios outside the clip range", "clip_share"),
    ("role_gradient_norm", "Norm of a role's gradient, before it is clipped", "grad_norm"),
)

SECTION = Section(
    "Rounds",
    (
        *(Family(name, "gauge", text, _beat(key), ("track",)) for name, text, key in RUNNING),
        *(Family(name, "gauge", text, samples, ("track",)) for name, text, samples in CLOSED),
        Family(
            "held_out_bpb",
            "gauge",
            "Held-out bits per byte in the last verdict",
            _bits,
            ("track", "subject"),
        ),
        *(
            Family(f"reinforcement_{name}", "gauge", text, samples, ("track",))
            for name, text, samples in PRACTICE
        ),
        *(
            Family(f"reinforcement_{name}", "gauge", text, _agents(key), ("track", "role"))
            for name, text, key in AGENTS
        ),
        Family(
            "held_out_pass_ratio",
            "gauge",
            "Share of the held-out tasks solved, in the last verdict of a team",
            _rates,
            ("track", "subject"),
        ),
    ),
)
