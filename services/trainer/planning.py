"""The plan of a round on the devices this process sees, and how fast they could be at best."""

import logging
import os
from typing import Any

import psutil
import torch

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer import plan as plans
from services.trainer.engine import fp8
from services.trainer.engine.compute import Compute
from services.trainer.engine.meter import Speed
from services.trainer.plan import Hardware, Plan, Shape
from services.trainer.recipes.recipe import Recipe

log = logging.getLogger(__name__)


def hardware(devices: int) -> Hardware:
    """This process's device, `devices` times. To be asked before a model takes its memory."""
    if not torch.cuda.is_available():
        return Hardware.cpu(os.cpu_count() or 1, psutil.virtual_memory().total)
    free, _ = torch.cuda.mem_get_info()
    return Hardware.gpu(torch.cuda.get_device_name(), free, devices)


def plan(config: Any, recipe: Recipe, found: Hardware, mean_document_tokens: float) -> Plan:
    """The fastest that fits; raises ConfigurationError when none does."""
    shape = Shape.from_config(config.to_dict())
    chosen = plans.plan(shape, recipe, found, mean_document_tokens=mean_document_tokens)
    log.info(
        "plan: %d rows at once, recomputation %s, %.1f GiB at the peak, on %s",
        chosen.micro_batch, chosen.recomputation, chosen.peak_bytes / 2**30, found.name,
    )  # fmt: skip
    return chosen


def compute(trained: Any, chosen: Plan) -> Compute:
    """The model as the plan computes it: compiled on GPUs, if the recipe says so.

    Raises ConfigurationError when the recipe says fp8 and the device cannot.
    """
    device = next(trained.parameters()).device
    if chosen.job.recipe.fp8 and not fp8.is_possible(device):
        raise ConfigurationError(
            f"fp8=true, and {torch.cuda.get_device_name(device)} cannot multiply FP8: that takes an Ada or"
            " Hopper GPU or a newer one (compute capability 8.9); leave fp8 out"
        )
    return Compute(
        trained,
        recomputed_layers=chosen.recomputed_layers,
        kept_share=chosen.kept_share,
        keep_merged=chosen.keep_merged,
        compiled=chosen.job.recipe.compile and torch.cuda.is_available(),
        in_fp8=chosen.job.recipe.fp8,
    )


def summary(chosen: Plan) -> Json:
    """What a tracker shows of it."""
    return {
        "device": chosen.job.hardware.name,
        "devices": chosen.job.hardware.devices,
        "micro_batch": chosen.micro_batch,
        "recomputation": chosen.recomputation,
        "peak_bytes": chosen.peak_bytes,
        "tokens_per_s": chosen.tokens_per_s,
    }


def speed(chosen: Plan) -> Speed:
    """What MFU is of; unknown on a CPU and on devices without a data sheet here."""
    job = chosen.job
    peak = job.hardware.peak_flops
    return Speed(
        flops_per_token=plans.flops_per_token(job.shape, job.recipe, job.mean_document_tokens),
        peak_flops=None if peak is None else peak * job.hardware.devices,
    )
